"""How drafts 4, 6 and 7 are read.

A schema is taken apart by its keywords: enum, allOf, anyOf, oneOf, not, const, then the keywords of its type,
then what is left of the keywords of other types. Beside `$ref` nothing counts. What is never referred to, as
among `definitions`, is never looked at."""

from __future__ import annotations

from typing import Any

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.json_schema.keywords import (
    array,
    boolean,
    integer,
    mapping,
    number,
    text,
    texts,
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
    NotSchema,
    NullSchema,
    NumberSchema,
    ObjectSchema,
    StringSchema,
    Subschema,
)
from ottla.registry.formats.json_schema.references import Place

_CRITERIA: tuple[Criterion, ...] = ("allOf", "anyOf", "oneOf")
_NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRING = ("minLength", "maxLength", "pattern", "format")
_CONDITION = ("if", "then", "else")
_OBJECT = (
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "dependencies",
    "patternProperties",
    "additionalProperties",
)
_ARRAY = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems")

# The formats that a draft knows. Others say nothing, and two schemas that differ in them alone are the same.
_FORMATS_4 = {"date-time", "uri", "email", "ipv4", "ipv6", "hostname"}
_FORMATS_6 = _FORMATS_4 | {"json-pointer", "uri-reference", "uri-template"}
_FORMATS = {
    4: _FORMATS_4,
    6: _FORMATS_6,
    7: _FORMATS_6 | {"date", "time", "regex", "relative-json-pointer"},
}


class DraftLoader(Loader):
    def read(self, raw: dict[str, Any], place: Place) -> Subschema:
        rest = dict(raw)
        if "$ref" in raw:
            ref = text(rest, "$ref", place.pointer) or ""
            del rest["$ref"]
            schema: Subschema = self.reference(ref, place)
        else:
            parts = [*self._combined(rest, place), *self._of_type(rest, place), *self._untyped(rest, place)]
            if not parts:
                schema = EmptySchema()
            elif len(parts) == 1:
                schema = parts[0]
            else:
                schema = CombinedSchema(parts=parts, generated=True)
        where, keyword = place.pointer, place.document.id_keyword
        schema.id = text(rest, keyword, where)
        schema.title = text(rest, "title", where)
        schema.description = text(rest, "description", where)
        if place.document.draft == 7:
            boolean(rest, "readOnly", where)
            boolean(rest, "writeOnly", where)
        # Confluent's registry sees no default beside a `$ref`.
        if "default" in rest and "$ref" not in raw:
            schema.default = rest["default"]
        for name in (keyword, "title", "description", "default"):
            rest.pop(name, None)
        schema.extra = rest
        return schema

    def _combined(self, rest: dict[str, Any], place: Place) -> list[Subschema]:
        parts: list[Subschema] = []
        if "enum" in rest:
            parts.append(EnumSchema(values=array(rest, "enum", place.pointer)))
            del rest["enum"]
        for criterion in _CRITERIA:
            if criterion in rest:
                values = array(rest, criterion, place.pointer)
                subschemas = self.children(values, criterion, place)
                parts.append(CombinedSchema(criterion=criterion, parts=subschemas))
                del rest[criterion]
        if "not" in rest:
            parts.append(NotSchema(refused=self.child(rest, "not", place)))
            del rest["not"]
        if "const" in rest and place.document.draft > 4:
            parts.append(ConstSchema(value=rest.pop("const")))
        return parts

    def _of_type(self, rest: dict[str, Any], place: Place) -> list[Subschema]:
        if "type" not in rest:
            return []
        said, raw = rest.pop("type"), dict(rest)
        if isinstance(said, str):
            return [self._type(said, raw, rest, place)]
        if not isinstance(said, list):
            raise wrong(place.pointer, "type", "a string or an array", said)
        kinds: dict[str, Subschema] = {}
        for name in texts({"type": said}, "type", place.pointer):
            if name not in kinds:
                kinds[name] = self._type(name, raw, rest, place)
        return [CombinedSchema(criterion="anyOf", parts=[kinds[name] for name in said])]

    def _type(self, name: str, raw: dict[str, Any], rest: dict[str, Any], place: Place) -> Subschema:
        match name:
            case "string":
                return self._string(raw, rest, place, typed=True)
            case "integer" | "number":
                numeric = self._number(raw, rest, place, typed=True)
                numeric.integer = name == "integer"
                return numeric
            case "boolean":
                return BooleanSchema()
            case "null":
                return NullSchema()
            case "array":
                return self._array(raw, rest, place, typed=True)
            case "object":
                return self._object(raw, rest, place, typed=True)
        raise InvalidSchema(f"{place.pointer}: there is no type {name!r}")

    def _untyped(self, rest: dict[str, Any], place: Place) -> list[Subschema]:
        parts: list[Subschema] = []
        raw = dict(rest)
        if not raw.keys().isdisjoint(_array_keywords(place)):
            parts.append(self._array(raw, rest, place, typed=False))
        if not raw.keys().isdisjoint(_object_keywords(place)):
            parts.append(self._object(raw, rest, place, typed=False))
        if not raw.keys().isdisjoint(_NUMBER):
            parts.append(self._number(raw, rest, place, typed=False))
        if not raw.keys().isdisjoint(_STRING):
            parts.append(self._string(raw, rest, place, typed=False))
        if place.document.draft >= 7 and not raw.keys().isdisjoint(_CONDITION):
            condition, then, otherwise = (self.child(raw, name, place) for name in _CONDITION)
            parts.append(ConditionalSchema(condition=condition, then=then, otherwise=otherwise))
            _consume(rest, _CONDITION)
        return parts

    def _string(
        self, raw: dict[str, Any], rest: dict[str, Any], place: Place, *, typed: bool
    ) -> StringSchema:
        _consume(rest, _STRING)
        where = place.pointer
        name = text(raw, "format", where)
        return StringSchema(
            typed=typed,
            min_length=integer(raw, "minLength", where),
            max_length=integer(raw, "maxLength", where),
            pattern=text(raw, "pattern", where),
            format=name if name in _FORMATS[place.document.draft] else None,
        )

    def _number(
        self, raw: dict[str, Any], rest: dict[str, Any], place: Place, *, typed: bool
    ) -> NumberSchema:
        _consume(rest, _NUMBER)
        where = place.pointer
        schema = NumberSchema(
            typed=typed,
            minimum=number(raw, "minimum", where),
            maximum=number(raw, "maximum", where),
            multiple_of=number(raw, "multipleOf", where),
        )
        if schema.multiple_of == 0:
            raise InvalidSchema(f"{where}: multipleOf must not be 0")
        if place.document.draft == 4:
            schema.minimum_is_exclusive = boolean(raw, "exclusiveMinimum", where)
            schema.maximum_is_exclusive = boolean(raw, "exclusiveMaximum", where)
        else:
            schema.exclusive_minimum = number(raw, "exclusiveMinimum", where)
            schema.exclusive_maximum = number(raw, "exclusiveMaximum", where)
        return schema

    def _array(self, raw: dict[str, Any], rest: dict[str, Any], place: Place, *, typed: bool) -> ArraySchema:
        _consume(rest, _array_keywords(place))
        where = place.pointer
        schema = ArraySchema(
            typed=typed,
            min_items=integer(raw, "minItems", where),
            max_items=integer(raw, "maxItems", where),
            unique_items=boolean(raw, "uniqueItems", where),
        )
        if isinstance(raw.get("additionalItems"), bool):
            schema.closed = not raw["additionalItems"]
        else:
            schema.additional = self.child(raw, "additionalItems", place)
        items = raw.get("items")
        if isinstance(items, list):
            schema.items = self.children(items, "items", place)
        elif isinstance(items, bool) and place.document.draft == 4:
            raise wrong(where, "items", "an object or an array", items)
        else:
            schema.all_items = self.child(raw, "items", place)
        if place.document.draft > 4:
            schema.contains = self.child(raw, "contains", place)
        return schema

    def _object(
        self, raw: dict[str, Any], rest: dict[str, Any], place: Place, *, typed: bool
    ) -> ObjectSchema:
        _consume(rest, _object_keywords(place))
        where, keyword = place.pointer, place.document.id_keyword
        properties = mapping(raw, "properties", where)
        if keyword in properties and not isinstance(properties[keyword], dict):
            # An id in the wrong place, rather than a property.
            properties = {name: value for name, value in properties.items() if name != keyword}
        schema = ObjectSchema(
            typed=typed,
            min_properties=integer(raw, "minProperties", where),
            max_properties=integer(raw, "maxProperties", where),
            properties=self.members(properties, "properties", place),
            required=texts(raw, "required", where),
            pattern_properties=self.members(
                mapping(raw, "patternProperties", where), "patternProperties", place
            ),
        )
        if isinstance(raw.get("additionalProperties"), bool):
            schema.closed = not raw["additionalProperties"]
        else:
            schema.additional = self.child(raw, "additionalProperties", place)
        dependencies = mapping(raw, "dependencies", where)
        for name, value in dependencies.items():
            if isinstance(value, list):
                names = texts(dependencies, name, f"{where}/dependencies")
                if names:
                    schema.property_dependencies[name] = names
            elif isinstance(value, bool) and place.document.draft == 4:
                raise wrong(where, f"dependencies of {name}", "an object or an array", value)
            else:
                schema.schema_dependencies[name] = self.subschema(value, place.child("dependencies", name))
        if place.document.draft > 4:
            schema.property_names = self.child(raw, "propertyNames", place)
        return schema


def _array_keywords(place: Place) -> tuple[str, ...]:
    return _ARRAY if place.document.draft == 4 else (*_ARRAY, "contains")


def _object_keywords(place: Place) -> tuple[str, ...]:
    return _OBJECT if place.document.draft == 4 else (*_OBJECT, "propertyNames")


def _consume(rest: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        rest.pop(name, None)
