"""Whatever the JSON, it is a schema that can be compared or it is refused: nothing else happens."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.json_schema import schema as json_schema

DIALECTS = st.sampled_from(
    [
        None,
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    ]
)
NAMES = st.sampled_from(["a", "b", "ab", ""])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats(0, 2) | st.text("ab#/", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object"])
COUNTS = st.integers(0, 3)
REFS = st.sampled_from(
    ["#", "#/definitions/a", "#/$defs/b", "#/properties/a", "#/nothing", "other.json", "#a"]
)


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    members = st.dictionaries(NAMES, inner, max_size=2)
    some = st.lists(inner, max_size=3)
    names = st.lists(NAMES, max_size=2)
    values: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES | st.lists(TYPES, max_size=3),
        "title": st.text("ab", max_size=1),
        "default": ANY,
        "format": st.sampled_from(["date", "x"]),
        "enum": st.lists(ANY, max_size=3),
        "const": ANY,
        "pattern": st.sampled_from(["^a", "("]),
        "required": names,
        "properties": members,
        "patternProperties": members,
        "definitions": members,
        "$defs": members,
        "dependentSchemas": members,
        "dependencies": st.dictionaries(NAMES, inner | names, max_size=2),
        "dependentRequired": st.dictionaries(NAMES, names, max_size=2),
        "uniqueItems": st.booleans(),
        "readOnly": st.booleans(),
        "$ref": REFS,
        "$id": st.sampled_from(["#a", "http://example.com/a", "urn:a", "b"]),
        "$anchor": st.just("a"),
        "x": ANY,
        "items": inner | some,
        **dict.fromkeys(["allOf", "anyOf", "oneOf", "prefixItems"], some),
        **dict.fromkeys(["not", "if", "then", "else", "contains", "propertyNames"], inner),
        **dict.fromkeys(["additionalProperties", "additionalItems"], inner),
        **dict.fromkeys(["unevaluatedProperties", "unevaluatedItems"], inner),
        **dict.fromkeys(["minLength", "maxLength", "minimum", "maximum", "multipleOf"], COUNTS),
        **dict.fromkeys(["exclusiveMinimum", "exclusiveMaximum"], COUNTS | st.booleans()),
        **dict.fromkeys(["minItems", "maxItems", "minContains", "maxContains"], COUNTS),
        **dict.fromkeys(["minProperties", "maxProperties"], COUNTS),
    }
    pairs = [st.tuples(st.just(name), value) for name, value in values.items()]
    return st.lists(st.one_of(pairs), max_size=4).map(dict)


SCHEMAS = st.recursive(st.booleans() | st.just({}) | st.builds(lambda kind: {"type": kind}, TYPES), keywords)


def parsed(schema: Any, dialect: str | None = None) -> json_schema.JsonSchema | None:
    if isinstance(schema, dict) and dialect is not None:
        schema = {"$schema": dialect, **schema}
    try:
        return json_schema.parse(json.dumps(schema), {"other.json": '{"type":["string","null"]}'})
    except InvalidSchema as error:
        assert str(error)
        return None


@given(SCHEMAS, DIALECTS)
def test_data_can_be_read_with_the_schema_it_was_written_with(schema: Any, dialect: str | None) -> None:
    one, other = parsed(schema, dialect), parsed(schema, dialect)
    if one is None or other is None:
        return
    assert one.refused(other) == []
    again = json_schema.parse(one.normalized, {"other.json": '{"type":["string","null"]}'})
    assert again.normalized == one.normalized


@given(SCHEMAS, DIALECTS, SCHEMAS, DIALECTS)
def test_any_two_schemas_can_be_compared(
    schema: Any, dialect: str | None, other_schema: Any, other_dialect: str | None
) -> None:
    one, other = parsed(schema, dialect), parsed(other_schema, other_dialect)
    if one is not None and other is not None:
        for message in one.refused(other):
            assert message.startswith('{errorType:"')


@given(ANY)
def test_json_that_is_no_schema_is_refused(value: Any) -> None:
    parsed(value)


@given(st.text('{}[]":,ab1-.e \\u', max_size=20))
def test_noise_is_refused(text: str) -> None:
    with suppress(InvalidSchema):
        json_schema.parse(text, {})
