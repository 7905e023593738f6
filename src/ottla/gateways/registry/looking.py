"""Looking things up: subjects, versions and schemas, as they are kept."""

from __future__ import annotations

import base64
from typing import Any, Final

from ottla.gateways.registry import answers
from ottla.gateways.registry.asked import Query
from ottla.gateways.registry.thinking import Thinking
from ottla.registry.commands import find_version, version_number
from ottla.registry.errors import NothingHere, SchemaNotFound, SubjectNotFound
from ottla.registry.image import Image
from ottla.registry.parsing import parse, referenced, size
from ottla.registry.schemas import Registered, Schema, SchemaType

# More than any id has, and few enough to be read as a number.
DIGITS_MAX: Final = 20
# Whole schemas in one answer, which is as many as Confluent's registry gives; `offset` leads to the others.
SCHEMAS_MAX: Final = 1_000


async def schemas(image: Image, thinking: Thinking, steps: list[str], query: Query) -> Any:
    """GET /schemas/…"""
    deleted = query.flag("deleted")
    match steps:
        case []:
            found = [each for each in image if deleted or not each.deleted]
            found = [each for each in found if each.subject.startswith(query.get("subjectPrefix", ""))]
            if query.flag("latestOnly"):
                found = list({each.subject: each for each in found}.values())
            return [answers.version(each) for each in query.page(found, SCHEMAS_MAX)]
        case ["types"]:
            return [each.value for each in (SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO)]
        case ["ids", number]:
            schema = _by_id(image, number)
            said = answers.schema(schema, await text_of(schema, image, thinking, query))
            return said | ({"maxId": image.last_id} if query.flag("fetchMaxId") else {})
        case ["ids", number, "schema"]:
            return answers.Text(await text_of(_by_id(image, number), image, thinking, query))
        case ["ids", number, "subjects"]:
            return query.page(sorted({each.subject for each in _with_id(image, number, deleted)}))
        case ["ids", number, "versions"]:
            found = _with_id(image, number, deleted)
            return query.page([{"subject": each.subject, "version": each.version} for each in found])
    raise NothingHere("HTTP 404 Not Found")


async def subjects(image: Image, thinking: Thinking, steps: list[str], query: Query) -> Any:
    """GET /subjects/…"""
    deleted = query.flag("deleted")
    match steps:
        case []:
            return query.page(sorted(_names(image, query)))
        case [subject, "versions"]:
            return query.page([each.version for each in _versions(image, subject, query)])
        case [subject, "versions", number]:
            found = find_version(image, subject, version_number(number), deleted=deleted)
            return answers.version(found, await text_of(found.schema, image, thinking, query))
        case [subject, "versions", number, "schema"]:
            found = find_version(image, subject, version_number(number), deleted=deleted)
            return answers.Text(await text_of(found.schema, image, thinking, query))
        case [subject, "versions", number, "referencedby"]:
            found = find_version(image, subject, version_number(number), deleted=deleted)
            users = image.users_of(subject, found.version, deleted=deleted)
            return query.page(sorted({each.id for each in users}))
    raise NothingHere("HTTP 404 Not Found")


def _names(image: Image, query: Query) -> list[str]:
    # Confluent's default prefix, `:*:`, means every context: all that there is.
    prefix = query.get("subjectPrefix", "").removeprefix(":*:")
    only_deleted = query.flag("deletedOnly")
    return [
        name
        for name in image.subjects
        if name.startswith(prefix)
        and (not image.versions(name) if only_deleted else _versions_or_none(image, name, query))
    ]


def _versions(image: Image, subject: str, query: Query) -> list[Registered]:
    found = _versions_or_none(image, subject, query)
    if not found:
        raise SubjectNotFound(f"Subject '{subject}' not found.")
    return found


def _versions_or_none(image: Image, subject: str, query: Query) -> list[Registered]:
    if query.flag("deletedOnly"):
        return [each for each in image.versions(subject, deleted=True) if each.deleted]
    return image.versions(subject, deleted=query.flag("deleted"))


async def text_of(schema: Schema, image: Image, thinking: Thinking, query: Query) -> str:
    """As it is kept, or in the form that is asked for."""
    if schema.type is not SchemaType.PROTOBUF or query.get("format") != "serialized":
        return schema.text
    references = referenced(schema, image)

    def compiled() -> str:
        parsed: Any = parse(schema.type, schema.text, references)
        return base64.b64encode(parsed.descriptor).decode()

    return await thinking.do(compiled, size(schema.text, references))


def _by_id(image: Image, number: str) -> Schema:
    schema = image.schemas.get(_id(number))
    if schema is None:
        raise SchemaNotFound(f"Schema {number} not found")
    return schema


def _with_id(image: Image, number: str, deleted: bool) -> list[Registered]:
    _by_id(image, number)
    return [each for each in image.with_id(_id(number)) if deleted or not each.deleted]


def _id(number: str) -> int:
    if not number.isascii() or not number.isdigit():
        raise NothingHere("HTTP 404 Not Found")
    if len(number) > DIGITS_MAX:
        raise SchemaNotFound(f"Schema {number[:DIGITS_MAX]}… not found")
    return int(number)
