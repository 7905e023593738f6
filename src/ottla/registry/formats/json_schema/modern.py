"""How drafts 2019-09 and 2020-12 are read.

Each keyword says something of one kind of value, and what keywords say of the same kind is merged; of several
kinds, their `allOf` is made. `$ref` is a keyword as any other. `type` with several types is an `anyOf` of
them, into which what follows is merged if it is of one of these types. The order of keywords is the order in
which they are written: in rare cases an answer depends on it, as it does in Confluent's registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.json_schema.joining import flat, joined
from ottla.registry.formats.json_schema.keywords import (
    array,
    boolean,
    mapping,
    number,
    text,
    texts,
    whole,
    wrong,
)
from ottla.registry.formats.json_schema.loading import Loader
from ottla.registry.formats.json_schema.model import (
    ArraySchema,
    BooleanSchema,
    CombinedSchema,
    ConditionalSchema,
    ConstSchema,
    Criterion,
    EmptySchema,
    EnumSchema,
    FalseSchema,
    NotSchema,
    NullSchema,
    NumberSchema,
    ObjectSchema,
    ReferenceSchema,
    StringSchema,
    Subschema,
    TrueSchema,
)
from ottla.registry.formats.json_schema.references import Place

# Keywords that say nothing a comparison looks at, or that are read beside another.
_SILENT = {
    *("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$defs", "$schema", "$vocabulary"),
    *("title", "description", "deprecated", "default", "then", "else", "minContains", "maxContains"),
    *("properties", "patternProperties", "unevaluatedItems", "unevaluatedProperties", "true", "false"),
}
_FLAGS = ("readOnly", "writeOnly")


class ModernLoader(Loader):
    def read(self, raw: dict[str, Any], place: Place) -> Subschema:
        where = place.pointer
        schema: Subschema | None = None
        unknown: dict[str, Any] = {}
        if "$dynamicRef" in raw:
            schema = self.reference(text(raw, "$dynamicRef", where) or "", place)
        for name, value in raw.items():
            if name in _SILENT or (name in _FLAGS and value is not True):
                continue
            said = self._keyword(name, raw, place)
            if said is None:
                unknown[name] = value
            else:
                schema = said if schema is None else joined(schema, said)
        for said in self._contents(raw, place):
            schema = said if schema is None else joined(schema, said)
        if schema is None:
            schema = EmptySchema()
        elif isinstance(schema, CombinedSchema) and schema.criterion == "allOf" and schema.generated:
            if not schema.parts:
                schema = EmptySchema()
            elif len(schema.parts) == 1:
                schema = schema.parts[0]
        schema.title = text(raw, "title", where) or schema.title
        schema.description = text(raw, "description", where) or schema.description
        for name in ("deprecated", *_FLAGS):
            boolean(raw, name, where)
        # Beside a lone `$ref`, and if it is null, a default counts for nothing.
        if raw.get("default") is not None and not isinstance(schema, ReferenceSchema):
            schema.default = raw["default"]
        if "$defs" in raw:
            self.members(mapping(raw, "$defs", where), "$defs", place)
        if unknown or raw.get("$defs"):
            _forget(schema)
            schema.extra = unknown
        return schema

    def _keyword(self, name: str, raw: dict[str, Any], place: Place) -> Subschema | None:
        """What a keyword says, or None if it is none."""
        where = place.pointer
        match name:
            case "$ref":
                return self.reference(text(raw, name, where) or "", place)
            case "type":
                return _type(raw[name], where)
            case "allOf" | "anyOf" | "oneOf":
                return self._combined(name, raw, place)
            case "not":
                return NotSchema(refused=self.child(raw, name, place))
            case "enum":
                return EnumSchema(values=array(raw, name, where))
            case "const":
                return ConstSchema(value=raw[name])
            case "if":
                condition, then, otherwise = (self.child(raw, each, place) for each in ("if", "then", "else"))
                return ConditionalSchema(condition=condition, then=then, otherwise=otherwise)
            case "format":
                text(raw, name, where)
                return CombinedSchema(generated=True)
            case "readOnly" | "writeOnly":
                return CombinedSchema(generated=True)
        return (
            _of_strings(name, raw, where)
            or _of_numbers(name, raw, where)
            or self._of_objects(name, raw, place)
            or self._of_arrays(name, raw, place)
        )

    def _combined(self, criterion: Criterion, raw: dict[str, Any], place: Place) -> CombinedSchema:
        parts: list[Subschema] = []
        for each in self.children(array(raw, criterion, place.pointer), criterion, place):
            parts.extend(flat(each))
        return CombinedSchema(criterion=criterion, parts=parts)

    def _of_objects(self, name: str, raw: dict[str, Any], place: Place) -> ObjectSchema | None:
        where = place.pointer
        match name:
            case "additionalProperties":
                additional = self.child(raw, name, place)
                if isinstance(additional, FalseSchema):
                    return ObjectSchema(closed=True)
                return ObjectSchema(additional=None if isinstance(additional, TrueSchema) else additional)
            case "required":
                return ObjectSchema(required=texts(raw, name, where))
            case "minProperties":
                return ObjectSchema(min_properties=whole(raw, name, where))
            case "maxProperties":
                return ObjectSchema(max_properties=whole(raw, name, where))
            case "propertyNames":
                return ObjectSchema(property_names=self.child(raw, name, place))
            case "dependentRequired":
                values = mapping(raw, name, where)
                names = {each: texts(values, each, f"{where}/{name}") for each in values}
                return ObjectSchema(
                    property_dependencies={key: value for key, value in names.items() if value}
                )
            case "dependentSchemas":
                values = mapping(raw, name, where)
                return ObjectSchema(schema_dependencies=self.members(values, name, place))
        return None

    def _of_arrays(self, name: str, raw: dict[str, Any], place: Place) -> ArraySchema | None:
        where = place.pointer
        match name:
            case "items":
                items = self.child(raw, name, place)
                if isinstance(items, FalseSchema):
                    return ArraySchema(closed=True)
                if isinstance(items, TrueSchema):
                    return ArraySchema()
                if isinstance(raw.get("prefixItems"), list) and raw["prefixItems"]:
                    return ArraySchema(additional=items)
                return ArraySchema(all_items=items)
            case "prefixItems":
                return ArraySchema(items=self.children(array(raw, name, where), name, place))
            case "minItems":
                return ArraySchema(min_items=whole(raw, name, where))
            case "maxItems":
                return ArraySchema(max_items=whole(raw, name, where))
            case "uniqueItems":
                return ArraySchema(unique_items=boolean(raw, name, where))
            case "contains":
                least = whole(raw, "minContains", where)
                return ArraySchema(
                    contains=self.child(raw, name, place),
                    min_contains=1 if least is None else least,
                    max_contains=whole(raw, "maxContains", where),
                )
        return None

    def _contents(self, raw: dict[str, Any], place: Place) -> Iterator[Subschema]:
        """What is said of members and items, which comes after all else."""
        properties = mapping(raw, "properties", place.pointer)
        if properties:
            yield ObjectSchema(properties=self.members(properties, "properties", place))
        patterns = mapping(raw, "patternProperties", place.pointer)
        if patterns:
            yield ObjectSchema(pattern_properties=self.members(patterns, "patternProperties", place))
        if "unevaluatedItems" in raw:
            yield ArraySchema(unevaluated=self.child(raw, "unevaluatedItems", place))
        if "unevaluatedProperties" in raw:
            yield ObjectSchema(unevaluated=self.child(raw, "unevaluatedProperties", place))


def _of_strings(name: str, raw: dict[str, Any], where: str) -> StringSchema | None:
    match name:
        case "minLength":
            return StringSchema(min_length=whole(raw, name, where))
        case "maxLength":
            return StringSchema(max_length=whole(raw, name, where))
        case "pattern":
            return StringSchema(pattern=text(raw, name, where))
    return None


def _of_numbers(name: str, raw: dict[str, Any], where: str) -> NumberSchema | None:
    match name:
        case "minimum":
            return NumberSchema(minimum=number(raw, name, where))
        case "maximum":
            return NumberSchema(maximum=number(raw, name, where))
        case "exclusiveMinimum":
            return NumberSchema(exclusive_minimum=number(raw, name, where))
        case "exclusiveMaximum":
            return NumberSchema(exclusive_maximum=number(raw, name, where))
        case "multipleOf":
            return NumberSchema(multiple_of=number(raw, name, where))
    return None


def _type(said: Any, where: str) -> Subschema:
    if isinstance(said, list):
        return CombinedSchema(
            criterion="anyOf", parts=[_one_type(each, where) for each in said], generated=True
        )
    return _one_type(said, where)


def _one_type(name: Any, where: str) -> Subschema:
    match name:
        case "string":
            return StringSchema(typed=True)
        case "integer" | "number":
            return NumberSchema(typed=True, integer=name == "integer")
        case "boolean":
            return BooleanSchema()
        case "null":
            return NullSchema()
        case "array":
            return ArraySchema(typed=True)
        case "object":
            return ObjectSchema(typed=True)
        case str():
            raise InvalidSchema(f"{where}: there is no type {name!r}")
    raise wrong(where, "type", "a string or an array of strings", name)


def _forget(schema: Subschema) -> None:
    """Confluent's registry keeps these where unknown keywords go, and unknown keywords replace them."""
    if isinstance(schema, ArraySchema):
        schema.unevaluated = schema.min_contains = schema.max_contains = None
    elif isinstance(schema, ObjectSchema):
        schema.unevaluated = None
