"""Whether a field's default is a value of its type.

Any branch of a union will do, not just the first. Of texts nothing is asked: neither whether an enum has the
symbol nor whether a fixed has that size. That is what Avro's Java parser checks.
"""

from __future__ import annotations

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.avro.json import MAX_NESTING, Json, excerpt
from ottla.registry.formats.avro.types import Array, Field, Map, NoDefault, Record, Type, Union


class Defaults:
    """Remembers what was found to fit: a record that gets its fields' defaults, each of them a record that
    does so too, would else be gone through once for every way that leads to it."""

    def __init__(self) -> None:
        self._fits: dict[tuple[int, int], bool] = {}

    def check(self, field: Field) -> None:
        if isinstance(field.default, NoDefault) or self._is_value(field.type, field.default, field, 0):
            return
        raise InvalidSchema(
            f"Invalid default for field {field.name}: {excerpt(field.default)} not a {field.type.full_name}"
            f" (at {field.path})"
        )

    def _is_value(self, of: Type, value: Json, field: Field, depth: int) -> bool:
        match of.kind:
            case "string" | "bytes" | "enum" | "fixed":
                return isinstance(value, str)
            case "int":
                return _is_integer(value, 32)
            case "long":
                return _is_integer(value, 64)
            case "float" | "double":
                return isinstance(value, (int, float)) and not isinstance(value, bool)
            case "boolean":
                return isinstance(value, bool)
            case "null":
                return value is None
        # By identity: both are held by the schema for as long as this lives.
        pair = id(of), id(value)
        if pair not in self._fits:
            # A record that by default holds itself never ends.
            if depth > MAX_NESTING:
                raise InvalidSchema(
                    f"The default of field {field.name} is nested deeper than {MAX_NESTING} levels"
                    f" (at {field.path})"
                )
            self._fits[pair] = self._is_value_of_container(of, value, field, depth + 1)
        return self._fits[pair]

    def _is_value_of_container(self, of: Type, value: Json, field: Field, depth: int) -> bool:
        if isinstance(of, Union):
            fits = False
            for branch in of.branches:
                fits = fits or self._is_value(branch, value, field, depth)
            return fits
        parts: list[tuple[Type, Json | NoDefault]]
        match of, value:
            case Array(), list():
                parts = [(of.items, item) for item in value]
            case Map(), dict():
                parts = [(of.values, item) for item in value.values()]
            case Record(), dict():
                parts = [(part.type, value.get(part.name, part.default)) for part in of.fields]
            case _:
                return False
        fits = True
        for type, part in parts:
            fits = fits and not isinstance(part, NoDefault) and self._is_value(type, part, field, depth)
        return fits


def _is_integer(value: Json, bits: int) -> bool:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    limit: int = 2 ** (bits - 1)
    return -limit <= value < limit
