"""Whether a type that is defined twice is the same both times, which it has to be."""

from __future__ import annotations

import json

from ottla.registry.formats.avro.json import Json
from ottla.registry.formats.avro.types import (
    PRIMITIVES,
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
    Unresolved,
)


def is_same_definition(one: Type, other: Type) -> bool:
    """Whether a type may be defined as `other` after it was as `one`. Types with names within them are the
    same if their names are: where they were defined again they have been through this."""
    if one is other:
        return True
    if one.kind != other.kind or not _is_same_json(one.props, other.props):
        return False
    match one, other:
        case Record(), Record():
            return len(one.fields) == len(other.fields) and all(map(_is_same_field, one.fields, other.fields))
        case Enum(), Enum():
            return one.symbols == other.symbols
        case Fixed(), Fixed():
            return one.size == other.size
        case Array(), Array():
            return _is_same_use(one.items, other.items)
        case Map(), Map():
            return _is_same_use(one.values, other.values)
        case Union(), Union():
            return len(one.branches) == len(other.branches) and all(
                map(_is_same_use, one.branches, other.branches)
            )
    return one.kind in PRIMITIVES


def _is_same_field(one: Field, other: Field) -> bool:
    if isinstance(one.default, NoDefault) or isinstance(other.default, NoDefault):
        same_default = one.default is other.default
    else:
        same_default = _is_same_json(one.default, other.default)
    return (
        same_default
        and one.name == other.name
        and one.order == other.order
        and _is_same_json(one.props, other.props)
        and _is_same_use(one.type, other.type)
    )


def _is_same_use(one: Type, other: Type) -> bool:
    if isinstance(one, (Named, Unresolved)) or isinstance(other, (Named, Unresolved)):
        return one.full_name == other.full_name
    return is_same_definition(one, other)


def _is_same_json(one: Json, other: Json) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
