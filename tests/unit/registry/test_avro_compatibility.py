"""What of one schema another can read: every rule, in both directions."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ottla.registry.formats.avro import compatibility as avro_compatibility
from ottla.registry.formats.avro.compatibility import MAX_DIFFERENCES
from ottla.registry.formats.avro.schema import parse


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, **more, "fields": list(fields)}


def field(type: Any, name: str = "f", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def map_of(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def refused(reader: Any, writer: Any) -> list[str]:
    """As "type path additional information", or all of it if it is something else."""
    shortened = []
    for message in parse(json.dumps(reader), {}).refused(parse(json.dumps(writer), {})):
        match = re.fullmatch(r"\{errorType:'(\w+)', description:'(.+)', additionalInfo:'(.*)'\}", message)
        if match is None:
            shortened.append(message)
            continue
        path = re.search(r"path '([^']*)'", match[2])
        assert path is not None
        shortened.append(f"{match[1]} {path[1]} {match[3]}")
    return shortened


def mismatch(path: str, reader: str, writer: str) -> str:
    return f"TYPE_MISMATCH {path} reader type: {reader} not compatible with writer type: {writer}"


def lacking(path: str, writer: str) -> str:
    return f"MISSING_UNION_BRANCH {path} reader union lacking writer type: {writer}"


def missing(path: str, name: str) -> str:
    return f"READER_FIELD_MISSING_DEFAULT_VALUE {path} {name}"


# What `one` says of data of `other`, and `other` of data of `one`.
PAIRS: dict[str, tuple[Any, Any, list[str], list[str]]] = {
    "the same": ("int", "int", [], []),
    "other attributes": ({"type": "int", "x": 1}, {"type": "int", "logicalType": "date"}, [], []),
    "long and int": ("long", "int", [], [mismatch("/", "INT", "LONG")]),
    "float and long": ("float", "long", [], [mismatch("/", "LONG", "FLOAT")]),
    "double and int": ("double", "int", [], [mismatch("/", "INT", "DOUBLE")]),
    "double and float": ("double", "float", [], [mismatch("/", "FLOAT", "DOUBLE")]),
    "bytes and string": ("bytes", "string", [], []),
    "boolean and int": (
        "boolean",
        "int",
        [mismatch("/", "BOOLEAN", "INT")],
        [mismatch("/", "INT", "BOOLEAN")],
    ),
    "null and string": (
        "null",
        "string",
        [mismatch("/", "NULL", "STRING")],
        [mismatch("/", "STRING", "NULL")],
    ),
    "string and enum": (
        "string",
        enum("A"),
        [mismatch("/", "STRING", "ENUM")],
        [mismatch("/", "ENUM", "STRING")],
    ),
    "bytes and fixed": (
        "bytes",
        fixed(1),
        [mismatch("/", "BYTES", "FIXED")],
        [mismatch("/", "FIXED", "BYTES")],
    ),
    "record and map": (
        record(),
        map_of("int"),
        [mismatch("/", "RECORD", "MAP")],
        [mismatch("/", "MAP", "RECORD")],
    ),
    "arrays": (array("long"), array("int"), [], [mismatch("/items", "INT", "LONG")]),
    "maps": (map_of("long"), map_of("int"), [], [mismatch("/values", "INT", "LONG")]),
    "array and map": (
        array("int"),
        map_of("int"),
        [mismatch("/", "ARRAY", "MAP")],
        [mismatch("/", "MAP", "ARRAY")],
    ),
    "a fixed of another size": (
        fixed(1),
        fixed(2),
        ["FIXED_SIZE_MISMATCH /size expected: 2, found: 1"],
        ["FIXED_SIZE_MISMATCH /size expected: 1, found: 2"],
    ),
    "a fixed of another name and size": (
        fixed(1),
        fixed(2, "G"),
        ["NAME_MISMATCH /name expected: G", "FIXED_SIZE_MISMATCH /size expected: 2, found: 1"],
        ["NAME_MISMATCH /name expected: F", "FIXED_SIZE_MISMATCH /size expected: 1, found: 2"],
    ),
    "a symbol more": (enum("A", "B"), enum("A"), [], ["MISSING_ENUM_SYMBOLS /symbols [B]"]),
    "symbols more": (enum("A", "C", "B"), enum("A"), [], ["MISSING_ENUM_SYMBOLS /symbols [B, C]"]),
    "a symbol more, and a default": (enum("A", "B"), enum("A", default="A"), [], []),
    "symbols in another order": (enum("A", "B"), enum("B", "A"), [], []),
    "an enum of another name": (
        enum("A"),
        enum("A", name="G"),
        ["NAME_MISMATCH /name expected: G"],
        ["NAME_MISMATCH /name expected: E"],
    ),
    "an enum that was renamed": (
        enum("A", aliases=["G"]),
        enum("A", name="G"),
        [],
        ["NAME_MISMATCH /name expected: E"],
    ),
    "a record of another name": (
        record(name="n.R"),
        record(name="n.S"),
        ["NAME_MISMATCH /name expected: n.S"],
        ["NAME_MISMATCH /name expected: n.R"],
    ),
    "a record of another namespace": (record(name="n.R"), record(name="m.R"), [], []),
    "a record that was renamed": (
        record(name="n.R", aliases=["S"]),
        record(name="n.S"),
        [],
        ["NAME_MISMATCH /name expected: n.R"],
    ),
    "an alias in another namespace": (
        record(name="n.R", aliases=["S"]),
        record(name="m.S"),
        ["NAME_MISMATCH /name expected: m.S"],
        ["NAME_MISMATCH /name expected: n.R"],
    ),
    "an alias without a namespace, of a type with one": (
        record(name="n.R", aliases=[".S"]),
        record(name="S"),
        ["NAME_MISMATCH /name expected: S"],
        ["NAME_MISMATCH /name expected: n.R"],
    ),
    "record and error": (record(), {"type": "error", "name": "R", "fields": []}, [], []),
    "a field more": (record(field("int")), record(), [missing("/fields/0", "f")], []),
    "a field more with a default": (record(field("int", default=1)), record(), [], []),
    "a field more with a default of null": (record(field(["null", "int"], default=None)), record(), [], []),
    "a field more that may be null": (
        record(field(["null", "int"])),
        record(),
        [missing("/fields/0", "f")],
        [],
    ),
    "fields in another order": (
        record(field("int", "a"), field("string", "b")),
        record(field("string", "b"), field("int", "a")),
        [],
        [],
    ),
    "a field of another type": (
        record(field("int", "a"), field("int", "b")),
        record(field("int", "a"), field("string", "b")),
        [mismatch("/fields/1/type", "INT", "STRING")],
        [mismatch("/fields/1/type", "STRING", "INT")],
    ),
    "a field that was renamed": (
        record(field("int", "g", aliases=["f"])),
        record(field("int", "f")),
        [],
        [missing("/fields/0", "f")],
    ),
    "a field that was renamed, and its type changed": (
        record(field("int", "g", aliases=["f"])),
        record(field("string", "f")),
        [mismatch("/fields/0/type", "INT", "STRING")],
        [missing("/fields/0", "f")],
    ),
    "an enum's default is none for a field": (
        record(field(enum("A", default="A"))),
        record(),
        [mismatch("/fields/0/type", "ENUM", "RECORD")],
        [],
    ),
    "several differences": (
        record(field("int", "a"), field("int", "b"), name="S"),
        record(field("string", "a")),
        [
            "NAME_MISMATCH /name expected: R",
            mismatch("/fields/0/type", "INT", "STRING"),
            missing("/fields/1", "b"),
        ],
        ["NAME_MISMATCH /name expected: S", mismatch("/fields/0/type", "STRING", "INT")],
    ),
    "deep within": (
        record(field(array(map_of(record(field("int"), name="S"))))),
        record(field(array(map_of(record(field("string"), name="S"))))),
        [mismatch("/fields/0/type/items/values/fields/0/type", "INT", "STRING")],
        [mismatch("/fields/0/type/items/values/fields/0/type", "STRING", "INT")],
    ),
    "a type that may now be null": (["null", "string"], "string", [], [mismatch("/0", "STRING", "NULL")]),
    "a branch more": (["null", "string", "int"], ["null", "string"], [], [lacking("/2", "INT")]),
    "branches in another order": (["null", "string"], ["string", "null"], [], []),
    "a branch that is promoted": (["null", "long"], ["null", "int"], [], [lacking("/1", "LONG")]),
    "a branch that strings go to": (["null", "bytes"], "string", [], [mismatch("/0", "STRING", "NULL")]),
    "no such branch": (
        ["null", "string"],
        "int",
        [lacking("/", "INT")],
        [mismatch("/0", "INT", "NULL"), mismatch("/1", "INT", "STRING")],
    ),
    "a union all of which is promoted": ("double", ["int", "long"], [], [lacking("/", "DOUBLE")]),
    "records in a union": (
        [record(name="R"), record(name="S")],
        [record(name="S")],
        [],
        [lacking("/0", "RECORD")],
    ),
    "a record in a union that has no such field": (
        [record(field("int"))],
        [record()],
        [lacking("/0", "RECORD")],
        [],
    ),
    "a record in a union that was renamed": (
        [record(name="n.R", aliases=["S"])],
        [record(name="n.S")],
        [],
        [lacking("/0", "RECORD")],
    ),
    "an empty union": ([], "int", [lacking("/", "INT")], []),
    "a field in a union": (
        record(field(["null", "string"])),
        record(field(["null", "string", "int"])),
        [lacking("/fields/0/type/2", "INT")],
        [],
    ),
}


@pytest.mark.parametrize(("one", "other", "of_other", "of_one"), PAIRS.values(), ids=PAIRS)
def test_one_reads_what_the_other_wrote(one: Any, other: Any, of_other: list[str], of_one: list[str]) -> None:
    assert refused(one, other) == of_other
    assert refused(other, one) == of_one
    assert refused(one, one) == []
    assert refused(other, other) == []


def test_of_two_branches_of_one_name_any_may_fit() -> None:
    reader = [record(field("int"), name="a.R"), record(field("string"), name="b.R")]
    assert refused(reader, record(field("string"), name="c.R")) == []
    assert refused(reader, record(field("null"), name="c.R")) == [lacking("/", "RECORD")]


def test_a_difference_is_told_in_confluents_words() -> None:
    reader = parse(json.dumps(record(field("int", "a"), field(enum("A"), "b"), field(["int"], "c"))), {})
    writer = parse(json.dumps(record(field(enum("A", "B"), "b"), field("string", "c"))), {})
    assert reader.refused(writer) == [
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'a' at path '/fields/0' in"
        " the reader schema has no default value and is missing in the writer schema', additionalInfo:'a'}",
        "{errorType:'MISSING_ENUM_SYMBOLS', description:'The reader schema is missing enum symbols '[B]' at"
        " path '/fields/1/type/symbols' in the writer schema', additionalInfo:'[B]'}",
        "{errorType:'MISSING_UNION_BRANCH', description:'The reader schema is missing a type inside a union"
        " field at path '/fields/2/type' in the writer schema',"
        " additionalInfo:'reader union lacking writer type: STRING'}",
    ]


@pytest.mark.parametrize("aliases", [["b", "c"], ["a"]])
def test_a_field_that_could_be_two_is_refused(aliases: list[str]) -> None:
    writer = record(*(field("int", name) for name in "abc"))
    (message,) = refused(record(field("int", "a", aliases=aliases)), writer)
    assert message.startswith(
        "Unexpected exception during compatibility check: Reader record field a type:INT pos:0"
    )


def test_records_that_hold_themselves() -> None:
    def node(value: Any, name: str = "Node", **more: Any) -> Any:
        return record(field(value, "v"), field(["null", name], "next", **more), name=name)

    assert refused(node("long"), node("int")) == []
    assert refused(node("int"), node("long")) == [mismatch("/fields/0/type", "INT", "LONG")]
    assert refused(node("int"), node("int", default=None)) == []
    # Within itself it counts as compatible, whatever its name: told once is enough.
    assert refused(node("int", "Other"), node("int")) == ["NAME_MISMATCH /name expected: Node"]


def test_what_differs_behind_a_recursion_is_found() -> None:
    def tree(leaf: Any) -> Any:
        return record(
            field(array("Tree"), "below"), field(record(field(leaf), name="Leaf"), "leaf"), name="Tree"
        )

    assert refused(tree("string"), tree("bytes")) == []
    assert refused(tree("int"), tree("string")) == [mismatch("/fields/1/type/fields/0/type", "INT", "STRING")]


def test_records_that_hold_each_other() -> None:
    def pair(value: Any) -> Any:
        b = record(field(["null", "A"], "a"), field(value), name="B")
        return record(field(["null", b], "b"), name="A")

    assert refused(pair("long"), pair("int")) == []
    assert refused(pair("int"), pair("long")) == [lacking("/fields/0/type/1", "RECORD")]


def test_a_difference_of_a_type_that_is_used_in_many_places_is_told_once() -> None:
    def doubled(leaf: Any) -> Any:
        types: list[Any] = [record(field(leaf), name="R0")]
        types += [record(field(f"R{i}", "a"), field(f"R{i}", "b"), name=f"R{i + 1}") for i in range(60)]
        return record(*(field(type, f"f{i}") for i, type in enumerate(types)))

    assert refused(doubled("long"), doubled("int")) == []
    assert refused(doubled("int"), doubled("long")) == [
        mismatch("/fields/0/type/fields/0/type", "INT", "LONG")
    ]


def test_no_more_differences_are_told_than_anybody_reads() -> None:
    many = record(*(field("int", f"f{i}") for i in range(5_000)))
    assert refused(many, record()) == [missing(f"/fields/{i}", f"f{i}") for i in range(MAX_DIFFERENCES)]


def test_types_that_lead_far_through_names_are_compared() -> None:
    def chain(leaf: Any) -> Any:
        below = [record(field(f"R{i}"), name=f"R{i + 1}") for i in range(1_500)]
        return record(
            *(field(type, f"f{i}") for i, type in enumerate([record(field(leaf), name="R0"), *below]))
        )

    assert refused(chain("long"), chain("int")) == []
    assert refused(chain("int"), chain("long")) == [mismatch("/fields/0/type/fields/0/type", "INT", "LONG")]


def test_a_union_of_many_names_is_compared() -> None:
    union = [record(field("int"), name=f"R{i}") for i in range(2_000)]
    assert refused([*union, "null"], union) == []
    assert refused(union, [*union, "null"]) == [lacking("/2000", "NULL")]


def test_schemas_that_take_too_long_to_compare_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_compatibility, "MAX_STEPS", 20_000)
    readers = [record(field("int"), name=f"n{i}.R") for i in range(400)]
    writers = [record(field("string"), name=f"n{i}.R") for i in range(400)]
    assert refused(readers, writers) == ["The schemas take more than 20000 steps to compare"]


def test_references_are_compared_by_what_is_in_them() -> None:
    text = json.dumps(record(field("n.S"), name="n.R"))
    old = parse(text, {"s": json.dumps(record(field("int"), name="n.S"))})
    new = parse(text, {"s": json.dumps(record(field("long"), name="n.S"))})
    assert new.refused(old) == []
    assert len(old.refused(new)) == 1
