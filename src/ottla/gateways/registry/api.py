"""The calls of the registry, by method and path.

Schemas are parsed and compared in a thread, a large one takes its time. Nobody has the turn to write
meanwhile: who gets it looks whether all is as it was when the schema was compared, and begins anew if not.
"""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any, Final

from ottla.gateways.pages import Page
from ottla.gateways.registry import answers, looking
from ottla.gateways.registry.asked import Asked, NewSchema, new_schema, subject_of
from ottla.gateways.registry.forwarding import changes_something, forward
from ottla.gateways.registry.store import Store
from ottla.gateways.registry.thinking import Thinking
from ottla.gateways.session import Session
from ottla.registry import commands
from ottla.registry.commands import find_version, version_number
from ottla.registry.compatibility import incompatibilities
from ottla.registry.errors import (
    Incompatible,
    InvalidCompatibility,
    InvalidMode,
    InvalidSchema,
    NothingHere,
    RegistryError,
    SchemaNotFound,
    StoreTimeout,
    SubjectNotFound,
    VersionNotFound,
)
from ottla.registry.image import Image
from ottla.registry.levels import Level, Mode
from ottla.registry.parsing import parse, referenced, size
from ottla.registry.schemas import Registered, Schema
from ottla.server.doors import Visit

# Less than the door gives us, so that there is an answer.
ANSWER_SECONDS: Final = 50.0
DEFAULT_CONTEXT: Final = "."
# Settings beside the level, which to take and forget would be a lie.
NOT_KEPT: Final = (
    "normalize",
    "validateFields",
    "alias",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)


async def serve(visit: Visit, asked: Asked) -> Page:
    session = Session(visit.doors, visit.local)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            store = visit.doors.keep(Store)
            if changes_something(asked):
                writer = await store.writer(session)
                if writer is not None:
                    return await forward(visit, asked, writer)
            call = Call(store, visit.doors.keep(Thinking), session, asked)
            return answers.page(await call.answer())
    except RegistryError as error:
        return answers.refusal(error)
    except TimeoutError:
        return answers.refusal(StoreTimeout(f"There was no answer within {ANSWER_SECONDS:g} seconds"))


class Call:
    """One request."""

    def __init__(self, store: Store, thinking: Thinking, session: Session, asked: Asked) -> None:
        self._store = store
        self._thinking = thinking
        self._session = session
        self._asked = asked
        self._query = asked.query

    async def answer(self) -> Any:
        match self._asked.method, self._asked.steps:
            case "GET" | "HEAD", ["schemas", *steps]:
                return await looking.schemas(await self._image(), self._thinking, steps, self._query)
            case "GET" | "HEAD", ["subjects", *steps]:
                return await looking.subjects(await self._image(), self._thinking, steps, self._query)
            case "GET" | "HEAD", ["contexts"]:
                return [DEFAULT_CONTEXT]
            case "GET" | "HEAD", ["v1", "metadata", "id"]:
                return {
                    "id": "",
                    "scope": {"path": [], "clusters": {"kafka-cluster": self._store.cluster_id}},
                }
            case "POST", ["subjects", subject]:
                return await self._look_up(subject_of(subject))
            case "POST", ["subjects", subject, "versions"]:
                return await self._register(subject_of(subject))
            case "DELETE", ["subjects", subject]:
                return await self._delete_subject(subject)
            case "DELETE", ["subjects", subject, "versions", version]:
                return await self._delete_version(subject, version)
            case "POST", ["compatibility", "subjects", subject, "versions", *version] if len(version) < 2:
                return await self._compatibility(subject_of(subject), *version)
            case "GET" | "HEAD" | "PUT" | "DELETE" as method, ["config", *subject] if len(subject) < 2:
                return await self._config(method, *map(subject_of, subject))
            case "GET" | "HEAD" | "PUT" | "DELETE" as method, ["mode", *subject] if len(subject) < 2:
                return await self._mode(method, *map(subject_of, subject))
        raise NothingHere("HTTP 404 Not Found")

    async def _image(self) -> Image:
        return await self._store.image(self._session)

    async def _whole_image(self) -> Image:
        """What a change is decided on, by whoever has the turn."""
        return await self._store.image(self._session, to_write=True)

    # Registering

    async def _register(self, subject: str) -> Any:
        said = new_schema(self._asked.value())
        while True:
            image = await self._image()
            commands.check_may_register(image, subject, said.id)
            grounds = _grounds(image, subject, said.schema)
            schema = await self._understood(image, said, is_new=not image.mode_of(subject).brings_ids)
            known = commands.find_schema(image, subject, schema)
            if known is not None and said.id in (commands.NO_ID, known.id) and not said.version:
                return {"id": known.id}
            if not image.mode_of(subject).brings_ids:
                await self._check_compatible(image, subject, schema)
            async with self._store.turn:
                image = await self._whole_image()
                if _grounds(image, subject, said.schema) == grounds:
                    made, changes = commands.register(image, subject, schema, said.id, said.version)
                    await self._store.write(self._session, changes)
                    return {"id": made.id}

    async def _check_compatible(self, image: Image, subject: str, schema: Schema) -> None:
        level = image.level_of(subject).value
        found = await self._compared(image, subject, schema, image.versions(subject))
        if found:
            raise Incompatible(
                f"Schema being registered is incompatible with an earlier schema for subject "
                f"\"{subject}\", details: [{', '.join(found)}, {{compatibility: '{level}'}}]"
            )

    async def _understood(self, image: Image, said: NewSchema, *, is_new: bool) -> Schema:
        """A schema that was sent, in the form in which it is kept."""
        schema, normalize = said.schema, self._query.flag("normalize")
        references = referenced(schema, image)

        def understand() -> str:
            parsed = parse(schema.type, schema.text, references, is_new=is_new)
            return parsed.normalized if normalize else parsed.canonical

        text = await self._thinking.do(understand, size(schema.text, references))
        return Schema(schema.type, text, schema.references)

    async def _look_up(self, subject: str) -> Any:
        said = new_schema(self._asked.value())
        image = await self._image()
        schema = await self._understood(image, said, is_new=False)
        deleted = self._query.flag("deleted")
        found = commands.find_schema(image, subject, schema, deleted=deleted)
        if found is not None:
            return answers.version(
                found, await looking.text_of(found.schema, image, self._thinking, self._query)
            )
        if not image.versions(subject, deleted=deleted):
            raise SubjectNotFound(f"Subject '{subject}' not found.")
        raise SchemaNotFound("Schema not found")

    # Compatibility

    async def _compatibility(self, subject: str, version: str | None = None) -> Any:
        image = await self._image()
        previous = image.versions(subject)
        if version is not None:
            number = version_number(version)
            if previous:
                previous = [find_version(image, subject, number)]
            elif number != commands.LATEST:
                raise VersionNotFound(f"Version {number} not found.")
            # There may be no latest one, with which everything gets along.
        try:
            schema = await self._understood(image, new_schema(self._asked.value()), is_new=True)
            found = await self._compared(image, subject, schema, previous)
        except InvalidSchema as error:
            if not self._query.flag("verbose"):
                raise
            found = [str(error)]
        said: dict[str, Any] = {"is_compatible": not found}
        return said | ({"messages": found} if self._query.flag("verbose") else {})

    async def _compared(
        self, image: Image, subject: str, schema: Schema, previous: list[Registered]
    ) -> list[str]:
        level = image.level_of(subject)
        if level is Level.NONE:
            return []
        before = [each.schema for each in (previous if level.is_transitive else previous[-1:])]
        texts = [(each, referenced(each, image)) for each in (schema, *reversed(before))]
        is_given_up = Event()

        def compare() -> list[str]:
            new, *olds = texts
            parsed = parse(new[0].type, new[0].text, new[1])
            for old, used in olds:  # one at a time: all together they may be very large
                found = incompatibilities(level, parsed, [parse(old.type, old.text, used)])
                if found or is_given_up.is_set():
                    return found
            return []

        try:
            return await self._thinking.do(compare, sum(size(each.text, used) for each, used in texts))
        finally:
            is_given_up.set()

    # Deleting

    async def _delete_subject(self, subject: str) -> list[int]:
        async with self._store.turn:
            permanent = self._query.flag("permanent")
            numbers, changes = commands.delete_subject(
                await self._whole_image(), subject, permanent=permanent
            )
            await self._store.write(self._session, changes)
        return numbers

    async def _delete_version(self, subject: str, version: str) -> int:
        number = version_number(version)
        async with self._store.turn:
            permanent = self._query.flag("permanent")
            done, changes = commands.delete_version(
                await self._whole_image(), subject, number, permanent=permanent
            )
            await self._store.write(self._session, changes)
        return done

    # Settings

    async def _config(self, method: str, subject: str | None = None) -> Any:
        if method == "PUT":
            said = self._asked.value()
            for name in NOT_KEPT:
                if said.get(name):
                    raise InvalidCompatibility(f"{name} is not kept by this registry: leave it out")
            try:
                # Nothing said is not "None", which is a level.
                level = Level(str(said.get("compatibility") or "").upper())
            except ValueError:
                levels = ", ".join(each.value for each in Level)
                raise InvalidCompatibility(
                    f"Invalid compatibility level. Valid values are {levels}"
                ) from None
            async with self._store.turn:
                await self._store.write(
                    self._session, commands.set_level(await self._whole_image(), subject, level)
                )
            return {"compatibility": level.value}
        if method == "DELETE":
            async with self._store.turn:
                before, changes = commands.delete_level(await self._whole_image(), subject)
                await self._store.write(self._session, changes)
            return {"compatibilityLevel": before.value}
        image = await self._image()
        if subject is None or self._query.flag("defaultToGlobal"):
            return {"compatibilityLevel": image.level_of(subject).value}
        return {"compatibilityLevel": commands.level_of_its_own(image, subject).value}

    async def _mode(self, method: str, subject: str | None = None) -> Any:
        if method == "PUT":
            said = self._asked.value().get("mode")
            try:
                mode = Mode(str(said).upper())
            except ValueError:
                modes = ", ".join(each.value for each in Mode)
                raise InvalidMode(f"Invalid mode. Valid values are {modes}") from None
            if mode is Mode.FORWARD and subject is not None:
                raise InvalidMode("Forward mode only supported on global level")
            async with self._store.turn:
                force = self._query.flag("force")
                changes = commands.set_mode(await self._whole_image(), subject, mode, force=force)
                await self._store.write(self._session, changes)
            return {"mode": mode.value}
        if method == "DELETE":
            async with self._store.turn:
                before, changes = commands.delete_mode(await self._whole_image(), subject)
                await self._store.write(self._session, changes)
            return {"mode": before.value}
        image = await self._image()
        if subject is None or self._query.flag("defaultToGlobal"):
            return {"mode": image.mode_of(subject).value}
        return {"mode": commands.mode_of_its_own(image, subject).value}


def _grounds(image: Image, subject: str, schema: Schema) -> tuple[object, ...]:
    """All that it depends on whether a subject gets a schema for its next version."""
    return (
        image.mode_of(subject),
        image.level_of(subject),
        image.versions(subject, deleted=True),
        referenced(schema, image),
    )
