"""A schema with everything that has no order put into one, as Confluent's registry does it.

Attributes that mean nothing to Avro are sorted, and aliases too. It goes further than order, and so does
this: names are written in full, so that a type without a namespace gets into the one it is used in; an error
becomes a record; documentation that is empty is left out; a default is written as its type would write it, 1
of a double as 1.0. Of a union that type is the first one, and a default that is not of that type is left out.

Where Confluent's fails altogether, on values within such a default, ours keeps them as they are.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

from ottla.registry.formats.avro.json import Json
from ottla.registry.formats.avro.logical_types import logical_type
from ottla.registry.formats.avro.types import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    NoDefault,
    Record,
    Type,
    Union,
)


def normal(schema: Type, referenced: Iterable[str]) -> Json:
    """To be parsed again. `referenced` are full names of types that other schemas define."""
    return _Normal(set(referenced)).of(schema)


class _Normal:
    def __init__(self, named: set[str]) -> None:
        self._named = named

    def of(self, schema: Type) -> Json:
        match schema:
            case Union():
                return [self.of(branch) for branch in schema.branches]
            case Named():
                return self._of_named(schema)
            case Array():
                return {"type": "array", "items": self.of(schema.items), **_attributes(schema)}
            case Map():
                return {"type": "map", "values": self.of(schema.values), **_attributes(schema)}
        return {"type": schema.kind, **_attributes(schema)} if schema.props else schema.kind

    def _of_named(self, schema: Named) -> Json:
        name = schema.name.full
        if name in self._named:
            return name
        self._named.add(name)
        json: dict[str, Json] = {"name": name, "type": schema.kind}
        match schema:
            case Record():
                json["fields"] = [self._of_field(field) for field in schema.fields]
            case Enum():
                json["symbols"] = list(schema.symbols)
                if schema.default is not None:
                    json["default"] = schema.default
            case Fixed():
                json["size"] = schema.size
        if schema.doc:
            json["doc"] = schema.doc
        if schema.aliases:
            json["aliases"] = [*sorted(schema.alias_names)]
        json.update(_attributes(schema))
        return json

    def _of_field(self, field: Field) -> Json:
        json: dict[str, Json] = {"name": field.name, "type": self.of(field.type), "order": field.order}
        if field.doc is not None:
            json["doc"] = field.doc
        if field.aliases:
            json["aliases"] = [*sorted(field.aliases)]
        if not isinstance(field.default, NoDefault):
            default = _as_written_by(field.type, field.default)
            if not isinstance(default, NoDefault):
                json["default"] = default
        json.update({key: _sorted(field.props[key]) for key in sorted(field.props)})
        return json


def _attributes(schema: Type) -> dict[str, Json]:
    """The logical type first, if it is one, with what belongs to it."""
    first: list[str] = []
    if (logical := logical_type(schema)) is not None:
        first.append("logicalType")
        if logical == "decimal":
            first.append("precision")
            if schema.props.get("scale"):
                first.append("scale")
    order = dict.fromkeys(first) | dict.fromkeys(sorted(schema.props))
    return {key: _sorted(schema.props[key]) for key in order}


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value


def _as_written_by(of: Type, value: Json) -> Json | NoDefault:
    while isinstance(of, Union):
        if not of.branches:
            return _sorted(value)
        of = of.branches[0]
    match value:
        case None | bool():
            return value
        case int() | float():
            return _as_number(of.kind, value)
        case str():
            if of.kind in ("bytes", "fixed"):
                return value.encode("latin-1", "replace").decode("latin-1")
            return value if of.kind in ("string", "enum") else NO_DEFAULT
        case list():
            if not isinstance(of, Array):
                return _sorted(value)
            return [_sorted_unless(_as_written_by(of.items, item), item) for item in value]
        case dict():
            types: dict[str, Type] = {}
            if isinstance(of, Map):
                types = dict.fromkeys(value, of.values)
            elif isinstance(of, Record):
                types = {field.name: field.type for field in of.fields}
            by_key: dict[str, Json] = {}
            for key in sorted(value):
                written = _as_written_by(types[key], value[key]) if key in types else NO_DEFAULT
                by_key[key] = _sorted_unless(written, value[key])
            return by_key


def _sorted_unless(written: Json | NoDefault, value: Json) -> Json:
    return _sorted(value) if isinstance(written, NoDefault) else written


def _as_number(kind: str, value: int | float) -> Json | NoDefault:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return NO_DEFAULT
    match kind:
        case "double":
            return float(value)
        case "float":
            return _shortest_of_single(value)
        case "int" | "long" if isinstance(value, int):
            return value
    return NO_DEFAULT


def _shortest_of_single(value: int | float) -> float:
    """The number with the fewest digits that is the same when rounded to 32 bits."""
    try:
        single = struct.pack("f", value)
    except OverflowError:
        return math.copysign(math.inf, value)
    (exact,) = struct.unpack("f", single)
    for digits in range(1, 9):
        shortest = float(f"{exact:.{digits}g}")
        # Rounded up, the largest may be too large.
        if abs(shortest) < 2.0**128 and struct.pack("f", shortest) == single:
            return shortest
    return float(f"{exact:.9g}")
