"""Reading JSON Schemas: what is taken, what is kept of it, what references refer to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.json_schema import schema as json_schema
from ottla.registry.formats.json_schema.text import read, write

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_6 = "http://json-schema.org/draft-06/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
ALL = (None, DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020)


def parse(schema: Any, references: dict[str, Any] | None = None) -> json_schema.JsonSchema:
    texts = {name: json.dumps(each) for name, each in (references or {}).items()}
    return json_schema.parse(json.dumps(schema), texts)


def of_draft(draft: str | None, **keywords: Any) -> dict[str, Any]:
    return keywords if draft is None else {"$schema": draft, **keywords}


# The text that is kept.


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (' { "type" :\n"string" } ', '{"type":"string"}'),
        ('{"title":"b","properties":{"b":{},"a":{}}}', '{"title":"b","properties":{"b":{},"a":{}}}'),
        ('{"enum":[1,1.0,1.50,-0,-0.0,1e5,1.0E-7]}', '{"enum":[1,1.0,1.50,0,0.0,1E+5,1.0E-7]}'),
        ('{"enum":[0.000001,12345678901234567890]}', '{"enum":[0.000001,12345678901234567890]}'),
        ("true", "true"),
        (" false", "false"),
        ("{}", "{}"),
        ('{"enum":[[],{},[[]],null,true,false]}', '{"enum":[[],{},[[]],null,true,false]}'),
        ('{"title":"\\u00e9\\/\\u0041"}', '{"title":"é/A"}'),
        ('{"title":"\\"\\\\\\b\\u0001\\u001f\\u007f"}', '{"title":"\\"\\\\\\b\\u0001\\u001F\x7f"}'),
        ('{"title":"a","title":"b"}', '{"title":"b"}'),
        ('{"title":"\\ud83d\\ude00"}', '{"title":"😀"}'),
    ],
)
def test_the_text_that_is_kept_has_no_layout_and_its_members_in_their_order(
    text: str, canonical: str
) -> None:
    parsed = json_schema.parse(text, {})
    assert parsed.canonical == canonical
    assert json_schema.parse(parsed.canonical, {}).canonical == canonical


def test_the_normalized_text_has_members_ordered_by_name_at_every_level() -> None:
    one = json_schema.parse('{"type":"object","properties":{"b":{"type":"string","title":"t"},"a":{}}}', {})
    other = json_schema.parse('{"properties":{"a":{},"b":{"title":"t","type":"string"}},"type":"object"}', {})
    assert one.canonical != other.canonical
    assert one.normalized == other.normalized
    assert one.normalized == '{"properties":{"a":{},"b":{"title":"t","type":"string"}},"type":"object"}'


def test_normalizing_leaves_the_order_of_arrays() -> None:
    assert parse({"enum": ["b", "a"]}).normalized == '{"enum":["b","a"]}'


def test_names_are_ordered_as_java_orders_them() -> None:
    # By UTF-16 code units: U+1F600 is written as two of which the first is less than U+FF5E.
    parsed = json_schema.parse('{"properties":{"\uff5e":{},"\U0001f600":{}}}', {})
    assert parsed.normalized == '{"properties":{"\U0001f600":{},"\uff5e":{}}}'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON.filter(lambda value: "\ud800" not in repr(value)))
def test_what_is_written_is_the_json_that_was_read(value: Any) -> None:
    text = json.dumps(value)
    assert json.loads(write(read(text))) == value
    assert write(read(write(read(text)))) == write(read(text))
    ordered = write(read(text), ordered=True)
    assert write(read(ordered), ordered=True) == ordered


# What is taken and what is not.


@pytest.mark.parametrize("draft", ALL)
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}, "required": ["a"]},
        {"type": ["string", "null"], "format": "unheard-of"},
        {"oneOf": [{"type": "integer"}, {"enum": []}]},
        {"definitions": {"a": {"type": "string"}}, "properties": {"b": {"$ref": "#/definitions/a"}}},
        {"definitions": {"a": {"type": "string"}}, "properties": {"b": {"$ref": "#/$defs/a"}}},
        {"unheard-of": {"type": 5}, "x": None},
        {"pattern": "(?<year>\\p{Digit}{4})++"},
        {"type": "object", "additionalProperties": {"not": {"type": "string"}}},
    ],
)
def test_a_schema_is_taken(draft: str | None, schema: dict[str, Any]) -> None:
    parsed = parse(of_draft(draft, **schema))
    assert parsed.refused(parsed) == []


@pytest.mark.parametrize("draft", ALL)
@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "text"}, "#: there is no type 'text'"),
        ({"type": 5}, "#: type must be a string or an array"),
        ({"type": ["string", 5]}, "#: "),
        ({"properties": {"a": {"type": "nothing"}}}, "#/properties/a: there is no type"),
        ({"properties": []}, "#: properties must be an object, not an array"),
        ({"properties": {"a": 5}}, "#/properties/a: a schema must be an object or a boolean, not a number"),
        ({"required": "a"}, "#: required must be an array, not a string"),
        ({"required": [1]}, "#: what is in required must be a string"),
        ({"minLength": "5"}, "#: minLength must be a number, not a string"),
        ({"maximum": True}, "#: maximum must be a number, not a boolean"),
        ({"pattern": 1}, "#: pattern must be a string"),
        ({"enum": {}}, "#: enum must be an array"),
        ({"allOf": {}}, "#: allOf must be an array"),
        ({"anyOf": [{}, {"not": 1}]}, "#/anyOf/1/not: a schema must be"),
        ({"title": 1}, "#: title must be a string, not a number"),
        ({"description": None}, "#: description must be a string, not null"),
        ({"uniqueItems": 1}, "#: uniqueItems must be a boolean, not a number"),
        ({"items": 1}, "#/items: a schema must be"),
        ({"additionalProperties": 1}, "#/additionalProperties: a schema must be"),
        ({"$ref": 1}, "#: $ref must be a string"),
        ({"$ref": "#/nowhere"}, "#: $ref '#/nowhere' refers to nothing"),
        ({"items": {"$ref": "other.json"}}, "#/items: $ref 'other.json' is not among the references"),
        (
            {"$ref": "http://example.com/a.json"},
            "$ref 'http://example.com/a.json' is not among the references",
        ),
    ],
)
def test_a_schema_is_refused_with_what_is_wrong_and_where(
    draft: str | None, schema: dict[str, Any], where: str
) -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse(of_draft(draft, **schema))
    assert where in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["", "null", "5", '"string"', "[]", "{", "{}{}", "{'a':1}", '{"a":}', "\ufeff{}", '{"title":"\\ud800"}'],
)
def test_what_is_no_json_object_or_boolean_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        json_schema.parse(text, {})


def test_a_draft_has_its_own_keywords() -> None:
    with pytest.raises(InvalidSchema, match="exclusiveMinimum must be a number"):
        parse({"exclusiveMinimum": True})
    with pytest.raises(InvalidSchema, match="exclusiveMinimum must be a boolean"):
        parse(of_draft(DRAFT_4, exclusiveMinimum=5))
    with pytest.raises(InvalidSchema, match="items must be an object or an array"):
        parse(of_draft(DRAFT_4, items=True))
    with pytest.raises(InvalidSchema, match="minLength must be an integer"):
        parse({"minLength": 5.0})
    parse(of_draft(DRAFT_2020, minLength=5.0))
    parse({"items": [{}]})
    with pytest.raises(InvalidSchema, match="#/items: a schema must be"):
        parse(of_draft(DRAFT_2019, items=[{}]))
    with pytest.raises(InvalidSchema, match="multipleOf must not be 0"):
        parse({"multipleOf": 0})
    parse(of_draft(DRAFT_4, const="a", contains=5, propertyNames=5, **{"if": 5}))


def test_an_unknown_dialect_is_read_as_draft_7() -> None:
    parse({"$schema": "http://example.com/own-dialect", "exclusiveMinimum": 5})
    with pytest.raises(InvalidSchema, match=r"\$schema must be a string"):
        parse({"$schema": 7})


def test_what_nothing_refers_to_is_not_looked_at_before_draft_2019() -> None:
    parse({"definitions": {"a": {"type": "nothing"}}})
    with pytest.raises(InvalidSchema):
        parse({"definitions": {"a": {"type": "nothing"}}, "$ref": "#/definitions/a"})
    with pytest.raises(InvalidSchema):
        parse(of_draft(DRAFT_2020, **{"$defs": {"a": {"type": "nothing"}}}))


# References.


def reads(reader: Any, writer: Any, **references: Any) -> bool:
    return not parse(reader, references.get("reader")).refused(parse(writer, references.get("writer")))


@pytest.mark.parametrize("draft", ALL)
def test_what_a_reference_refers_to_counts(draft: str | None) -> None:
    def of(kind: str) -> dict[str, Any]:
        return of_draft(
            draft, definitions={"a": {"type": kind}}, properties={"b": {"$ref": "#/definitions/a"}}
        )

    assert reads(of("number"), of("integer"))
    assert not reads(of("integer"), of("number"))
    assert reads(of("number"), of_draft(draft, properties={"b": {"type": "integer"}}))
    assert not reads(of_draft(draft, properties={"b": {"type": "integer"}}), of("number"))


@pytest.mark.parametrize("draft", ALL)
def test_references_to_other_schemas_are_found_by_name(draft: str | None) -> None:
    schema = of_draft(
        draft, properties={"a": {"$ref": "a.json"}, "b": {"$ref": "b.json#/definitions/of~1b%20"}}
    )
    others = {
        "a.json": {"type": "string"},
        # Which refers to another in turn, and to itself.
        "b.json": {"definitions": {"of/b ": {"$ref": "#/definitions/c"}, "c": {"items": {"$ref": "c.json"}}}},
        "c.json": {"properties": {"next": {"$ref": "#"}, "a": {"$ref": "a.json"}}},
    }
    same = parse(schema, others)
    assert same.refused(parse(schema, others)) == []
    changed = parse(schema, {**others, "a.json": {"type": "number"}})
    assert any("'#/properties/a'" in message for message in changed.refused(same))
    with pytest.raises(InvalidSchema, match=r"'c\.json' is not among the references"):
        parse(schema, {name: each for name, each in others.items() if name != "c.json"})


@pytest.mark.parametrize("draft", [None, DRAFT_2020])
def test_a_name_may_be_relative_to_the_id_of_the_schema(draft: str | None) -> None:
    schema = of_draft(
        draft,
        **{
            "$id": "http://example.com/schemas/order.json",
            "properties": {
                "a": {"$ref": "item.json"},
                "b": {"$ref": "http://example.com/schemas/item.json#/definitions/name"},
                "c": {"$ref": "./item.json"},
                "d": {"$ref": "#/properties/a"},
                "e": {"$ref": "http://example.com/schemas/order.json#/properties/a"},
                "f": {"$ref": "/schemas/item.json"},
            },
        },
    )
    item = {"type": "object", "definitions": {"name": {"type": "string"}}}
    parse(schema, {"item.json": item})
    parse(schema, {"http://example.com/schemas/item.json": item})


def test_a_part_with_an_id_or_an_anchor_is_found_by_it() -> None:
    def old(kind: str) -> dict[str, Any]:
        return {
            "definitions": {"a": {"$id": "#text", "type": kind}, "b": {"$id": "b.json", "type": kind}},
            "properties": {"a": {"$ref": "#text"}, "b": {"$ref": "b.json"}},
        }

    def modern(kind: str) -> dict[str, Any]:
        return of_draft(
            DRAFT_2020,
            **{
                "$defs": {
                    "a": {"$anchor": "text", "type": kind},
                    "b": {"$id": "b.json", "$defs": {"c": {"type": kind}}, "$ref": "#/$defs/c"},
                },
                "properties": {"a": {"$ref": "#text"}, "b": {"$ref": "b.json#/$defs/c"}},
            },
        )

    for of in (old, modern):
        assert len(parse(of("string")).refused(parse(of("string")))) == 0
        assert len(parse(of("string")).refused(parse(of("number")))) == 2
    with pytest.raises(InvalidSchema, match="anchor"):
        parse(of_draft(DRAFT_2020, **{"$ref": "#nothing"}))


def test_what_has_an_id_is_a_scope_of_its_own() -> None:
    def of(kind: str) -> dict[str, Any]:
        inner = {
            "$id": "inner/b.json",
            "$defs": {"c": {"$anchor": "here", "type": kind}},
            "properties": {"d": {"$ref": "#/$defs/c"}, "e": {"$ref": "#here"}, "f": {"$ref": "../f.json"}},
        }
        schema = {"$id": "http://example.com/a/", "$defs": {"b": inner, "c": {"type": "null"}}}
        return of_draft(DRAFT_2020, **schema, properties={"b": {"$ref": "inner/b.json"}})

    texts = {"f.json": '{"type":"string"}'}
    one, other = (json_schema.parse(json.dumps(of(kind)), texts) for kind in ("number", "integer"))
    assert one.refused(other) == []
    refused = other.refused(one)
    assert len(refused) == 2
    assert all("TYPE_NARROWED" in message for message in refused)


@pytest.mark.parametrize("draft", ALL[2:])
@pytest.mark.parametrize(
    "meta", [DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020, "https://json-schema.org/draft-07/schema"]
)
def test_the_meta_schemas_may_be_referred_to(draft: str, meta: str) -> None:
    schema = of_draft(draft, properties={"a": {"$ref": meta}})
    assert parse(schema).refused(parse(schema)) == []


@pytest.mark.parametrize("draft", ALL)
@pytest.mark.parametrize("other", ALL)
def test_a_schema_may_refer_to_one_of_another_draft(draft: str | None, other: str | None) -> None:
    referred = of_draft(other, definitions={"c": {"type": "integer"}}, items={"$ref": "#/$defs/c"})
    schema = of_draft(draft, properties={"a": {"$ref": "other.json"}})
    assert parse(schema, {"other.json": referred}).refused(parse(schema, {"other.json": referred})) == []


def test_defs_are_found_among_definitions_but_not_the_other_way_round() -> None:
    schema = {"definitions": {"a": {"type": "string"}}, "$ref": "#/$defs/a"}
    # What is kept is what was written.
    assert parse(schema).canonical == '{"definitions":{"a":{"type":"string"}},"$ref":"#/$defs/a"}'
    with pytest.raises(InvalidSchema, match="refers to nothing"):
        parse({"$defs": {"a": {"type": "string"}}, "$ref": "#/definitions/a"})
    both = {"definitions": {"a": {"type": "nothing"}}, "$defs": {"a": {"type": "string"}}}
    parse({**both, "$ref": "#/$defs/a"})


def test_beside_a_reference_nothing_counts_before_draft_2019() -> None:
    def of(draft: str, length: int) -> dict[str, Any]:
        properties = {"b": {"$ref": "#/definitions/a", "maxLength": length}}
        return of_draft(draft, definitions={"a": {"type": "string"}}, properties=properties)

    assert reads(of(DRAFT_7, 1), of(DRAFT_7, 2))
    assert not reads(of(DRAFT_2020, 1), of(DRAFT_2020, 2))


# Schemas that refer to themselves.


def tree(kind: str, draft: str | None) -> dict[str, Any]:
    return of_draft(
        draft,
        type="object",
        properties={
            "value": {"type": kind},
            "left": {"$ref": "#"},
            "right": {"oneOf": [{"type": "null"}, {"$ref": "#"}]},
        },
    )


@pytest.mark.parametrize("draft", ALL)
def test_a_recursive_schema_is_compared(draft: str | None) -> None:
    assert reads(tree("string", draft), tree("string", draft))
    assert reads(tree("number", draft), tree("integer", draft))
    refused = parse(tree("integer", draft)).refused(parse(tree("number", draft)))
    assert any("'#/properties/value'" in message for message in refused)


def test_what_was_assumed_of_a_recursive_pair_is_taken_back_if_it_is_not_so() -> None:
    def of(first: str, second: str) -> dict[str, Any]:
        def node(kind: str, following: str) -> dict[str, Any]:
            properties = {"id": {"type": kind}, "next": {"oneOf": [{"$ref": f"#/definitions/{following}"}]}}
            return {"type": "object", "properties": properties}

        # a -> c -> a: that a fits a is assumed while c is compared.
        return {
            "definitions": {"a": node(first, "c"), "b": node(second, "c"), "c": node("integer", "a")},
            "properties": {"root": {"oneOf": [{"$ref": "#/definitions/a"}, {"$ref": "#/definitions/b"}]}},
        }

    assert reads(of("integer", "boolean"), of("integer", "boolean"))
    assert not reads(of("boolean", "number"), of("integer", "boolean"))


@pytest.mark.parametrize("draft", [None, DRAFT_2020])
def test_a_reference_to_itself_alone_is_taken(draft: str | None) -> None:
    schema = of_draft(draft, **{"$ref": "#"})
    assert reads(schema, schema)
