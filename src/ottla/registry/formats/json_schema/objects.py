"""Comparisons of what is in objects. See `contents` for open, partially open and closed ones."""

from __future__ import annotations

from ottla.registry.formats.json_schema.changes import Change
from ottla.registry.formats.json_schema.comparison import Comparison, Steps
from ottla.registry.formats.json_schema.contents import (
    additional,
    bounds,
    is_open,
    schema_of_others,
    unevaluated,
)
from ottla.registry.formats.json_schema.differences import Differences
from ottla.registry.formats.json_schema.model import (
    MISSING,
    EmptySchema,
    FalseSchema,
    ObjectSchema,
    Subschema,
)


def objects(run: Comparison, found: Differences, original: ObjectSchema, update: ObjectSchema) -> Steps:
    required = set(update.required)
    _required(found, original, update, required)
    for name in dict.fromkeys([*original.properties, *update.properties]):
        before, after = original.properties.get(name), update.properties.get(name)
        if before is not None and after is not None:
            found.include((yield before, after), "properties", name)
        elif before is not None:
            yield from _property_removed(run, found, update, name, before)
        elif after is not None:
            yield from _property_added(run, found, original, required, name, after)
    yield from _dependencies(found, original, update)
    yield from additional(found, "PROPERTIES", "additionalProperties", original, update)
    yield from unevaluated(found, "PROPERTIES", "unevaluatedProperties", original, update)
    bounds(found, "maxProperties", "MAX_PROPERTIES", original.max_properties, update.max_properties)
    bounds(found, "minProperties", "MIN_PROPERTIES", original.min_properties, update.min_properties)


def _required(found: Differences, original: ObjectSchema, update: ObjectSchema, after: set[str]) -> None:
    before = set(original.required)
    for name in original.properties:
        if name in update.properties and (name in before) != (name in after):
            if name in before:
                change = Change.REQUIRED_ATTRIBUTE_REMOVED
            elif update.properties[name].default is not MISSING:
                change = Change.REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED
            else:
                change = Change.REQUIRED_ATTRIBUTE_ADDED
            found.add(change, "required", name)


def _property_removed(
    run: Comparison, found: Differences, update: ObjectSchema, name: str, before: Subschema
) -> Steps:
    run.spend(1)
    path = ("properties", name)
    if is_open(update):
        found.add(Change.PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL, *path)
        return
    other = schema_of_others(update, name, run)
    if other is not None:
        inner = yield before, other
        found.include(inner, *path)
        if inner.compatible:
            found.add(Change.PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, *path)
        else:
            found.add(Change.PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, *path)
    elif isinstance(before, FalseSchema):
        found.add(Change.PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL, *path)
    else:
        found.add(Change.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL, *path)


def _property_added(
    run: Comparison,
    found: Differences,
    original: ObjectSchema,
    required: set[str],
    name: str,
    after: Subschema,
) -> Steps:
    run.spend(1)
    path, has_default = ("properties", name), after.default is not MISSING
    if is_open(original):
        if isinstance(after, EmptySchema):
            found.add(Change.PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL, *path)
        elif name not in required:
            found.add(Change.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL, *path)
        elif has_default:
            found.add(Change.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL, *path)
        else:
            found.add(Change.REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL, *path)
        return
    other = schema_of_others(original, name, run)
    if other is not None:
        inner = yield other, after
        found.include(inner, *path)
        if inner.compatible:
            found.add(Change.PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, *path)
        else:
            found.add(Change.PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, *path)
    if name not in required:
        found.add(Change.OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL, *path)
    elif has_default:
        found.add(Change.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL, *path)
    else:
        found.add(Change.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL, *path)


def _dependencies(found: Differences, original: ObjectSchema, update: ObjectSchema) -> Steps:
    names, other_names = original.property_dependencies, update.property_dependencies
    for name in dict.fromkeys([*names, *other_names]):
        path = ("dependencies", name)
        before, after = set(names.get(name, ())), set(other_names.get(name, ()))
        if name not in other_names:
            found.add(Change.DEPENDENCY_ARRAY_REMOVED, *path)
        elif name not in names:
            found.add(Change.DEPENDENCY_ARRAY_ADDED, *path)
        elif before < after:
            found.add(Change.DEPENDENCY_ARRAY_EXTENDED, *path)
        elif after < before:
            found.add(Change.DEPENDENCY_ARRAY_NARROWED, *path)
        elif before != after:
            found.add(Change.DEPENDENCY_ARRAY_CHANGED, *path)
    schemas, others = original.schema_dependencies, update.schema_dependencies
    for name in dict.fromkeys([*schemas, *others]):
        path = ("dependencies", name)
        if name not in others:
            found.add(Change.DEPENDENCY_SCHEMA_REMOVED, *path)
        elif name not in schemas:
            found.add(Change.DEPENDENCY_SCHEMA_ADDED, *path)
        else:
            found.include((yield schemas[name], others[name]), *path)
