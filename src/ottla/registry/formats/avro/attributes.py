"""Attributes of a type or a field, taken out of its JSON."""

from __future__ import annotations

import re

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.avro.json import Json, excerpt
from ottla.registry.formats.avro.types import NO_DEFAULT, NoDefault, Type

_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")


def invalid(what: str, path: str) -> InvalidSchema:
    return InvalidSchema(f"{what} (at {path or '/'})")


def text_of(schema: dict[str, Json], key: str) -> str | None:
    value = schema.get(key)
    return value if isinstance(value, str) else None


def props_of(schema: dict[str, Json], reserved: frozenset[str]) -> dict[str, Json]:
    return {key: value for key, value in schema.items() if key not in reserved}


def aliases_of(schema: dict[str, Json], path: str) -> tuple[str, ...]:
    given = schema.get("aliases", [])
    if not isinstance(given, list):
        raise invalid(f"aliases not an array: {excerpt(given)}", path)
    aliases: dict[str, None] = {}
    for alias in given:
        if not isinstance(alias, str):
            raise invalid(f"alias not a string: {excerpt(alias)}", path)
        aliases[alias] = None
    return tuple(aliases)


def default_of(schema: dict[str, Json], field_type: Type, path: str) -> Json | NoDefault:
    if "default" not in schema:
        return NO_DEFAULT
    default = schema["default"]
    if field_type.kind not in ("float", "double") or not isinstance(default, str):
        return default
    # As text, since JSON has no words for what is not a number.
    if not _DOUBLE.fullmatch(text := default.strip()):
        raise invalid(f"Invalid default: {excerpt(default)} not a {field_type.kind}", path)
    return float(text.rstrip("fFdD"))
