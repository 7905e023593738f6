"""Schemas that were written to do harm: they are refused, or compared in time that has a bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.json_schema import schema as json_schema
from ottla.registry.formats.json_schema.differences import MAX_MESSAGES

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
DRAFTS: list[dict[str, Any]] = [{}, {"$schema": DRAFT_2020}]


def parse(schema: Any) -> json_schema.JsonSchema:
    return json_schema.parse(json.dumps(schema), {})


def nested(depth: int) -> str:
    return '{"items":' * depth + '{"type":"string"}' + "}" * depth


def test_a_schema_of_many_levels_is_taken() -> None:
    for text in (nested(90), f'{{"$schema":"{DRAFT_2020}",{nested(90)[1:]}'):
        parsed = json_schema.parse(text, {})
        assert parsed.refused(json_schema.parse(text, {})) == []
        assert parsed.normalized


@pytest.mark.parametrize("opening", ['{"items":', '{"a":', '{"not":', '{"allOf":[', '{"enum":['])
@pytest.mark.parametrize("depth", [250, 100_000])
def test_a_schema_that_is_nested_too_deep_is_refused(opening: str, depth: int) -> None:
    closing = "".join({"[": "]", "{": "}"}[each] for each in reversed(opening) if each in "[{")
    with pytest.raises(InvalidSchema, match="nested"):
        json_schema.parse(opening * depth + "true" + closing * depth, {})
    with pytest.raises(InvalidSchema):
        json_schema.parse(opening * depth, {})


def test_a_reference_that_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="nested"):
        json_schema.parse('{"$ref":"a.json"}', {"a.json": nested(300)})


@pytest.mark.parametrize("number", ["1" * 5000, "1." + "1" * 5000, "1e999999999999999999999", "1e-9999999"])
def test_a_number_out_of_all_proportion_is_refused(number: str) -> None:
    with pytest.raises(InvalidSchema, match="number"):
        json_schema.parse(f'{{"maximum":{number}}}', {})


def test_numbers_of_many_digits_are_compared() -> None:
    def of(keyword: str, number: str) -> json_schema.JsonSchema:
        return json_schema.parse(f'{{"type":"number","{keyword}":{number}}}', {})

    assert of("maximum", "1e400").refused(of("maximum", "1e308")) == []
    assert of("maximum", "1e308").refused(of("maximum", "9" * 900))
    assert of("multipleOf", "1e90000").refused(of("multipleOf", "3e-90000"))


def test_a_message_does_not_repeat_the_schema() -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse({"type": "x" * 100_000})
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize("draft", DRAFTS)
def test_chains_of_references_take_no_stack(draft: dict[str, Any]) -> None:
    def of(kind: str) -> json_schema.JsonSchema:
        last = 2000
        definitions: dict[str, Any] = {
            str(at): {"type": "object", "properties": {"next": {"$ref": f"#/definitions/{at + 1}"}}}
            for at in range(last)
        }
        definitions[str(last)] = {"type": kind}
        return parse({**draft, "definitions": definitions, "$ref": "#/definitions/0"})

    assert of("string").refused(of("string")) == []
    assert len(of("string").refused(of("number"))) == 1


@pytest.mark.parametrize("draft", DRAFTS)
def test_shared_references_are_compared_once(draft: dict[str, Any]) -> None:
    def of(kind: str) -> json_schema.JsonSchema:
        levels = 60
        definitions: dict[str, Any] = {
            str(at): {
                "type": "object",
                "properties": {name: {"$ref": f"#/definitions/{at + 1}"} for name in ("left", "right")},
            }
            for at in range(levels)
        }
        definitions[str(levels)] = {"type": kind}
        return parse({**draft, "definitions": definitions, "properties": {"a": {"$ref": "#/definitions/0"}}})

    assert of("string").refused(of("string")) == []
    # Two to the power of sixty paths lead to the one difference.
    assert len(of("string").refused(of("number"))) == MAX_MESSAGES


@pytest.mark.parametrize("draft", DRAFTS)
def test_unions_of_all_with_all_are_compared(draft: dict[str, Any]) -> None:
    def of(kind: str) -> json_schema.JsonSchema:
        names = [f"kind{at}" for at in range(12)]
        union = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
        definitions = {
            name: {
                "type": "object",
                "properties": {"tag": {"const": name}, "id": {"type": kind}, "one": union, "two": union},
            }
            for name in names
        }
        return parse({**draft, "definitions": definitions, "properties": {"root": union}})

    assert of("string").refused(of("string")) == []
    assert of("string").refused(of("number"))


def test_what_would_take_too_long_to_compare_is_refused_for_that() -> None:
    def of(count: int) -> json_schema.JsonSchema:
        return parse({"anyOf": [{"const": at} for at in range(count)]})

    assert of(100).refused(of(100)) == []
    assert of(2000).refused(of(2000)) == ["the schemas are too large to compare"]


def test_patterns_take_no_exponential_time() -> None:
    names = {"a" * 40 + "b": {"type": "string"}}
    before = parse({"type": "object", "properties": names, "additionalProperties": False})
    after = parse(
        {
            "type": "object",
            "patternProperties": {"^(a+)+$": {}, "^((a*)*)*$": {}, "^(a|a)*c$": {}},
            "additionalProperties": False,
        }
    )
    assert "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL" in after.refused(before)[0]


def test_many_patterns_with_many_names_are_given_up_on() -> None:
    names = {f"{at}{'a' * 100}": {"type": "string"} for at in range(500)}
    before = parse({"type": "object", "properties": names, "additionalProperties": False})
    patterns = {f"^(a?){{100}}a{{100}}{at}": {} for at in range(500)}
    after = parse({"type": "object", "patternProperties": patterns, "additionalProperties": False})
    assert after.refused(before) == ["the schemas are too large to compare"]


def test_alternatives_of_many_properties_are_given_up_on() -> None:
    def of(prefix: str) -> json_schema.JsonSchema:
        def alternative(at: int) -> dict[str, Any]:
            return {"type": "object", "properties": {f"{prefix}{at}.{each}": {} for each in range(100)}}

        return parse({"anyOf": [alternative(at) for at in range(300)]})

    assert of("a").refused(of("b")) == ["the schemas are too large to compare"]


def test_a_type_that_is_named_over_and_over_is_read_once() -> None:
    properties = {str(at): {} for at in range(1000)}
    schema = {"type": ["object"] * 20_000, "properties": properties}
    assert parse(schema).refused(parse(schema)) == []


def test_a_message_does_not_repeat_a_long_name() -> None:
    name = "n" * 100_000
    before = parse(
        {"type": "object", "properties": {name: {"type": "string"}}, "additionalProperties": False}
    )
    after = parse({"type": "object", "additionalProperties": False})
    (message,) = after.refused(before)
    assert len(message) < 2000


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_long_id_names_nothing(draft: dict[str, Any]) -> None:
    schema = {**draft, "$id": f"http://example.com/{'a' * 100_000}/", "items": {"$id": "b", "type": "string"}}
    assert parse(schema).refused(parse(schema)) == []
    with pytest.raises(InvalidSchema, match="longer than"):
        parse({**draft, "$ref": f"#/{'a' * 100_000}"})
