"""What a JSON Schema says, by what kind of value it speaks of.

The kinds are those of the library with which Confluent's registry compares schemas, since its answers follow
from them: a schema of strings and a schema of numbers differ in kind, whatever else they say. A schema that
says something about several kinds (`{"minLength": 1, "minimum": 1}`) is the `allOf` of one schema of each.

Every field has a default that means that the schema says nothing of it; `merged` relies on that."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, Literal, TypeVar

Criterion = Literal["allOf", "anyOf", "oneOf"]
Numeric = int | Decimal


class _Missing:
    """No default, which is not the same as a default of null."""


MISSING = _Missing()


# Compared by identity: pairs of subschemas are keys of what was compared already.
@dataclass(eq=False, slots=True, kw_only=True)
class Subschema:
    id: str | None = None
    title: str | None = None
    description: str | None = None
    default: Any = MISSING
    # Members that no keyword explains, as written.
    extra: dict[str, Any] = field(default_factory=dict)


class EmptySchema(Subschema):
    """Takes every value."""

    __slots__ = ()


class TrueSchema(EmptySchema):
    __slots__ = ()


class FalseSchema(Subschema):
    """Takes no value."""

    __slots__ = ()


class BooleanSchema(Subschema):
    __slots__ = ()


class NullSchema(Subschema):
    __slots__ = ()


@dataclass(eq=False, slots=True, kw_only=True)
class StringSchema(Subschema):
    typed: bool = False
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class NumberSchema(Subschema):
    typed: bool = False
    integer: bool = False
    minimum: Numeric | None = None
    maximum: Numeric | None = None
    exclusive_minimum: Numeric | None = None
    exclusive_maximum: Numeric | None = None
    multiple_of: Numeric | None = None
    # Draft 4 has booleans beside `minimum` and `maximum` instead of bounds of their own.
    minimum_is_exclusive: bool = False
    maximum_is_exclusive: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class ConstSchema(Subschema):
    value: Any = None


@dataclass(eq=False, slots=True, kw_only=True)
class EnumSchema(Subschema):
    values: list[Any] = field(default_factory=list)


@dataclass(eq=False, slots=True, kw_only=True)
class NotSchema(Subschema):
    refused: Subschema | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class ConditionalSchema(Subschema):
    condition: Subschema | None = None
    then: Subschema | None = None
    otherwise: Subschema | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class CombinedSchema(Subschema):
    criterion: Criterion = "allOf"
    parts: list[Subschema] = field(default_factory=list)
    # Made of keywords side by side, rather than written as allOf or anyOf.
    generated: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class ObjectSchema(Subschema):
    typed: bool = False
    properties: dict[str, Subschema] = field(default_factory=dict)
    pattern_properties: dict[str, Subschema] = field(default_factory=dict)
    closed: bool = False
    additional: Subschema | None = None
    unevaluated: Subschema | None = None
    required: list[str] = field(default_factory=list)
    min_properties: int | None = None
    max_properties: int | None = None
    property_dependencies: dict[str, list[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, Subschema] = field(default_factory=dict)
    property_names: Subschema | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class ArraySchema(Subschema):
    typed: bool = False
    all_items: Subschema | None = None
    items: list[Subschema] = field(default_factory=list)
    closed: bool = False
    additional: Subschema | None = None
    unevaluated: Subschema | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    contains: Subschema | None = None
    min_contains: int | None = None
    max_contains: int | None = None

    @property
    def permits_additional_items(self) -> bool:
        return not self.closed or self.all_items is not None or self.additional is not None


@dataclass(eq=False, slots=True, kw_only=True)
class ReferenceSchema(Subschema):
    ref: str = ""
    target: Subschema | None = None


S = TypeVar("S", bound=Subschema)


def merged(first: S, second: S) -> S:
    """One schema that says what two of the same kind say; of what only one may say, the second's."""
    changes: dict[str, Any] = {}
    for each in fields(first):
        mine, other = getattr(first, each.name), getattr(second, each.name)
        if isinstance(other, dict):
            changes[each.name] = {**mine, **other}
        elif isinstance(other, list):
            changes[each.name] = [*mine, *other]
        elif other is None or other is MISSING or other is False:
            changes[each.name] = mine
        else:
            changes[each.name] = other
    return replace(first, **changes)
