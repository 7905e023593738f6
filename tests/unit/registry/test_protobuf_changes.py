"""Which changes of a Protobuf schema are refused. The answers are those of Confluent's registry."""

from __future__ import annotations

import base64
import re

import pytest

from ottla.registry.formats.protobuf.schema import ProtobufSchema, parse

P3 = 'syntax = "proto3"; '


def message(body: str) -> str:
    return P3 + f"message M {{ {body} }}"


def found(reader: ProtobufSchema, written: ProtobufSchema) -> set[str]:
    """Type and path of every difference."""
    differences = set()
    for text in reader.refused(written):
        match = re.fullmatch(r'\{errorType:"([A-Z_]+)", description:"[^"]+, at (#/\S*)"\}', text)
        assert match, text
        differences.add(f"{match[1]} {match[2]}")
    return differences


ALLOWED = {
    "nothing changes": (message("string a = 1;"), message("string a = 1;")),
    "a field is added": (message(""), message("string a = 1;")),
    "a field is removed": (message("string a = 1;"), message("")),
    "a field is renamed": (message("string a = 1;"), message("string b = 1;")),
    "a field gets another number": (message("string a = 1;"), message("string a = 2;")),
    "a message is added": (message(""), message("") + "message N {}"),
    "messages change places": (P3 + "message A {} message B {}", P3 + "message B {} message A {}"),
    "an enum is removed": (message("") + "enum E { A = 0; }", message("")),
    "an enum's values change": (message("") + "enum E { A = 0; B = 1; }", message("") + "enum E { C = 0; }"),
    "a name is written in full": (
        P3 + "package p; message M { N n = 1; message N {} }",
        P3 + "package p; message M { .p.M.N n = 1; message N {} }",
    ),
    "a string becomes bytes": (message("string a = 1;"), message("bytes a = 1;")),
    "a string becomes repeated": (
        "message M { optional string a = 1; }",
        "message M { repeated string a = 1; }",
    ),
    "a message becomes repeated": (message("M a = 1;"), message("repeated M a = 1;")),
    "a number without a label becomes repeated": (message("int32 a = 1;"), message("repeated int32 a = 1;")),
    "a number without a label becomes optional": (message("int32 a = 1;"), message("optional int32 a = 1;")),
    "a number becomes an enum": (message("int32 a = 1;"), message("E a = 1;") + "enum E { A = 0; }"),
    "a number in a map grows": (message("map<int32, bool> a = 1;"), message("map<int64, uint64> a = 1;")),
    "one field moves into a new oneof": (
        message("int32 a = 1;"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
    ),
    "a oneof gets a field": (
        message("oneof o { int32 a = 1; }"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
    ),
    "a oneof is renamed": (
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        message("oneof p { int32 a = 1; int32 b = 2; }"),
    ),
    "a oneof goes as a whole": (message("oneof o { int32 a = 1; }"), message("int32 c = 3;")),
    "a field moves out of a oneof": (
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        message("oneof o { int32 a = 1; } int32 b = 2;"),
    ),
    "one field of a oneof moves to another": (
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        message("oneof o { int32 a = 1; } oneof p { int32 b = 2; }"),
    ),
    "an optional field stops being one": (message("optional int32 a = 1;"), message("int32 a = 1;")),
    "a map is declared as a message": (
        message("map<string, int32> a = 1;"),
        message(
            "repeated AEntry a = 1;"
            "message AEntry { option map_entry = true; string key = 1; int32 value = 2; }"
        ),
    ),
    "a map goes with its entries": (message("map<string, int32> a = 1;"), message("")),
    "groups change": (
        "message M { optional group G = 1 { optional int32 a = 1; } }",
        "message M { optional string h = 1; }",
    ),
    "a required field stays": ("message M { required int32 a = 1; }", "message M { required int32 b = 1; }"),
}

REFUSED = {
    "another package": (P3 + "package a;", P3 + "package b;", {"PACKAGE_CHANGED #/"}),
    "a message is removed": (P3 + "message A {} message B {}", P3 + "message A {}", {"MESSAGE_REMOVED #/B"}),
    "a nested message is removed": (message("message N {}"), message(""), {"MESSAGE_REMOVED #/M/N"}),
    "a required field is added": (
        "message M {}",
        "message M { required int32 a = 1; }",
        {"REQUIRED_FIELD_ADDED #/M/1"},
    ),
    "a required field is removed": (
        "message M { required int32 a = 1; }",
        "message M {}",
        {"REQUIRED_FIELD_REMOVED #/M/1"},
    ),
    "a nested message changes": (
        message("message N { string a = 1; }"),
        message("message N { int32 a = 1; }"),
        {"FIELD_SCALAR_KIND_CHANGED #/M/N/1"},
    ),
    "a number becomes a message": (
        message("int32 a = 1;"),
        message("M a = 1;"),
        {"FIELD_KIND_CHANGED #/M/1"},
    ),
    "a map becomes a message": (
        message("map<string, M> a = 1;"),
        message("repeated M a = 1;"),
        {"FIELD_KIND_CHANGED #/M/1"},
    ),
    "an enum becomes a message of its name": (
        message("E a = 1;") + "enum E { A = 0; }",
        message("E a = 1; message E {}"),
        {"FIELD_KIND_CHANGED #/M/1"},
    ),
    "another message": (
        P3 + "message A {} message B {} message M { A a = 1; }",
        P3 + "message A {} message B {} message M { B a = 1; }",
        {"FIELD_NAMED_TYPE_CHANGED #/M/1"},
    ),
    "a map's keys change": (
        message("map<string, int32> a = 1;"),
        message("map<int32, int32> a = 1;"),
        {"FIELD_SCALAR_KIND_CHANGED #/M/1"},
    ),
    "a map's values change": (
        message("map<string, int32> a = 1;"),
        message("map<string, M> a = 1;"),
        {"FIELD_KIND_CHANGED #/M/1"},
    ),
    "a number becomes repeated": (
        "message M { optional int32 a = 1; }",
        "message M { repeated int32 a = 1; }",
        {"FIELD_NUMERIC_LABEL_CHANGED #/M/1"},
    ),
    "an optional number of proto3 becomes repeated": (
        message("optional int32 a = 1;"),
        message("repeated int32 a = 1;"),
        {"FIELD_NUMERIC_LABEL_CHANGED #/M/1"},
    ),
    "two fields move into a oneof": (
        message("int32 a = 1; int32 b = 2;"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        {"MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o"},
    ),
    "a field moves into a oneof that was there": (
        message("oneof o { int32 a = 1; } int32 b = 2;"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        {"FIELD_MOVED_TO_EXISTING_ONEOF #/M/o"},
    ),
    "a field moves from one oneof into another": (
        message("oneof o { int32 a = 1; int32 b = 2; } oneof p { int32 c = 3; }"),
        message("oneof o { int32 a = 1; } oneof p { int32 b = 2; int32 c = 3; }"),
        {"FIELD_MOVED_TO_EXISTING_ONEOF #/M/p"},
    ),
    "two oneofs become one": (
        message("oneof o { int32 a = 1; } oneof p { int32 b = 2; }"),
        message("oneof q { int32 a = 1; int32 b = 2; }"),
        {"FIELD_MOVED_TO_EXISTING_ONEOF #/M/q"},
    ),
    "a oneof loses a field": (
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        message("oneof o { int32 a = 1; }"),
        {"ONEOF_FIELD_REMOVED #/M/o/2"},
    ),
    "a oneof is renamed and loses a field": (
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        message("oneof p { int32 a = 1; }"),
        {"ONEOF_FIELD_REMOVED #/M/o/2"},
    ),
    "a field changes its type and its oneof": (
        message("oneof o { int32 a = 1; string b = 2; }"),
        message("oneof p { int32 a = 1; int32 b = 2; }"),
        {"FIELD_SCALAR_KIND_CHANGED #/M/p/2"},
    ),
    "a field changes its type and leaves its oneof": (
        message("oneof o { int32 a = 1; string b = 2; }"),
        message("oneof o { int32 a = 1; } int32 b = 2;"),
        {"FIELD_SCALAR_KIND_CHANGED #/M/2"},
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_a_change_that_is_allowed(name: str) -> None:
    old, new = ALLOWED[name]
    assert found(parse(new, {}), parse(old, {})) == set()


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_that_is_refused(name: str) -> None:
    old, new, expected = REFUSED[name]
    assert found(parse(new, {}), parse(old, {})) == expected


@pytest.mark.parametrize("name", [*ALLOWED, *REFUSED])
def test_a_schema_from_base64_gets_the_same_answers(name: str) -> None:
    old, new, *_ = (ALLOWED | REFUSED)[name]
    encoded = parse(base64.b64encode(parse(old, {}).descriptor).decode() or old, {})
    assert found(parse(new, {}), encoded) == found(parse(new, {}), parse(old, {}))


KINDS = [
    ("int32", "int64", "uint32", "uint64", "bool", "E"),
    ("sint32", "sint64"),
    ("string", "bytes"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("float",),
    ("double",),
]


@pytest.mark.parametrize("old", [name for kind in KINDS for name in kind])
def test_a_scalar_can_become_another_of_its_kind_only(old: str) -> None:
    written = parse(message(f"{old} a = 1;") + "enum E { A = 0; }", {})
    for kind in KINDS:
        for new in kind:
            reader = parse(message(f"{new} a = 1;") + "enum E { A = 0; }", {})
            expected = set() if old in kind else {"FIELD_SCALAR_KIND_CHANGED #/M/1"}
            assert found(reader, written) == expected, new


class TestImports:
    TEXT = P3 + 'import "other.proto"; message M { p.Outer.Inner a = 1; }'

    def other(self, body: str, package: str = "p") -> dict[str, str]:
        return {"other.proto": P3 + f"package {package}; message Outer {{ message Inner {{ {body} }} }}"}

    def test_a_change_in_an_import_is_found_and_told_of_the_field_that_uses_it(self) -> None:
        written = parse(self.TEXT, self.other("string a = 1;"))
        reader = parse(self.TEXT, self.other("int32 a = 1;"))
        assert found(reader, written) == {
            "FIELD_SCALAR_KIND_CHANGED #/Outer/Inner/1",
            "FIELD_NAMED_TYPE_CHANGED #/M/1",
        }

    def test_a_change_in_an_import_that_is_allowed(self) -> None:
        written = parse(self.TEXT, self.other("string a = 1;"))
        assert found(parse(self.TEXT, self.other("string b = 1; int32 c = 2;")), written) == set()

    def test_an_import_can_have_another_package(self) -> None:
        written = parse(self.TEXT, self.other("string a = 1;"))
        reader = parse(self.TEXT.replace("p.Outer", "q.r.Outer"), self.other("string a = 1;", "q.r"))
        assert found(reader, written) == set()

    def test_what_no_field_uses_may_change(self) -> None:
        written = parse(P3 + 'import "other.proto"; message M {}', self.other("string a = 1;"))
        reader = parse(P3 + 'import "other.proto"; message M {}', self.other("int32 a = 1;"))
        assert found(reader, written) == set()

    def test_a_message_can_move_here_from_an_import_but_not_to_one(self) -> None:
        alone = parse(P3 + "message A { string a = 1; } message M { A a = 1; }", {})
        imported = parse(
            P3 + 'import "other.proto"; message M { A a = 1; }',
            {"other.proto": P3 + "message A { string a = 1; }"},
        )
        assert found(alone, imported) == set()
        assert found(imported, alone) == {"MESSAGE_REMOVED #/A"}

    def test_a_difference_far_down_reaches_every_field_that_leads_to_it(self) -> None:
        def chain(last: str) -> dict[str, str]:
            messages = [f"message C{n} {{ C{n + 1} a = 1; C{n + 1} b = 2; C0 c = 3; }}" for n in range(3_000)]
            return {"other.proto": P3 + "".join(messages) + f"message C3000 {{ {last} a = 1; }}"}

        text = P3 + 'import "other.proto"; message M { C0 a = 1; map<string, C0> b = 2; }'
        written, reader = parse(text, chain("int32")), parse(text, chain("string"))
        assert found(parse(text, chain("int64")), written) == set()
        differences = found(reader, written)
        assert "FIELD_SCALAR_KIND_CHANGED #/C3000/1" in differences
        assert {"FIELD_NAMED_TYPE_CHANGED #/M/1", "FIELD_NAMED_TYPE_CHANGED #/M/2"} <= differences
        assert len(differences) == 3 * 3_000 + 3

    def test_google_s_own_messages_are_what_they_are(self) -> None:
        text = P3 + 'import "google/protobuf/struct.proto"; message M { google.protobuf.Struct a = 1; }'
        assert found(parse(text, {}), parse(text, {})) == set()
