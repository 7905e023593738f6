"""Comparisons of two subschemas, by kind."""

from __future__ import annotations

from collections.abc import Generator
from decimal import Decimal
from fractions import Fraction

from ottla.registry.formats.json_schema.arrays import arrays
from ottla.registry.formats.json_schema.changes import Change
from ottla.registry.formats.json_schema.comparison import Comparison, Steps, Trial
from ottla.registry.formats.json_schema.contents import bounds
from ottla.registry.formats.json_schema.differences import Differences
from ottla.registry.formats.json_schema.matching import matching
from ottla.registry.formats.json_schema.model import (
    ArraySchema,
    CombinedSchema,
    ConstSchema,
    EmptySchema,
    EnumSchema,
    FalseSchema,
    NotSchema,
    NumberSchema,
    Numeric,
    ObjectSchema,
    StringSchema,
    Subschema,
)
from ottla.registry.formats.json_schema.objects import objects

# Exact arithmetic with numbers of more digits than this has no bound worth having.
_MAX_EXPONENT = 1000


Asked = Generator[Trial, Differences, bool]


def compared(run: Comparison, found: Differences, original: Subschema, update: Subschema) -> Steps:
    """Adds to `found` what is different between a pair of subschemas."""
    if type(original) is not type(update):
        fits = False
        if isinstance(update, CombinedSchema):
            fits = yield from _is_alternative(found, original, update)
        elif isinstance(original, CombinedSchema):
            fits = yield from _is_part(found, original, update)
        if not fits:
            _kinds(found, original, update)
        return
    run.spend(_size(original) + _size(update))
    if original.id != update.id:
        found.add(Change.ID_CHANGED)
    if original.title != update.title:
        found.add(Change.TITLE_CHANGED)
    if original.description != update.description:
        found.add(Change.DESCRIPTION_CHANGED)
    if run.text(original.default) != run.text(update.default):
        found.add(Change.DEFAULT_CHANGED)
    match original, update:
        case StringSchema(), StringSchema():
            _strings(found, original, update)
        case NumberSchema(), NumberSchema():
            _numbers(found, original, update)
        case ConstSchema(), ConstSchema():
            if run.text(original.value) != run.text(update.value):
                found.add(Change.ENUM_ARRAY_CHANGED, "const")
        case EnumSchema(), EnumSchema():
            _enums(run, found, original, update)
        case CombinedSchema(), CombinedSchema():
            yield from _combined(run, found, original, update)
        case NotSchema(refused=Subschema() as before), NotSchema(refused=Subschema() as after):
            # What the writer excludes has to take in what the reader does: the other way round.
            inner = yield Trial(after, before)
            found.add(Change.NOT_TYPE_NARROWED if inner.compatible else Change.NOT_TYPE_EXTENDED, "not")
        case ObjectSchema(), ObjectSchema():
            yield from objects(run, found, original, update)
        case ArraySchema(), ArraySchema():
            yield from arrays(found, original, update)


def _kinds(found: Differences, original: Subschema, update: Subschema) -> None:
    if isinstance(original, FalseSchema) or isinstance(update, EmptySchema):
        return
    # Kafka Connect writes decimals as strings or as numbers, which are bytes to it in any case.
    if original.extra.get("connect.type") == "bytes" == update.extra.get("connect.type"):
        return
    found.add(Change.TYPE_CHANGED)


def _is_alternative(found: Differences, original: Subschema, update: CombinedSchema) -> Asked:
    """Whether the reader takes what the writer writes as one of several things it takes."""
    alone = len(update.parts) == 1
    if alone or update.criterion != "allOf":
        for part in update.parts:
            inner = yield Trial(original, part)
            if inner.compatible:
                found.include(inner)
                if not alone:
                    found.add(Change.SUM_TYPE_EXTENDED)
                return True
    return False


def _is_part(found: Differences, original: CombinedSchema, update: Subschema) -> Asked:
    """Whether the reader takes what the writer writes for one of the things that it always is."""
    alone = len(original.parts) == 1
    if alone or original.criterion == "allOf":
        for part in original.parts:
            inner = yield Trial(part, update)
            if inner.compatible:
                found.include(inner)
                if not alone:
                    found.add(Change.PRODUCT_TYPE_NARROWED)
                return True
    return False


def _combined(run: Comparison, found: Differences, original: CombinedSchema, update: CombinedSchema) -> Steps:
    if original.criterion != update.criterion:
        alone, still_alone = len(original.parts) == 1, len(update.parts) == 1
        if (
            update.criterion == "anyOf"
            or (alone and (still_alone or update.criterion == "oneOf"))
            or (still_alone and original.criterion == "allOf")
        ):
            found.add(Change.COMBINED_TYPE_EXTENDED)
        else:
            found.add(Change.COMBINED_TYPE_CHANGED)
            return
    before, after = run.distinct(original.parts), run.distinct(update.parts)
    if len(before) < len(after):
        product = update.criterion == "allOf"
        found.add(Change.PRODUCT_TYPE_EXTENDED if product else Change.SUM_TYPE_EXTENDED)
    elif len(before) > len(after):
        product = original.criterion == "allOf"
        found.add(Change.PRODUCT_TYPE_NARROWED if product else Change.SUM_TYPE_NARROWED)
    edges: list[list[int]] = []
    fitting: dict[tuple[int, int], Differences] = {}
    for left, part in enumerate(before):
        edges.append([])
        for right, other in enumerate(after):
            inner = yield Trial(part, other)
            if inner.compatible:
                edges[left].append(right)
                fitting[left, right] = inner
    matched = matching(edges)
    for left, right in matched.items():
        found.include(fitting[left, right], original.criterion, str(left))
    if len(matched) < min(len(before), len(after)):
        found.add(Change.COMBINED_TYPE_SUBSCHEMAS_CHANGED)


def _strings(found: Differences, original: StringSchema, update: StringSchema) -> None:
    bounds(found, "maxLength", "MAX_LENGTH", original.max_length, update.max_length)
    bounds(found, "minLength", "MIN_LENGTH", original.min_length, update.min_length)
    if original.pattern == update.pattern:
        return
    if original.pattern is None:
        found.add(Change.PATTERN_ADDED, "pattern")
    elif update.pattern is None:
        found.add(Change.PATTERN_REMOVED, "pattern")
    else:
        found.add(Change.PATTERN_CHANGED, "pattern")


def _numbers(found: Differences, original: NumberSchema, update: NumberSchema) -> None:
    bounds(found, "maximum", "MAXIMUM", original.maximum, update.maximum)
    bounds(found, "minimum", "MINIMUM", original.minimum, update.minimum)
    bounds(
        found, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", original.exclusive_maximum, update.exclusive_maximum
    )
    bounds(
        found, "exclusiveMinimum", "EXCLUSIVE_MINIMUM", original.exclusive_minimum, update.exclusive_minimum
    )
    before, after = original.multiple_of, update.multiple_of
    if before is None and after is not None:
        found.add(Change.MULTIPLE_OF_ADDED, "multipleOf")
    elif before is not None and after is None:
        found.add(Change.MULTIPLE_OF_REMOVED, "multipleOf")
    elif before is not None and after is not None and before != after:
        found.add(_divisors(before, after), "multipleOf")
    if original.integer != update.integer:
        found.add(Change.TYPE_EXTENDED if original.integer else Change.TYPE_NARROWED)


def _divisors(before: Numeric, after: Numeric) -> Change:
    for value in (before, after):
        if isinstance(value, Decimal) and not -_MAX_EXPONENT <= value.adjusted() <= _MAX_EXPONENT:
            return Change.MULTIPLE_OF_CHANGED
    if before and Fraction(after) % Fraction(before) == 0:
        return Change.MULTIPLE_OF_EXPANDED
    if after and Fraction(before) % Fraction(after) == 0:
        return Change.MULTIPLE_OF_REDUCED
    return Change.MULTIPLE_OF_CHANGED


def _enums(run: Comparison, found: Differences, original: EnumSchema, update: EnumSchema) -> None:
    before, after = set(map(run.text, original.values)), set(map(run.text, update.values))
    if before == after:
        return
    if before <= after:
        found.add(Change.ENUM_ARRAY_EXTENDED, "enum")
    elif after <= before:
        found.add(Change.ENUM_ARRAY_NARROWED, "enum")
    else:
        found.add(Change.ENUM_ARRAY_CHANGED, "enum")


def _size(schema: Subschema) -> int:
    """How many parts are looked at each time a subschema is compared, beside those that are subschemas."""
    match schema:
        case ObjectSchema():
            names = schema.property_dependencies.values()
            return len(schema.properties) // 4 + len(schema.required) + sum(map(len, names))
        case ArraySchema():
            return len(schema.items)
        case EnumSchema():
            return len(schema.values)
    return 0
