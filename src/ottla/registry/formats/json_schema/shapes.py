"""Which subschemas say the same: they have the same shape, which is a number."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ottla.registry.formats.json_schema.model import MISSING, ReferenceSchema, Subschema
from ottla.registry.formats.json_schema.text import write


def shape(schema: Subschema, shapes: dict[object, int], shape_of: dict[Subschema, int]) -> int:
    """The number of the shape of a subschema, the same for those that say the same. `shapes` has the numbers
    given so far, `shape_of` those of subschemas that were asked for before."""
    known = shape_of.get(schema)
    if known is not None:
        return known
    said: list[object] = [type(schema)]
    for each in fields(schema):
        value = getattr(schema, each.name)
        # A reference is what it is written as: what it refers to may contain it.
        if isinstance(schema, ReferenceSchema) and each.name == "target":
            continue
        said.append(_key(value, shapes, shape_of))
    number = shapes.setdefault(tuple(said), len(shapes))
    shape_of[schema] = number
    return number


def _key(value: Any, shapes: dict[object, int], shape_of: dict[Subschema, int]) -> object:
    if isinstance(value, Subschema):
        return ("schema", shape(value, shapes, shape_of))
    if value is MISSING:
        return None
    if isinstance(value, dict) and any(isinstance(each, Subschema) for each in value.values()):
        return frozenset((name, shape(each, shapes, shape_of)) for name, each in value.items())
    if isinstance(value, list) and any(isinstance(each, Subschema) for each in value):
        return tuple(shape(each, shapes, shape_of) for each in value)
    return write(value, ordered=True)
