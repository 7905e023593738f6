"""Comparisons of what is in arrays: lists, of which all items have one schema, and tuples."""

from __future__ import annotations

from ottla.registry.formats.json_schema.changes import Change
from ottla.registry.formats.json_schema.comparison import Steps
from ottla.registry.formats.json_schema.contents import (
    additional,
    bounds,
    is_open,
    schema_of_others,
    unevaluated,
)
from ottla.registry.formats.json_schema.differences import Differences
from ottla.registry.formats.json_schema.model import ArraySchema, EmptySchema, FalseSchema, Subschema


def arrays(found: Differences, original: ArraySchema, update: ArraySchema) -> Steps:
    before, after = original.all_items, update.all_items
    if before is not None and after is not None:
        found.include((yield before, after), "items")
    elif before is not None:
        found.add(Change.SCHEMA_REMOVED, "items")
    elif after is not None:
        found.add(Change.SCHEMA_ADDED, "items")
    for at in range(max(len(original.items), len(update.items))):
        if at >= len(update.items):
            yield from _item_removed(found, update, str(at), original.items[at])
        elif at >= len(original.items):
            yield from _item_added(found, original, str(at), update.items[at])
        else:
            found.include((yield original.items[at], update.items[at]), "items", str(at))
    yield from additional(found, "ITEMS", "additionalItems", original, update)
    yield from unevaluated(found, "ITEMS", "unevaluatedItems", original, update)
    bounds(found, "maxItems", "MAX_ITEMS", original.max_items, update.max_items)
    bounds(found, "minItems", "MIN_ITEMS", original.min_items, update.min_items)
    if original.unique_items != update.unique_items:
        change = Change.UNIQUE_ITEMS_REMOVED if original.unique_items else Change.UNIQUE_ITEMS_ADDED
        found.add(change, "uniqueItems")
    bounds(found, "maxContains", "MAX_CONTAINS", original.max_contains, update.max_contains)
    bounds(found, "minContains", "MIN_CONTAINS", original.min_contains, update.min_contains)


def _item_removed(found: Differences, update: ArraySchema, at: str, before: Subschema) -> Steps:
    if is_open(update):
        found.add(Change.ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL, "items", at)
        return
    other = schema_of_others(update)
    if other is not None:
        inner = yield before, other
        found.include(inner, "items", at)
        if inner.compatible:
            found.add(Change.ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, "items", at)
        else:
            found.add(Change.ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, "items", at)
    elif isinstance(before, FalseSchema):
        found.add(Change.ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL, "items", at)
    else:
        found.add(Change.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL, "items", at)


def _item_added(found: Differences, original: ArraySchema, at: str, after: Subschema) -> Steps:
    if is_open(original):
        if isinstance(after, EmptySchema):
            found.add(Change.ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL, "items", at)
        else:
            found.add(Change.ITEM_ADDED_TO_OPEN_CONTENT_MODEL, "items", at)
        return
    other = schema_of_others(original)
    if other is None:
        found.add(Change.ITEM_ADDED_TO_CLOSED_CONTENT_MODEL, "items", at)
        return
    inner = yield other, after
    found.include(inner, "items", at)
    if inner.compatible:
        found.add(Change.ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, "items", at)
    else:
        found.add(Change.ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, "items", at)
