"""What comparisons of objects and of arrays have in common, and the limits that all kinds have.

A content model is open if there may be properties that the schema does not name, closed if there may not, and
partially open if they have to match a schema: that of a pattern, of `additionalProperties` or of
`unevaluatedProperties`. The same goes for the items of a tuple. A property that the reader adds is safe only
if the writer's model is not open, since a writer may have written anything by that name before."""

from __future__ import annotations

from ottla.registry.formats.json_schema.changes import Change
from ottla.registry.formats.json_schema.comparison import Comparison, Steps
from ottla.registry.formats.json_schema.differences import Differences
from ottla.registry.formats.json_schema.model import (
    ArraySchema,
    EmptySchema,
    FalseSchema,
    Numeric,
    ObjectSchema,
    Subschema,
)


def bounds(
    found: Differences, keyword: str, change: str, original: Numeric | None, update: Numeric | None
) -> None:
    """Compares a limit; `change` is how the names of its changes begin."""
    if original is None and update is None:
        return
    if original is None:
        found.add(Change[f"{change}_ADDED"], keyword)
    elif update is None:
        found.add(Change[f"{change}_REMOVED"], keyword)
    else:
        # As Java compares them, which is as floating-point numbers.
        before, after = float(str(original)), float(str(update))
        if before < after:
            found.add(Change[f"{change}_INCREASED"], keyword)
        elif before > after:
            found.add(Change[f"{change}_DECREASED"], keyword)


def additional(
    found: Differences,
    what: str,
    keyword: str,
    original: ObjectSchema | ArraySchema,
    update: ObjectSchema | ArraySchema,
) -> Steps:
    if _permits_others(original) != _permits_others(update):
        change = "ADDED" if _permits_others(update) else "REMOVED"
        found.add(Change[f"ADDITIONAL_{what}_{change}"], keyword)
    elif original.additional is not None and update.additional is not None:
        found.include((yield original.additional, update.additional), keyword)
    elif original.additional is not None:
        found.add(Change[f"ADDITIONAL_{what}_EXTENDED"], keyword)
    elif update.additional is not None:
        found.add(Change[f"ADDITIONAL_{what}_NARROWED"], keyword)


def unevaluated(
    found: Differences,
    what: str,
    keyword: str,
    original: ObjectSchema | ArraySchema,
    update: ObjectSchema | ArraySchema,
) -> Steps:
    before, after = original.unevaluated, update.unevaluated
    if before is None and after is None:
        return
    closed, closes = isinstance(before, FalseSchema), isinstance(after, FalseSchema)
    if closed != closes:
        found.add(Change[f"UNEVALUATED_{what}_{'ADDED' if closed else 'REMOVED'}"], keyword)
    elif before is None or after is None or isinstance(before, EmptySchema) != isinstance(after, EmptySchema):
        narrowed = before is None or (after is not None and isinstance(before, EmptySchema))
        found.add(Change[f"UNEVALUATED_{what}_{'NARROWED' if narrowed else 'EXTENDED'}"], keyword)
    else:
        found.include((yield before, after), keyword)


def _permits_others(schema: ObjectSchema | ArraySchema) -> bool:
    return schema.permits_additional_items if isinstance(schema, ArraySchema) else not schema.closed


def is_open(schema: ObjectSchema | ArraySchema) -> bool:
    if not _permits_others(schema) or schema.additional is not None:
        return False
    if isinstance(schema, ObjectSchema) and schema.pattern_properties:
        return False
    return schema.unevaluated is None or isinstance(schema.unevaluated, EmptySchema)


def schema_of_others(
    schema: ObjectSchema | ArraySchema, name: str = "", run: Comparison | None = None
) -> Subschema | None:
    """What a partially open content model says of a property or an item that is not named."""
    if isinstance(schema, ObjectSchema) and run is not None:
        for pattern, other in schema.pattern_properties.items():
            if run.matches(pattern, name):
                return other
    if schema.additional is not None:
        return schema.additional
    if _permits_others(schema) and not isinstance(schema.unevaluated, FalseSchema | EmptySchema):
        return schema.unevaluated
    return None
