"""Every kind of difference between two JSON Schemas: which, where, and whether data can still be read."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.registry.formats.json_schema import schema as json_schema
from ottla.registry.formats.json_schema.changes import INCOMPATIBLE, Change
from ottla.registry.formats.json_schema.comparison import Comparison
from ottla.registry.formats.json_schema.kinds import compared
from ottla.registry.formats.json_schema.text import write

YES, NO = True, False
Row = tuple[Any, Any, bool, list[str]]

STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
BOOLEAN, NULL, OBJECT, ARRAY = {"type": "boolean"}, {"type": "null"}, {"type": "object"}, {"type": "array"}


def string(**keywords: Any) -> dict[str, Any]:
    return {"type": "string", **keywords}


def number(**keywords: Any) -> dict[str, Any]:
    return {"type": "number", **keywords}


def record(properties: Any = None, **keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties or {}, **keywords}


def closed(properties: Any = None, **keywords: Any) -> dict[str, Any]:
    return record(properties, additionalProperties=False, **keywords)


def array(**keywords: Any) -> dict[str, Any]:
    return {"type": "array", **keywords}


def of(criterion: str, *parts: Any) -> dict[str, Any]:
    return {criterion: list(parts)}


ANNOTATIONS: list[Row] = [
    (STRING, STRING, YES, []),
    (string(title="a"), string(title="b"), YES, ["TITLE_CHANGED #/"]),
    (string(description="a"), STRING, YES, ["DESCRIPTION_CHANGED #/"]),
    (string(default="a"), string(default="b"), YES, ["DEFAULT_CHANGED #/"]),
    (string(default=None), STRING, YES, ["DEFAULT_CHANGED #/"]),
    (string(examples=["a"]), string(examples=["b"]), YES, []),
    (string(format="date"), string(format="time"), YES, []),
]

TYPES: list[Row] = [
    (STRING, NUMBER, NO, ["TYPE_CHANGED #/"]),
    (OBJECT, ARRAY, NO, ["TYPE_CHANGED #/"]),
    (NULL, BOOLEAN, NO, ["TYPE_CHANGED #/"]),
    (BOOLEAN, BOOLEAN, YES, []),
    (INTEGER, NUMBER, YES, ["TYPE_EXTENDED #/"]),
    (NUMBER, INTEGER, NO, ["TYPE_NARROWED #/"]),
    (STRING, {}, YES, []),
    (STRING, True, YES, []),
    ({}, True, YES, []),
    (True, {}, YES, []),
    (True, STRING, NO, ["TYPE_CHANGED #/"]),
    ({}, STRING, NO, ["TYPE_CHANGED #/"]),
    (False, STRING, YES, []),
    (False, False, YES, []),
    (STRING, False, NO, ["TYPE_CHANGED #/"]),
    (STRING, {"type": ["string", "null"]}, YES, ["SUM_TYPE_EXTENDED #/"]),
    (STRING, {"type": ["number", "null"]}, NO, ["TYPE_CHANGED #/"]),
    ({"type": ["string", "null"]}, STRING, NO, ["TYPE_CHANGED #/"]),
    ({"type": ["string", "null"]}, {"type": ["null", "string"]}, YES, []),
    ({"type": ["string", "null"]}, {"type": ["string"]}, NO, ["SUM_TYPE_NARROWED #/"]),
    (
        {"type": "string", "connect.type": "bytes"},
        {"type": "number", "connect.type": "bytes"},
        YES,
        [],
    ),
    ({"type": "string", "connect.type": "bytes"}, NUMBER, NO, ["TYPE_CHANGED #/"]),
    # A keyword that is of no type adds a schema that has to match as well.
    (STRING, string(minimum=1), NO, ["TYPE_CHANGED #/"]),
]

STRINGS: list[Row] = [
    (STRING, string(maxLength=5), NO, ["MAX_LENGTH_ADDED #/maxLength"]),
    (string(maxLength=5), STRING, YES, ["MAX_LENGTH_REMOVED #/maxLength"]),
    (string(maxLength=5), string(maxLength=6), YES, ["MAX_LENGTH_INCREASED #/maxLength"]),
    (string(maxLength=5), string(maxLength=4), NO, ["MAX_LENGTH_DECREASED #/maxLength"]),
    (STRING, string(minLength=5), NO, ["MIN_LENGTH_ADDED #/minLength"]),
    (string(minLength=5), STRING, YES, ["MIN_LENGTH_REMOVED #/minLength"]),
    (string(minLength=5), string(minLength=6), NO, ["MIN_LENGTH_INCREASED #/minLength"]),
    (string(minLength=5), string(minLength=4), YES, ["MIN_LENGTH_DECREASED #/minLength"]),
    (STRING, string(pattern="a"), NO, ["PATTERN_ADDED #/pattern"]),
    (string(pattern="a"), STRING, YES, ["PATTERN_REMOVED #/pattern"]),
    (string(pattern="a"), string(pattern="b"), NO, ["PATTERN_CHANGED #/pattern"]),
]

NUMBERS: list[Row] = [
    (NUMBER, number(maximum=5), NO, ["MAXIMUM_ADDED #/maximum"]),
    (number(maximum=5), NUMBER, YES, ["MAXIMUM_REMOVED #/maximum"]),
    (number(maximum=5), number(maximum=5.5), YES, ["MAXIMUM_INCREASED #/maximum"]),
    (number(maximum=5), number(maximum=4.5), NO, ["MAXIMUM_DECREASED #/maximum"]),
    (number(maximum=5), number(maximum=5.0), YES, []),
    (NUMBER, number(minimum=5), NO, ["MINIMUM_ADDED #/minimum"]),
    (number(minimum=5), NUMBER, YES, ["MINIMUM_REMOVED #/minimum"]),
    (number(minimum=5), number(minimum=6), NO, ["MINIMUM_INCREASED #/minimum"]),
    (number(minimum=5), number(minimum=4), YES, ["MINIMUM_DECREASED #/minimum"]),
    (NUMBER, number(exclusiveMaximum=5), NO, ["EXCLUSIVE_MAXIMUM_ADDED #/exclusiveMaximum"]),
    (number(exclusiveMaximum=5), NUMBER, YES, ["EXCLUSIVE_MAXIMUM_REMOVED #/exclusiveMaximum"]),
    (
        number(exclusiveMaximum=5),
        number(exclusiveMaximum=6),
        YES,
        ["EXCLUSIVE_MAXIMUM_INCREASED #/exclusiveMaximum"],
    ),
    (
        number(exclusiveMaximum=5),
        number(exclusiveMaximum=4),
        NO,
        ["EXCLUSIVE_MAXIMUM_DECREASED #/exclusiveMaximum"],
    ),
    (NUMBER, number(exclusiveMinimum=5), NO, ["EXCLUSIVE_MINIMUM_ADDED #/exclusiveMinimum"]),
    (number(exclusiveMinimum=5), NUMBER, YES, ["EXCLUSIVE_MINIMUM_REMOVED #/exclusiveMinimum"]),
    (
        number(exclusiveMinimum=5),
        number(exclusiveMinimum=6),
        NO,
        ["EXCLUSIVE_MINIMUM_INCREASED #/exclusiveMinimum"],
    ),
    (
        number(exclusiveMinimum=5),
        number(exclusiveMinimum=4),
        YES,
        ["EXCLUSIVE_MINIMUM_DECREASED #/exclusiveMinimum"],
    ),
    (NUMBER, number(multipleOf=10), NO, ["MULTIPLE_OF_ADDED #/multipleOf"]),
    (number(multipleOf=10), NUMBER, YES, ["MULTIPLE_OF_REMOVED #/multipleOf"]),
    (number(multipleOf=10), number(multipleOf=20), NO, ["MULTIPLE_OF_EXPANDED #/multipleOf"]),
    (number(multipleOf=10), number(multipleOf=2.5), YES, ["MULTIPLE_OF_REDUCED #/multipleOf"]),
    (number(multipleOf=10), number(multipleOf=3), NO, ["MULTIPLE_OF_CHANGED #/multipleOf"]),
    (number(multipleOf=0.5), number(multipleOf=10), NO, ["MULTIPLE_OF_EXPANDED #/multipleOf"]),
    (number(multipleOf=1e308), number(multipleOf=0.1), YES, ["MULTIPLE_OF_REDUCED #/multipleOf"]),
]

VALUES: list[Row] = [
    ({"enum": ["a", 1]}, {"enum": [1, "a"]}, YES, []),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, YES, ["ENUM_ARRAY_EXTENDED #/enum"]),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, NO, ["ENUM_ARRAY_NARROWED #/enum"]),
    ({"enum": ["a", "b"]}, {"enum": ["a", "c"]}, NO, ["ENUM_ARRAY_CHANGED #/enum"]),
    ({"enum": [1]}, {"enum": [True]}, NO, ["ENUM_ARRAY_CHANGED #/enum"]),
    ({"enum": [None, {"a": [1]}]}, {"enum": [None, {"a": [1]}]}, YES, []),
    ({"const": "a"}, {"const": "a"}, YES, []),
    ({"const": "a"}, {"const": "b"}, NO, ["ENUM_ARRAY_CHANGED #/const"]),
    ({"const": None}, {"const": None}, YES, []),
    ({"const": "a"}, {"enum": ["a"]}, NO, ["TYPE_CHANGED #/"]),
    ({"not": STRING}, {"not": STRING}, YES, ["NOT_TYPE_NARROWED #/not"]),
    ({"not": NUMBER}, {"not": INTEGER}, YES, ["NOT_TYPE_NARROWED #/not"]),
    ({"not": INTEGER}, {"not": NUMBER}, NO, ["NOT_TYPE_EXTENDED #/not"]),
]

PROPERTIES: list[Row] = [
    (record({"a": STRING}), record({"a": NUMBER}), NO, ["TYPE_CHANGED #/properties/a"]),
    (
        record({"": record({"b": STRING})}),
        record({"": record({"b": NUMBER})}),
        NO,
        [
            "TYPE_CHANGED #/properties//properties/b",
        ],
    ),
    (
        record({"a": record({"b": STRING})}),
        record({"a": record({"b": string(maxLength=1)})}),
        NO,
        ["MAX_LENGTH_ADDED #/properties/a/properties/b/maxLength"],
    ),
    # The model is open.
    (record(), record({"a": STRING}), NO, ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"]),
    (
        record(),
        record({"a": STRING}, required=["a"]),
        NO,
        ["REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        record(),
        record({"a": string(default="")}, required=["a"]),
        NO,
        ["REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        record(),
        record({"a": {}}),
        YES,
        ["PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        record(),
        record({"a": True}),
        YES,
        ["PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (record({"a": STRING}), record(), YES, ["PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a"]),
    # The model is closed.
    (
        closed(),
        closed({"a": STRING}),
        YES,
        ["OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        closed(),
        closed({"a": STRING}, required=["a"]),
        NO,
        ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        closed(),
        closed({"a": string(default="")}, required=["a"]),
        YES,
        ["REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (closed({"a": STRING}), closed(), NO, ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"]),
    (
        closed({"a": False}),
        closed(),
        YES,
        ["PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"],
    ),
    # The model is open for some.
    (
        record(additionalProperties=STRING),
        record({"a": STRING}, additionalProperties=STRING),
        YES,
        [
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        record(additionalProperties=STRING),
        record({"a": NUMBER}, additionalProperties=STRING),
        NO,
        [
            "TYPE_CHANGED #/properties/a",
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        record({"a": INTEGER}, additionalProperties=NUMBER),
        record(additionalProperties=NUMBER),
        YES,
        [
            "TYPE_EXTENDED #/properties/a",
            "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        record({"a": STRING}, additionalProperties=NUMBER),
        record(additionalProperties=NUMBER),
        NO,
        [
            "TYPE_CHANGED #/properties/a",
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        record(patternProperties={"^s": STRING, "^n": NUMBER}),
        record({"name": NUMBER}, patternProperties={"^s": STRING, "^n": NUMBER}),
        YES,
        [
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/name",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/name",
        ],
    ),
    (
        closed({"street": STRING}),
        closed(patternProperties={"^s": NUMBER}),
        NO,
        [
            "TYPE_CHANGED #/properties/street",
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/street",
        ],
    ),
    # A pattern matches no name of the others.
    (
        closed({"street": STRING}),
        closed(patternProperties={"^n": NUMBER}),
        NO,
        ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/street"],
    ),
]

OBJECTS: list[Row] = [
    (
        record({"a": STRING}, required=["a"]),
        record({"a": STRING}),
        YES,
        ["REQUIRED_ATTRIBUTE_REMOVED #/required/a"],
    ),
    (
        record({"a": STRING}),
        record({"a": STRING}, required=["a"]),
        NO,
        ["REQUIRED_ATTRIBUTE_ADDED #/required/a"],
    ),
    (
        record({"a": string(default="")}),
        record({"a": string(default="")}, required=["a"]),
        YES,
        ["REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED #/required/a"],
    ),
    # What is required and is no property is not looked at.
    (record(), record(required=["a"]), YES, []),
    (closed(), record(), YES, ["ADDITIONAL_PROPERTIES_ADDED #/additionalProperties"]),
    (record(), closed(), NO, ["ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"]),
    (
        record(),
        record(additionalProperties=STRING),
        NO,
        ["ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties"],
    ),
    (
        record(additionalProperties=STRING),
        record(additionalProperties=True),
        YES,
        ["ADDITIONAL_PROPERTIES_EXTENDED #/additionalProperties"],
    ),
    (
        record(additionalProperties=NUMBER),
        record(additionalProperties=INTEGER),
        NO,
        ["TYPE_NARROWED #/additionalProperties"],
    ),
    (
        record(additionalProperties=STRING),
        closed(),
        NO,
        ["ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"],
    ),
    (record(), record(maxProperties=2), NO, ["MAX_PROPERTIES_ADDED #/maxProperties"]),
    (record(maxProperties=2), record(), YES, ["MAX_PROPERTIES_REMOVED #/maxProperties"]),
    (record(maxProperties=2), record(maxProperties=3), YES, ["MAX_PROPERTIES_INCREASED #/maxProperties"]),
    (record(maxProperties=2), record(maxProperties=1), NO, ["MAX_PROPERTIES_DECREASED #/maxProperties"]),
    (record(), record(minProperties=2), NO, ["MIN_PROPERTIES_ADDED #/minProperties"]),
    (record(minProperties=2), record(), YES, ["MIN_PROPERTIES_REMOVED #/minProperties"]),
    (record(minProperties=2), record(minProperties=3), NO, ["MIN_PROPERTIES_INCREASED #/minProperties"]),
    (record(minProperties=2), record(minProperties=1), YES, ["MIN_PROPERTIES_DECREASED #/minProperties"]),
]


def dependent(value: Any) -> dict[str, Any]:
    return {"type": "object", "dependencies": {"a": value}}


DEPENDENCIES: list[Row] = [
    (OBJECT, dependent(["b"]), NO, ["DEPENDENCY_ARRAY_ADDED #/dependencies/a"]),
    (dependent(["b"]), OBJECT, YES, ["DEPENDENCY_ARRAY_REMOVED #/dependencies/a"]),
    (dependent(["b"]), dependent(["c", "b"]), NO, ["DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"]),
    (dependent(["b", "c"]), dependent(["c"]), YES, ["DEPENDENCY_ARRAY_NARROWED #/dependencies/a"]),
    (dependent(["b", "c"]), dependent(["b", "d"]), NO, ["DEPENDENCY_ARRAY_CHANGED #/dependencies/a"]),
    (dependent([]), OBJECT, YES, []),
    (OBJECT, dependent(record()), NO, ["DEPENDENCY_SCHEMA_ADDED #/dependencies/a"]),
    (dependent(record()), OBJECT, YES, ["DEPENDENCY_SCHEMA_REMOVED #/dependencies/a"]),
    (
        dependent(record()),
        dependent(record(maxProperties=1)),
        NO,
        ["MAX_PROPERTIES_ADDED #/dependencies/a/maxProperties"],
    ),
]

ARRAYS: list[Row] = [
    (array(items=STRING), array(items=NUMBER), NO, ["TYPE_CHANGED #/items"]),
    (ARRAY, array(items=NUMBER), NO, ["SCHEMA_ADDED #/items"]),
    (array(items=NUMBER), ARRAY, YES, ["SCHEMA_REMOVED #/items"]),
    (ARRAY, array(maxItems=2), NO, ["MAX_ITEMS_ADDED #/maxItems"]),
    (array(maxItems=2), ARRAY, YES, ["MAX_ITEMS_REMOVED #/maxItems"]),
    (array(maxItems=2), array(maxItems=3), YES, ["MAX_ITEMS_INCREASED #/maxItems"]),
    (array(maxItems=2), array(maxItems=1), NO, ["MAX_ITEMS_DECREASED #/maxItems"]),
    (ARRAY, array(minItems=2), NO, ["MIN_ITEMS_ADDED #/minItems"]),
    (array(minItems=2), ARRAY, YES, ["MIN_ITEMS_REMOVED #/minItems"]),
    (array(minItems=2), array(minItems=3), NO, ["MIN_ITEMS_INCREASED #/minItems"]),
    (array(minItems=2), array(minItems=1), YES, ["MIN_ITEMS_DECREASED #/minItems"]),
    (ARRAY, array(uniqueItems=True), NO, ["UNIQUE_ITEMS_ADDED #/uniqueItems"]),
    (array(uniqueItems=True), array(uniqueItems=False), YES, ["UNIQUE_ITEMS_REMOVED #/uniqueItems"]),
    (array(additionalItems=False), ARRAY, YES, ["ADDITIONAL_ITEMS_ADDED #/additionalItems"]),
    (ARRAY, array(additionalItems=False), NO, ["ADDITIONAL_ITEMS_REMOVED #/additionalItems"]),
    (array(additionalItems=STRING), ARRAY, YES, ["ADDITIONAL_ITEMS_EXTENDED #/additionalItems"]),
    (ARRAY, array(additionalItems=STRING), NO, ["ADDITIONAL_ITEMS_NARROWED #/additionalItems"]),
    (
        array(additionalItems=INTEGER),
        array(additionalItems=NUMBER),
        YES,
        ["TYPE_EXTENDED #/additionalItems"],
    ),
    # Where all items have one schema, there are no additional ones to forbid.
    (array(items=STRING), array(items=STRING, additionalItems=False), YES, []),
    (array(contains=STRING), array(contains=NUMBER), YES, []),
]

TUPLES: list[Row] = [
    (array(items=[STRING]), array(items=[NUMBER]), NO, ["TYPE_CHANGED #/items/0"]),
    (
        array(items=[STRING]),
        array(items=[STRING, {}]),
        YES,
        [
            "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/items/1",
        ],
    ),
    (
        array(items=[STRING]),
        array(items=[STRING, STRING]),
        NO,
        ["ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        array(items=[STRING, STRING]),
        array(items=[STRING]),
        YES,
        [
            "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/1",
        ],
    ),
    (
        array(items=[STRING], additionalItems=False),
        array(items=[STRING, STRING], additionalItems=False),
        YES,
        ["ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        array(items=[STRING, STRING], additionalItems=False),
        array(items=[STRING], additionalItems=False),
        NO,
        ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        array(items=[STRING, False], additionalItems=False),
        array(items=[STRING], additionalItems=False),
        YES,
        ["ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        array(items=[STRING], additionalItems=INTEGER),
        array(items=[STRING, NUMBER], additionalItems=INTEGER),
        YES,
        ["TYPE_EXTENDED #/items/1", "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        array(items=[STRING], additionalItems=INTEGER),
        array(items=[STRING, STRING], additionalItems=INTEGER),
        NO,
        ["TYPE_CHANGED #/items/1", "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        array(items=[STRING, STRING], additionalItems=STRING),
        array(items=[STRING], additionalItems=STRING),
        YES,
        ["ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        array(items=[STRING, NUMBER], additionalItems=STRING),
        array(items=[STRING], additionalItems=STRING),
        NO,
        ["TYPE_CHANGED #/items/1", "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
]

COMBINED: list[Row] = [
    (of("anyOf", STRING, NUMBER), of("anyOf", NUMBER, STRING), YES, []),
    (of("oneOf", STRING), of("oneOf", STRING, NUMBER), YES, ["SUM_TYPE_EXTENDED #/"]),
    (of("oneOf", STRING, NUMBER), of("oneOf", STRING), NO, ["SUM_TYPE_NARROWED #/"]),
    (of("oneOf", STRING, NUMBER), of("oneOf", STRING, BOOLEAN), NO, ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"]),
    (of("oneOf", INTEGER, STRING), of("oneOf", STRING, NUMBER), YES, ["TYPE_EXTENDED #/oneOf/0"]),
    (of("allOf", STRING, NUMBER), of("allOf", STRING), YES, ["PRODUCT_TYPE_NARROWED #/"]),
    (of("allOf", STRING), of("allOf", STRING, NUMBER), NO, ["PRODUCT_TYPE_EXTENDED #/"]),
    # What is said twice counts once.
    (of("allOf", STRING, STRING), of("allOf", STRING), YES, []),
    (of("oneOf", STRING), of("oneOf", STRING, STRING), YES, []),
    (of("oneOf", STRING), of("oneOf", STRING, string(title="b")), YES, ["SUM_TYPE_EXTENDED #/"]),
    # One alone may as well not be combined.
    (STRING, of("allOf", STRING), YES, []),
    (of("oneOf", STRING), STRING, YES, []),
    (of("oneOf", STRING), NUMBER, NO, ["TYPE_CHANGED #/"]),
    (STRING, of("allOf", STRING, NUMBER), NO, ["TYPE_CHANGED #/"]),
    (STRING, of("anyOf", NUMBER, string(title="b")), YES, ["TITLE_CHANGED #/", "SUM_TYPE_EXTENDED #/"]),
    (of("allOf", NUMBER, STRING), STRING, YES, ["PRODUCT_TYPE_NARROWED #/"]),
    (of("anyOf", NUMBER, STRING), STRING, NO, ["TYPE_CHANGED #/"]),
    # One way of combining becomes another.
    (of("oneOf", STRING, NUMBER), of("anyOf", STRING, NUMBER), YES, ["COMBINED_TYPE_EXTENDED #/"]),
    (of("anyOf", STRING, NUMBER), of("oneOf", STRING, NUMBER), NO, ["COMBINED_TYPE_CHANGED #/"]),
    (of("anyOf", STRING), of("allOf", STRING), YES, ["COMBINED_TYPE_EXTENDED #/"]),
    (
        of("allOf", STRING),
        of("oneOf", STRING, NUMBER),
        YES,
        ["COMBINED_TYPE_EXTENDED #/", "SUM_TYPE_EXTENDED #/"],
    ),
    (
        of("allOf", STRING, NUMBER),
        of("oneOf", STRING),
        YES,
        ["COMBINED_TYPE_EXTENDED #/", "PRODUCT_TYPE_NARROWED #/"],
    ),
    (of("oneOf", STRING, NUMBER), of("allOf", STRING, NUMBER), NO, ["COMBINED_TYPE_CHANGED #/"]),
    # The only way in which all find one that fits: the first takes the second's.
    (
        of("oneOf", INTEGER, NUMBER),
        of("oneOf", NUMBER, number(title="b")),
        YES,
        ["TYPE_EXTENDED #/oneOf/0", "TITLE_CHANGED #/oneOf/1"],
    ),
    # `if`, `then` and `else` are not looked into.
    ({"if": STRING, "then": {"minLength": 1}}, {"if": STRING, "then": {"minLength": 2}}, YES, []),
]

MODERN: list[Row] = [
    # Keywords of the same kind are one schema; of several, all of them.
    (
        {"maxLength": 5, "minLength": 1},
        {"minLength": 1, "maxLength": 6},
        YES,
        [
            "MAX_LENGTH_INCREASED #/maxLength",
        ],
    ),
    ({"minLength": 1, "minimum": 1}, {"minLength": 1}, YES, ["PRODUCT_TYPE_NARROWED #/"]),
    (
        {"type": ["string", "null"]},
        {"type": ["string", "null"], "maxLength": 1},
        NO,
        [
            "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/",
        ],
    ),
    (
        {"type": ["string", "null"], "maxLength": 1},
        {"type": ["string", "null"], "maxLength": 2},
        YES,
        [
            "MAX_LENGTH_INCREASED #/anyOf/0/maxLength",
        ],
    ),
    (string(format="date"), STRING, YES, []),
    (array(prefixItems=[STRING]), array(prefixItems=[NUMBER]), NO, ["TYPE_CHANGED #/items/0"]),
    (
        array(prefixItems=[STRING], items=False),
        array(prefixItems=[STRING, STRING], items=False),
        YES,
        [
            "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1",
        ],
    ),
    (
        array(prefixItems=[STRING], items=NUMBER),
        array(prefixItems=[STRING, INTEGER], items=NUMBER),
        NO,
        [
            "TYPE_NARROWED #/items/1",
            "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
        ],
    ),
    (array(items=STRING), array(items=NUMBER), NO, ["TYPE_CHANGED #/items"]),
    (array(contains=STRING), ARRAY, YES, ["MIN_CONTAINS_REMOVED #/minContains"]),
    (ARRAY, array(contains=STRING), NO, ["MIN_CONTAINS_ADDED #/minContains"]),
    (
        array(contains=STRING),
        array(contains=STRING, minContains=2),
        NO,
        ["MIN_CONTAINS_INCREASED #/minContains"],
    ),
    (
        array(contains=STRING),
        array(contains=STRING, minContains=0),
        YES,
        ["MIN_CONTAINS_DECREASED #/minContains"],
    ),
    (array(contains=STRING), array(contains=STRING, maxContains=2), NO, ["MAX_CONTAINS_ADDED #/maxContains"]),
    (
        array(contains=STRING, maxContains=2),
        array(contains=STRING),
        YES,
        ["MAX_CONTAINS_REMOVED #/maxContains"],
    ),
    (
        array(contains=STRING, maxContains=2),
        array(contains=STRING, maxContains=3),
        YES,
        [
            "MAX_CONTAINS_INCREASED #/maxContains",
        ],
    ),
    (
        array(contains=STRING, maxContains=2),
        array(contains=STRING, maxContains=1),
        NO,
        [
            "MAX_CONTAINS_DECREASED #/maxContains",
        ],
    ),
    (array(unevaluatedItems=False), ARRAY, YES, ["UNEVALUATED_ITEMS_ADDED #/unevaluatedItems"]),
    (ARRAY, array(unevaluatedItems=False), NO, ["UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems"]),
    (
        array(unevaluatedItems=STRING),
        array(unevaluatedItems=True),
        YES,
        [
            "UNEVALUATED_ITEMS_EXTENDED #/unevaluatedItems",
        ],
    ),
    (
        array(unevaluatedItems={}),
        array(unevaluatedItems=STRING),
        NO,
        [
            "UNEVALUATED_ITEMS_NARROWED #/unevaluatedItems",
        ],
    ),
    (
        OBJECT,
        {"type": "object", "unevaluatedProperties": False},
        NO,
        [
            "UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties",
        ],
    ),
    (
        {"type": "object", "unevaluatedProperties": False},
        {"type": "object", "unevaluatedProperties": STRING},
        YES,
        [
            "UNEVALUATED_PROPERTIES_ADDED #/unevaluatedProperties",
        ],
    ),
    (
        {"type": "object", "unevaluatedProperties": STRING},
        OBJECT,
        YES,
        [
            "UNEVALUATED_PROPERTIES_EXTENDED #/unevaluatedProperties",
        ],
    ),
    (
        OBJECT,
        {"type": "object", "unevaluatedProperties": STRING},
        NO,
        [
            "UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties",
        ],
    ),
    (
        {"type": "object", "unevaluatedProperties": NUMBER},
        {"type": "object", "unevaluatedProperties": INTEGER},
        NO,
        ["TYPE_NARROWED #/unevaluatedProperties"],
    ),
    (
        record(unevaluatedProperties=STRING),
        record({"a": STRING}, unevaluatedProperties=STRING),
        YES,
        [
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        {"type": "object", "dependentRequired": {"a": ["b", "c"]}},
        NO,
        ["DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"],
    ),
    (
        {"type": "object", "dependentSchemas": {"a": OBJECT}},
        {"type": "object", "dependentSchemas": {"a": ARRAY}},
        NO,
        ["TYPE_CHANGED #/dependencies/a"],
    ),
    # Unknown keywords hide what is unevaluated.
    (OBJECT, {"type": "object", "unevaluatedProperties": False, "$comment": "c"}, YES, []),
    (string(**{"$id": "urn:a"}), string(**{"$id": "urn:b"}), YES, []),
]

DRAFT_4: list[Row] = [
    (string(id="urn:a"), string(id="urn:b"), YES, ["ID_CHANGED #/"]),
    (number(minimum=1), number(minimum=1, exclusiveMinimum=True), YES, []),
    ({"const": "a"}, {"const": "b"}, YES, []),
]

GROUPS = {
    "annotations": ANNOTATIONS,
    "types": TYPES,
    "strings": STRINGS,
    "numbers": NUMBERS,
    "values": VALUES,
    "properties": PROPERTIES,
    "objects": OBJECTS,
    "dependencies": DEPENDENCIES,
    "arrays": ARRAYS,
    "tuples": TUPLES,
    "combined": COMBINED,
    "modern": MODERN,
    "draft 4": DRAFT_4,
}
DIALECTS = {
    "modern": "https://json-schema.org/draft/2020-12/schema",
    "draft 4": "http://json-schema.org/draft-04/schema#",
}
ROWS = [(group, *row) for group, rows in GROUPS.items() for row in rows]


def parsed(schema: Any, group: str) -> json_schema.JsonSchema:
    if isinstance(schema, dict) and group in DIALECTS:
        schema = {"$schema": DIALECTS[group], **schema}
    return json_schema.parse(text(schema), {})


def text(schema: Any) -> str:
    return write(schema)


def found(original: json_schema.JsonSchema, update: json_schema.JsonSchema) -> list[str]:
    differences = Comparison(compared, everything=True).compare(original.root, update.root)
    return [f"{change.name} {path}" for change, path in differences.changes()]


@pytest.mark.parametrize(("group", "original", "update", "compatible", "changes"), ROWS)
def test_a_difference_is_found_and_judged(
    group: str, original: Any, update: Any, compatible: bool, changes: list[str]
) -> None:
    before, after = parsed(original, group), parsed(update, group)
    assert sorted(found(before, after)) == sorted(changes)
    refused = after.refused(before)
    assert (not refused) == compatible
    for message in refused:
        assert any(
            f'errorType:"{change.split(" ")[0]}"' in message and f"'{change.split(' ')[1]}'" in message
            for change in changes
        )


def test_every_kind_of_difference_is_in_the_tables() -> None:
    named = {change.split(" ")[0] for _, _, _, _, changes in ROWS for change in changes}
    assert named == {change.name for change in Change}


def test_every_difference_that_is_refused_has_words() -> None:
    assert all(INCOMPATIBLE.values())


@pytest.mark.parametrize(("group", "original", "update", "compatible", "changes"), ROWS)
def test_what_is_read_with_the_schema_it_was_written_with_is_never_refused(
    group: str, original: Any, update: Any, compatible: bool, changes: list[str]
) -> None:
    for schema in (original, update):
        assert parsed(schema, group).refused(parsed(schema, group)) == []
