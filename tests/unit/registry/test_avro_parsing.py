"""Which Avro schemas there are: what is refused, in which words, and what is taken though it looks odd."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.avro.json import MAX_NESTING
from ottla.registry.formats.avro.schema import parse, parse_kept


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, **more, "fields": list(fields)}


def field(type: Any, name: str = "f", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


E = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
F = {"type": "fixed", "name": "F", "size": 4}

NOT_JSON = {
    "nothing": "",
    "a bare name": "string",
    "a bare record": "{type: record}",
    "single quotes": "{'type': 'string'}",
    "two values": '"string" "int"',
    "half an object": '{"type": "string"',
    "a number that is none": '{"type": "int", "x": NaN}',
    "a comment that does not end": '"string" /* which',
    "a comment that is its own end": '"string" /*/',
    "a string that does not end": '{"type": "string // }',
    "a number too long for one": '{"type": "int", "x": ' + "1" * 10_000 + "}",
}

INVALID: dict[str, tuple[Any, str]] = {
    "null": (None, "Neither a name, an object nor an array: null"),
    "a number": (3, "Neither a name, an object nor an array: 3"),
    "an unknown name": ("R", "Undefined schema: R"),
    "an unknown type": ({"type": "strange"}, "Undefined schema: strange"),
    "no type": ({"name": "R"}, "No type"),
    "a type within a type": ({"type": {"type": "string"}}, "No type"),
    "a union within a type": ({"type": ["null", "string"]}, "No type"),
    "a record without a name": ({"type": "record", "fields": []}, "No name"),
    "a record whose name is no text": ({"type": "record", "name": 1, "fields": []}, "No name"),
    "a record without fields": ({"type": "record", "name": "R"}, "Record has no fields"),
    "fields that are no array": ({"type": "record", "name": "R", "fields": {}}, "Record has no fields"),
    "a field that is no object": (record("f"), "No field name"),
    "a field without a name": (record({"type": "int"}), "No field name"),
    "a field without a type": (record({"name": "f"}), "No field type"),
    "a field whose type is null": (record({"name": "f", "type": None}), "Neither a name"),
    "a field twice": (record(field("int"), field("int")), "Duplicate field f in record R"),
    "a field of an unknown type": (record(field("other")), r"Undefined schema: other \(at /fields/0/type\)"),
    "an unknown type in its namespace": (record(field("O"), namespace="a.b"), "Undefined schema: a.b.O"),
    "no such order": (record(field("int", order="up")), "No order"),
    "an order that is no text": (record(field("int", order=1)), "No order"),
    "aliases that are no array": (record(aliases="Q"), "aliases not an array"),
    "an alias that is no text": (record(aliases=[1]), "alias not a string"),
    "an alias with a bad name": (record(aliases=["a-b"]), "Illegal character in: a-b"),
    "a field's aliases that are no array": (record(field("int", aliases="g")), "aliases not an array"),
    "an empty name": (record(name=""), "Empty name"),
    "a name that starts with a digit": (record(name="1R"), "Illegal initial character: 1R"),
    "a name with a dash": (record(name="my-record"), "Illegal character in: my-record"),
    "a name that ends in a dot": (record(name="a."), "Empty name"),
    "a name of letters from afar": (record(name="Żółw"), "Illegal initial character"),
    "a namespace with a dash": (record(namespace="a-b.c"), 'Namespace part "a-b" is invalid'),
    "a namespace with a gap": (record(namespace="a..b"), 'Namespace part "" is invalid'),
    "a full name with a bad namespace": (record(name="a-b.R"), 'Namespace part "a-b" is invalid'),
    "a field with a bad name": (
        record(field("int", name="a-b")),
        r"Illegal character in: a-b \(at /fields/0\)",
    ),
    "a name after a primitive": (record(name="string"), "Schemas may not be named after primitives"),
    "a name without end": (record(name="R" * 2000), "longer than 1024"),
    "a type without end": (record(field("R" * 2000)), "longer than 1024"),
    "an alias without end": (record(aliases=["R" * 2000]), "longer than 1024"),
    "an enum without a name": ({"type": "enum", "symbols": []}, "No name"),
    "an enum without symbols": ({"type": "enum", "name": "E"}, "Enum has no symbols"),
    "symbols that are no array": ({"type": "enum", "name": "E", "symbols": "A"}, "Enum has no symbols"),
    "a symbol that is no text": ({"type": "enum", "name": "E", "symbols": [1]}, "Symbol is not a string: 1"),
    "a symbol with a dash": ({"type": "enum", "name": "E", "symbols": ["A-B"]}, "Illegal character in: A-B"),
    "a symbol twice": ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "Duplicate enum symbol: A"),
    "an enum whose default it lacks": ({**E, "default": "C"}, "is not in the enum symbol set"),
    "a fixed without a size": ({"type": "fixed", "name": "F"}, "Invalid or no size"),
    "a fixed with half a size": ({"type": "fixed", "name": "F", "size": 1.5}, "Invalid or no size"),
    "a fixed with a size of text": ({"type": "fixed", "name": "F", "size": "4"}, "Invalid or no size"),
    "a fixed with a size of truth": ({"type": "fixed", "name": "F", "size": True}, "Invalid or no size"),
    "a fixed of less than nothing": ({"type": "fixed", "name": "F", "size": -1}, "Invalid or no size"),
    "a fixed too large": ({"type": "fixed", "name": "F", "size": 2**31}, "Invalid or no size"),
    "an array without items": ({"type": "array"}, "Array has no items type"),
    "a map without values": ({"type": "map"}, "Map has no values type"),
    "a union with a type twice": (["int", "string", "int"], "Duplicate in union: int"),
    "a union with two arrays": (
        [{"type": "array", "items": "int"}, {"type": "array", "items": "long"}],
        "Duplicate in union: array",
    ),
    "a union with two maps": (
        [{"type": "map", "values": "int"}, {"type": "map", "values": "long"}],
        "Duplicate in union: map",
    ),
    "a union with a name twice": ([record(), "R"], "Duplicate in union: R"),
    "a union with a later name twice": (["R", record(), "R"], "Duplicate in union: R"),
    "a union with its own record twice": (record(field(["null", "R", "R"])), "Duplicate in union: R"),
    "a union with a logical type and its type": (
        ["long", {"type": "long", "logicalType": "timestamp-millis"}],
        "Duplicate in union: long",
    ),
    "a union in a union": (["int", ["null", "string"]], "Nested union"),
    "a definition that differs": (
        [record(field(F, "a"), name="R1"), record(field({**F, "size": 5}, "a"), name="R2")],
        "Can't redefine: F",
    ),
    "a definition with another field": (
        [record(field(record(name="S"))), record(field("int"), name="S")],
        "Can't re",
    ),
    "a definition that refers to itself": (
        record(
            field(record(field(["null", "N"], "n"), name="N"), "a"),
            field(record(field(["null", "N"], "n"), name="N"), "b"),
        ),
        "Can't redefine: N",
    ),
}

BAD_DEFAULTS: list[tuple[Any, Any]] = [
    ("null", "null"),
    ("boolean", 0),
    ("int", "1"),
    ("int", 1.0),
    ("int", True),
    ("int", 2**31),
    ("int", -(2**31) - 1),
    ("long", 2**63),
    ("long", None),
    ("float", "one"),
    ("double", "1_000"),
    ("double", True),
    ("string", None),
    ("string", 1),
    ("bytes", [1]),
    (E, 0),
    (F, 4),
    ({"type": "array", "items": "int"}, {}),
    ({"type": "array", "items": "int"}, [1, "2"]),
    ({"type": "array", "items": "double"}, ["NaN"]),
    ({"type": "map", "values": "int"}, []),
    ({"type": "map", "values": "int"}, {"a": None}),
    (["null", "string"], 1),
    (["null", {"type": "array", "items": "int"}], ["1"]),
    (record(field("int"), name="S"), []),
    (record(field("int"), name="S"), {}),
    (record(field("int"), name="S"), {"f": "1"}),
]
GOOD_DEFAULTS: list[tuple[Any, Any]] = [
    ("null", None),
    ("boolean", False),
    ("int", 2**31 - 1),
    ("long", -(2**63)),
    ("float", 1),
    ("double", 1.5),
    ("double", "NaN"),
    ("double", " -Infinity "),
    ("double", "1e3f"),
    ("double", 10**30),
    ("string", ""),
    ("bytes", "\u00ff"),
    (E, "C"),
    (F, "too long"),
    ({"type": "array", "items": "int"}, []),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "int"}, {"a": 1}),
    (["null", "string"], None),
    (["null", "string"], "null"),
    (["string", "null"], None),
    (record(field("int"), name="S"), {"f": 1, "g": 2}),
    (record(field("int", default=1), name="S"), {}),
    (record(field(["null", "S"], default=None), name="S"), {}),
    (record(field(["null", "S"]), name="S"), {"f": {"f": None}}),
]


@pytest.mark.parametrize("text", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema, match="Not JSON"):
        parse(text, {})


@pytest.mark.parametrize(("schema", "message"), INVALID.values(), ids=INVALID)
def test_what_is_no_schema_is_refused_with_the_reason(schema: Any, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message):
        parse(json.dumps(schema), {})


@pytest.mark.parametrize(("type", "default"), BAD_DEFAULTS)
def test_a_default_that_does_not_fit_is_refused_in_a_new_schema_only(type: Any, default: Any) -> None:
    text = json.dumps(record(field(type, default=default)))
    with pytest.raises(InvalidSchema, match=r"Invalid default.*\(at /fields/0\)"):
        parse(text, {})
    if type not in ("float", "double") or not isinstance(default, str):
        assert parse_kept(text, {}).canonical


@pytest.mark.parametrize(("type", "default"), GOOD_DEFAULTS)
def test_a_default_that_fits_is_taken(type: Any, default: Any) -> None:
    assert '"default":' in parse(json.dumps(record(field(type, default=default))), {}).canonical


def test_a_schema_that_was_registered_before_may_have_other_letters_and_any_namespace() -> None:
    text = json.dumps(record(field(E, "über"), name="Żółw", namespace="a-b.c", aliases=["x-y"]))
    with pytest.raises(InvalidSchema):
        parse(text, {})
    assert parse_kept(text, {}).canonical.startswith('{"type":"record","name":"Żółw","namespace":"a-b.c"')


@pytest.mark.parametrize("name", ["my-record", "1R", "", "\U0001d4d0"])
def test_a_schema_that_was_registered_before_has_names_of_letters_all_the_same(name: str) -> None:
    with pytest.raises(InvalidSchema, match=r"Illegal|Empty"):
        parse_kept(json.dumps(record(name=name)), {})


def test_a_name_may_be_used_before_it_is_defined() -> None:
    text = json.dumps(record(field("S", "a"), field(record(field("int"), name="S"), "b"), namespace="n"))
    assert parse(text, {}).canonical == (
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":'
        '{"type":"record","name":"S","fields":[{"name":"f","type":"int"}]}},{"name":"b","type":"S"}]}'
    )


def test_a_type_may_be_defined_again_if_nothing_that_matters_differs() -> None:
    again = [field(F, "a"), field({**F, "doc": "again", "aliases": ["G"]}, "b")]
    for name, type in [("c", E), ("d", record(field("int", doc="x"), name="S"))]:
        again += [field(type, name), field(json.loads(json.dumps(type)), name * 2)]
    canonical = json.loads(parse(json.dumps(record(*again)), {}).canonical)
    assert [part["type"] for part in canonical["fields"][1::2]] == ["F", "E", "S"]


def test_a_name_without_a_namespace_is_looked_for_in_the_one_around_it_and_then_in_none() -> None:
    outer = record(
        field(record(name="S", namespace=""), "a"),
        field(record(name="S"), "b"),
        field("S", "c"),
        field(record(field("T"), name="U", namespace="m"), "d"),
        namespace="n",
    )
    outer["fields"].insert(0, field(record(name="T", namespace=""), "z"))
    canonical = json.loads(parse(json.dumps(outer), {}).canonical)
    assert canonical["fields"][3] == {"name": "c", "type": "S"}
    assert canonical["fields"][4]["type"]["fields"][0]["type"] == "T"


def test_comments_are_taken() -> None:
    text = '/* one */ {"type": "record", // two\n "name": "R", "doc": "http://x /* no */", "fields": []}//'
    assert parse(text, {}).canonical == '{"type":"record","name":"R","doc":"http://x /* no */","fields":[]}'


def test_references_define_types_that_are_only_named() -> None:
    inner = record(field("int"), name="n.Inner")
    middle = record(field("n.Inner"), field(E, "e"), name="m.Middle")
    outer = record(field("m.Middle", "a"), field(["null", "n.Inner"], "b"), field("m.E", "c"), name="Outer")
    references = {"inner": json.dumps(inner), "middle": json.dumps(middle)}
    schema = parse(json.dumps(outer), references)
    # The enum is defined within a reference, but is none, and is written out: as Confluent's does.
    assert schema.canonical == (
        '{"type":"record","name":"Outer","fields":[{"name":"a","type":"m.Middle"},'
        '{"name":"b","type":["null","n.Inner"]},'
        '{"name":"c","type":{"type":"enum","name":"E","namespace":"m","symbols":["A","B"]}}]}'
    )
    assert parse(schema.canonical, references).canonical == schema.canonical
    assert schema.normalized == schema.canonical
    with pytest.raises(InvalidSchema, match=r"Undefined schema: n.Inner"):
        parse(json.dumps(outer), {})


def test_a_schema_may_be_a_referenced_type() -> None:
    schema = parse('"n.R"', {"r": json.dumps(record(name="n.R"))})
    assert schema.canonical == '"n.R"'
    assert schema.refused(parse(json.dumps(record(name="n.R")), {})) == []


def test_what_is_wrong_in_a_reference_is_told_with_its_name() -> None:
    with pytest.raises(InvalidSchema, match="Reference other: Undefined schema: X"):
        parse('"string"', {"other": '"X"'})


@pytest.mark.parametrize(
    "text",
    [
        "[" * 500_000,
        "[" * 500_000 + "]" * 500_000,
        '{"type":"array","items":' * (MAX_NESTING + 1) + '"int"' + "}" * (MAX_NESTING + 1),
        '{"type":"int","x":' + "[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1) + "}",
        '{"a":' * 100_000,
    ],
)
def test_nesting_has_an_end(text: str) -> None:
    with pytest.raises(InvalidSchema, match="nested deeper"):
        parse(text, {})


def test_nesting_as_deep_as_is_allowed_is_understood_by_all() -> None:
    depth = MAX_NESTING - 6
    arrays: Any = "int"
    default: Any = []
    for _ in range(depth):
        arrays = {"type": "array", "items": arrays}
    for _ in range(depth - 1):
        default = [default]
    text = json.dumps(record(field(arrays, default=default, x=default)))
    schema = parse(text, {})
    assert parse(schema.canonical, {}).canonical == schema.canonical
    assert schema.normalized == schema.canonical
    assert schema.refused(parse(text, {})) == []


def test_types_that_end_up_within_each_other_have_an_end() -> None:
    later = [record(field(f"R{i + 1}"), name=f"R{i}") for i in range(10_000)]
    with pytest.raises(InvalidSchema, match="nested deeper"):
        parse(json.dumps([*later, record(name="R10000")]), {})


def test_types_that_lead_far_through_names_are_understood() -> None:
    chain = [record(name="R0"), *(record(field(f"R{i}"), name=f"R{i + 1}") for i in range(1_500))]
    text = json.dumps(chain)
    schema = parse(text, {})
    assert parse(schema.canonical, {}).canonical == schema.canonical == schema.normalized
    assert schema.refused(parse(text, {})) == []


def test_a_default_that_holds_itself_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="nested deeper"):
        parse(json.dumps(record(field("R", default={}))), {})


def test_defaults_that_hold_each_other_in_many_ways_are_gone_through_once() -> None:
    types: list[Any] = [record(field("int", default=1), name="R0")]
    types += [
        record(*(field(f"R{i}", name, default={}) for name in "ab"), name=f"R{i + 1}") for i in range(60)
    ]
    assert parse(json.dumps(types), {}).canonical


def test_strings_that_do_not_end_are_given_up_at_once() -> None:
    with pytest.raises(InvalidSchema, match="Not JSON"):
        parse("//" + '"\\' * 400_000, {})
    with pytest.raises(InvalidSchema, match="does not end"):
        parse("/* " * 300_000, {})


def test_half_a_surrogate_pair_can_be_sent_on() -> None:
    schema = parse('{"type":"int","x":"\\ud800"}', {})
    assert schema.canonical.encode() == b'{"type":"int","x":"\\uD800"}'
    assert parse(schema.canonical, {}).canonical == schema.canonical
