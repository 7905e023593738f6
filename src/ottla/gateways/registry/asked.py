"""A request to the registry, and what is read from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from ottla.registry.commands import NO_ID
from ottla.registry.errors import BadRequest, InvalidSchema, InvalidSubject, UnsupportedMediaType
from ottla.registry.records import read_number, read_references
from ottla.registry.schemas import Schema, SchemaType

JSON: Final = "application/json"
OURS: Final = "application/vnd.schemaregistry."
FIELDS_MAX: Final = 100
# What the registry does not keep; to take it and forget it would be a lie.
NOT_KEPT: Final = ("metadata", "ruleSet")


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    target: str
    content_type: str
    body: bytes
    is_forwarded: bool = False  # by another broker

    @property
    def steps(self) -> list[str]:
        """The parts of the path. A subject may have a slash in it, which is then written %2F."""
        path = self.target.partition("?")[0]
        return [unquote(step) for step in path.strip("/").split("/")]

    @property
    def query(self) -> Query:
        try:
            found = parse_qs(self.target.partition("?")[2], max_num_fields=FIELDS_MAX)
        except ValueError:
            raise BadRequest(f"A query has at most {FIELDS_MAX} fields") from None
        return Query({name: values[-1] for name, values in found.items()})

    def value(self) -> dict[str, Any]:
        """The body, which is an object. Its type has to be said, which keeps web pages of others out."""
        said = self.content_type.partition(";")[0].strip().lower()
        if said != JSON and not said.startswith(OURS):
            raise UnsupportedMediaType(f"The body has to be {OURS}v1+json, or {JSON}, and say so")
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"The body is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise BadRequest("The body is not a JSON object")
        return value


class Query(dict[str, str]):
    """What follows the question mark."""

    def flag(self, name: str) -> bool:
        return self.get(name, "").lower() == "true"

    def number(self, name: str, default: int) -> int:
        text = self.get(name, str(default))
        try:
            return int(text[:20])
        except ValueError:
            raise BadRequest(f"{name} is a number, not {text!r}") from None

    def page(self, found: list[Any], limit: int = -1) -> list[Any]:
        """The part of a list that `offset` and `limit` say; at most `limit` of it, if one is given."""
        first, most = max(0, self.number("offset", 0)), self.number("limit", -1)
        if limit >= 0:
            most = min(most, limit) if most >= 0 else limit
        return found[first:] if most < 0 else found[first : first + most]


@dataclass(frozen=True, slots=True)
class NewSchema:
    """A schema that somebody sent, as yet without checking its text."""

    schema: Schema
    id: int
    version: int


def new_schema(value: dict[str, Any]) -> NewSchema:
    for name in NOT_KEPT:
        if value.get(name):
            raise InvalidSchema(f"{name} is not kept by this registry: leave it out")
    text = value.get("schema")
    if not isinstance(text, str) or not text.strip():
        raise InvalidSchema("Empty schema")
    kind = value.get("schemaType") or SchemaType.AVRO.value
    try:
        known = SchemaType(kind)
    except ValueError:
        kinds = ", ".join(each.value for each in SchemaType)
        raise InvalidSchema(f"Invalid schema type {str(kind)[:200]}: there are {kinds}") from None
    try:
        references = read_references(value.get("references"))
        schema_id, version = read_number(value.get("id") or NO_ID), read_number(value.get("version") or 0)
    except (KeyError, TypeError, ValueError):
        raise InvalidSchema("A reference has a name, a subject and a version; ids are numbers") from None
    schema = Schema(known, text, references)
    if not schema.is_text:
        raise InvalidSchema("A schema and its references are text: this has half of a surrogate pair")
    return NewSchema(schema, schema_id, version)


def subject_of(text: str) -> str:
    """A name that a subject may have."""
    if not text or len(text) > 10_000 or any(ord(each) < 32 or 127 <= ord(each) < 160 for each in text):
        raise InvalidSubject(f"The specified subject '{text[:200]}' is not a valid.")
    return text
