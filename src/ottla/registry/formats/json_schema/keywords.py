"""The values of keywords, each checked to be what the keyword asks for.

There is no look at the meta-schema: what a registry has to refuse is what it could not compare later, and the
keywords that nobody reads may say what they like. That is also what Confluent's does."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.json_schema.model import Numeric
from ottla.registry.formats.json_schema.text import kind

MAX_INT = 2**31 - 1


def wrong(where: str, name: str, wanted: str, value: Any) -> InvalidSchema:
    return InvalidSchema(f"{where}: {name} must be {wanted}, not {kind(value)}")


def text(raw: dict[str, Any], name: str, where: str) -> str | None:
    if name not in raw:
        return None
    value = raw[name]
    if not isinstance(value, str):
        raise wrong(where, name, "a string", value)
    return value


def boolean(raw: dict[str, Any], name: str, where: str) -> bool:
    value = raw.get(name, False)
    if not isinstance(value, bool):
        raise wrong(where, name, "a boolean", value)
    return value


def number(raw: dict[str, Any], name: str, where: str) -> Numeric | None:
    if name not in raw:
        return None
    value = raw[name]
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise wrong(where, name, "a number", value)
    return value


def integer(raw: dict[str, Any], name: str, where: str) -> int | None:
    """For drafts 4 to 7, in which 5.0 is no integer."""
    value = number(raw, name, where)
    if value is None:
        return None
    if not isinstance(value, int) or not -MAX_INT - 1 <= value <= MAX_INT:
        raise InvalidSchema(f"{where}: {name} must be an integer of 32 bits, not {value}")
    return value


def whole(raw: dict[str, Any], name: str, where: str) -> int | None:
    """For later drafts, in which 5.0 is an integer; what comes after the point is cut off."""
    value = number(raw, name, where)
    if value is None:
        return None
    return int(max(-MAX_INT - 1, min(MAX_INT, value)))


def array(raw: dict[str, Any], name: str, where: str) -> list[Any]:
    value = raw.get(name, [])
    if not isinstance(value, list):
        raise wrong(where, name, "an array", value)
    return value


def texts(raw: dict[str, Any], name: str, where: str) -> list[str]:
    values = array(raw, name, where)
    for value in values:
        if not isinstance(value, str):
            raise wrong(where, f"what is in {name}", "a string", value)
    return values


def mapping(raw: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    value = raw.get(name, {})
    if not isinstance(value, dict):
        raise wrong(where, name, "an object", value)
    return value
