"""Which logical types Avro's Java library knows, and on which types they mean anything."""

from __future__ import annotations

import math
from typing import Final

from ottla.registry.formats.avro.json import Json
from ottla.registry.formats.avro.types import Array, Fixed, Record, Type

_PLAIN: Final = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "big-decimal": "bytes",
}


def logical_type(of: Type) -> str | None:
    """None as well if it is set but does not go with the type: it is then an attribute like any other."""
    name = of.props.get("logicalType")
    if not isinstance(name, str):
        return None
    match name:
        case "decimal":
            valid = _is_decimal(of)
        case "uuid":
            valid = of.kind == "string" or (isinstance(of, Fixed) and of.size == 16)
        case "duration":
            valid = isinstance(of, Fixed) and of.size == 12
        case "map":  # Confluent's own, as is the next.
            valid = (
                isinstance(of, Array)
                and isinstance(of.items, Record)
                and _fields(of.items) == ["key", "value"]
            )
        case "variant":
            valid = (
                isinstance(of, Record)
                and sorted(_fields(of)) == ["metadata", "value"]
                and all(field.type.kind == "bytes" for field in of.fields)
            )
        case _:
            valid = _PLAIN.get(name) == of.kind
    return name if valid else None


def _is_decimal(of: Type) -> bool:
    precision, scale = of.props.get("precision"), of.props.get("scale", 0)
    if not _is_int(precision) or not _is_int(scale):
        return False
    assert isinstance(precision, int) and isinstance(scale, int)
    if of.kind == "bytes":
        most: float = 2**31 - 1
    elif isinstance(of, Fixed):
        most = math.floor(math.log10(2) * (8 * of.size - 1))
    else:
        return False
    return 0 < precision <= most and 0 <= scale <= precision


def _is_int(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31


def _fields(record: Record) -> list[str]:
    return [field.name for field in record.fields]
