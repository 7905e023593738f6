"""The client of a schema registry, Ottla's or any that speaks Confluent's REST API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from ottla.client.registry_exchange import Exchange, NoRegistry, RegistryRefused
from ottla.registry.records import read_references, read_registered, reference_json
from ottla.registry.schemas import Registered, Schema, SchemaType

PAGE: Final = 100

T = TypeVar("T")


class Registry:
    """What can be asked of a registry. All raise ClientError, for what it refuses RegistryRefused."""

    def __init__(self, exchange: Exchange) -> None:
        self._ask = exchange.ask
        self._exchange = exchange

    # Reading

    def all_versions(self, *, deleted: bool = False) -> list[Registered]:
        """All versions of all subjects."""
        found: dict[tuple[str, int], Registered] = {}
        while True:
            answer = self._ask("GET", "schemas", deleted=deleted, offset=len(found), limit=PAGE)
            page = self._read(lambda given: [read_registered(each) for each in given], answer)
            known = len(found)
            found |= {(each.subject, each.version): each for each in page}
            # There are registries that do not know of pages: they give everything every time.
            if len(page) != PAGE or len(found) == known:
                return [found[key] for key in sorted(found)]

    def version(self, subject: str, version: str, *, deleted: bool = False) -> Registered:
        """A version of a subject by its number, or `latest`."""
        answer = self._ask("GET", "subjects", subject, "versions", version, deleted=deleted)
        return self._read(read_registered, answer)

    def by_id(self, schema_id: int) -> Schema:
        answer = self._ask("GET", "schemas", "ids", str(schema_id))
        return self._read(_schema, answer)

    def users_of_id(self, schema_id: int) -> list[tuple[str, int]]:
        """The subjects and versions that have the schema of this id."""
        answer = self._ask("GET", "schemas", "ids", str(schema_id), "versions")
        return self._read(
            lambda given: [(str(each["subject"]), int(each["version"])) for each in given], answer
        )

    def look_up(self, subject: str, schema: Schema) -> Registered | None:
        """The version of a subject that has this schema."""
        try:
            answer = self._ask("POST", "subjects", subject, value=_json(schema))
        except RegistryRefused as error:
            if error.status == 404:
                return None
            raise
        return self._read(read_registered, answer)

    # Writing

    def register(self, subject: str, schema: Schema) -> int:
        """Make a schema the next version of a subject, if it is none yet: its id."""
        answer = self._ask("POST", "subjects", subject, "versions", value=_json(schema))
        return self._read(lambda given: int(given["id"]), answer)

    def remove_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """The versions that were removed. For good only what was removed before."""
        answer = self._ask("DELETE", "subjects", subject, permanent=permanent)
        return self._read(lambda given: [int(each) for each in given], answer)

    def remove_version(self, subject: str, version: str, *, permanent: bool = False) -> int:
        answer = self._ask("DELETE", "subjects", subject, "versions", version, permanent=permanent)
        return self._read(int, answer)

    # Compatibility

    def check(self, subject: str, schema: Schema) -> tuple[bool, list[str]]:
        """Whether a schema gets along with the versions that the level says, and what speaks against it."""
        steps = ("compatibility", "subjects", subject, "versions")
        answer = self._ask("POST", *steps, value=_json(schema), verbose=True)
        return self._read(_checked, answer)

    def level(self, subject: str | None = None) -> str:
        """The level that counts for a subject, or that of all which have none of their own."""
        if subject is None:
            return self._read(_level, self._ask("GET", "config"))
        return self._read(_level, self._ask("GET", "config", subject, defaultToGlobal=True))

    def own_level(self, subject: str) -> str | None:
        try:
            return self._read(_level, self._ask("GET", "config", subject))
        except RegistryRefused as error:
            if error.status == 404:
                return None
            raise

    def set_level(self, subject: str | None, level: str) -> None:
        self._ask("PUT", *_config(subject), value={"compatibility": level})

    def reset_level(self, subject: str | None) -> None:
        self._ask("DELETE", *_config(subject))

    def _read(self, read: Callable[[Any], T], answer: Any) -> T:
        try:
            return read(answer)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NoRegistry(f"{self._exchange} does not answer like a schema registry: {error!r}") from None


def _json(schema: Schema) -> dict[str, Any]:
    said: dict[str, Any] = {"schema": schema.text}
    if schema.type is not SchemaType.AVRO:
        said["schemaType"] = schema.type.value
    if schema.references:
        said["references"] = [reference_json(each) for each in schema.references]
    return said


def _schema(answer: Any) -> Schema:
    kind = SchemaType(answer.get("schemaType") or SchemaType.AVRO.value)
    return Schema(kind, str(answer["schema"]), read_references(answer.get("references")))


def _level(answer: Any) -> str:
    return str(answer["compatibilityLevel"])


def _checked(answer: Any) -> tuple[bool, list[str]]:
    return answer["is_compatible"] is True, [str(each) for each in answer.get("messages") or ()]


def _config(subject: str | None) -> tuple[str, ...]:
    return ("config",) if subject is None else ("config", subject)
