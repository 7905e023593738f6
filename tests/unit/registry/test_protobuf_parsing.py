"""What is no Protobuf schema, and where the complaint says it is wrong."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.protobuf.schema import parse

P3 = 'syntax = "proto3";\n'

WRONG = {
    "no declaration": ("hello;", "expected a declaration.*line 1, column 1"),
    "unknown syntax": ('syntax = "proto4";', "line 1, column 10 is .proto4"),
    "unknown edition": ('edition = "2099";', "2099.*line 1, column 11"),
    "no end": (P3 + "message M {", "found the end of the text at line 2, column 12"),
    "no number": (P3 + "message M {\n  string a;\n}", 'expected "=", found ";" at line 3, column 11'),
    "no semicolon": (P3 + "message M { string a = 1 }", 'expected ";".*line 2, column 26'),
    "a strange character": (P3 + "message M { string a = 1; § }", "no meaning at line 2, column 27"),
    "a strange number": (P3 + "message M { string a = 1x; }", "number.*line 2, column 24"),
    "a comment without end": (P3 + "/* abc", "comment.*line 2, column 1"),
    "a string without end": ('syntax = "proto3\n";', "string.*line 1, column 10"),
    "a wrong escape": ("option java_package = '\\q';", "escape.*line 1, column 23"),
    "a character beyond all": ("option java_package = '\\U00110000';", "character.*line 1, column 23"),
    "two packages": ("package a; package b;", "second package at line 1, column 12"),
    "an unknown type": (P3 + "message M {\n  Other a = 1;\n}", "type Other of a is not defined.*line 3"),
    "an unknown import": (P3 + 'import "other.proto";', 'import "other.proto" at line 2.*references'),
    "an import that is no file of Google": ('import "google/protobuf/descriptor_pool.proto";', "references"),
    "an import by a path": ('import "google/protobuf/../../os.proto";', "references"),
    "a double import": (
        'import "google/protobuf/any.proto"; import "google/protobuf/any.proto";',
        "imported twice",
    ),
    "a field named as a type beside it": (
        P3 + "message M { message A {}\nstring A = 1; }",
        "M.A is defined twice",
    ),
    "a oneof named as a field": (P3 + "message M { oneof a { string a = 1; } }", "M.a is defined twice"),
    "a message twice": (P3 + "message M {}\nenum M { A = 0; }", "M is defined twice.*line 3"),
    "a value beside its enum": (P3 + "enum A { X = 0; }\nenum B { X = 0; }", "X is defined twice.*line 3"),
    "a field twice": (P3 + "message M { string a = 1;\nint32 a = 2; }", "M.a is defined twice.*line 3"),
    "a number twice": (P3 + "message M { string a = 1;\nint32 b = 1; }", "number 1 for a and for b.*line 3"),
    "a number twice in a oneof": (P3 + "message M { string a = 1;\noneof o { int32 b = 1; } }", "line 3"),
    "number zero": (P3 + "message M { string a = 0; }", "0 is not between 1 and 536870911"),
    "a number too large": (P3 + "message M { string a = 536870912; }", "not between"),
    "protobuf's own number": (P3 + "message M { string a = 19500; }", "19000 to 19999"),
    "a reserved number": (P3 + "message M { reserved 4 to 6;\nstring a = 5; }", "5 is reserved.*line 3"),
    "a reserved name": (P3 + 'message M { reserved "a";\nstring a = 5; }', "a is reserved.*line 3"),
    "a number for extensions": ("message M { extensions 4 to max;\noptional int32 a = 5; }", "extensions"),
    "a range backwards": (P3 + "message M { reserved 6 to 4; }", "ends before it begins"),
    "required in proto3": (P3 + "message M { required string a = 1; }", "proto3 has no required"),
    "a group in proto3": (P3 + "message M { optional group A = 1 {} }", "proto2 only"),
    "a group in small letters": ("message M { optional group a = 1 {} }", "capital"),
    "a default in proto3": (P3 + "message M { string a = 1 [default = 'x']; }", "no default"),
    "a label in an edition": ('edition = "2023"; message M { optional string a = 1; }', "no label optional"),
    "a label in a oneof": (P3 + "message M { oneof o { repeated string a = 1; } }", "oneof has no label"),
    "a oneof without fields": (P3 + "message M { oneof o { } }", "oneof o has no fields"),
    "a map with a label": (P3 + "message M { repeated map<string, string> a = 1; }", "map has no label"),
    "a map in a oneof": (P3 + "message M { oneof o { map<string, string> a = 1; } }", "map has no label"),
    "a map of floats": (P3 + "message M { map<float, string> a = 1; }", "float is no type for keys"),
    "a map of messages as keys": (P3 + "message M { map<M, string> a = 1; }", "M is no type for keys"),
    "an entry of a map without a value": (
        P3 + "message M { option map_entry = true; string key = 1; }",
        "M is not what the entries of a map are",
    ),
    "an enum without values": (P3 + "enum E {}", "enum E has no values"),
    "an enum without zero": (P3 + "enum E { A = 1; }", "not zero"),
    "an alias that is not allowed": (P3 + "enum E { A = 0; B = 0; }", "0 twice without allow_alias"),
    "a reserved value": (P3 + "enum E { A = 0; B = 5; reserved 4 to max; }", "B is reserved in E"),
    "a default that is no value": ("message M { optional int32 a = 1 [default = 'x']; }", "whole number"),
    "a default out of range": ("message M { optional int32 a = 1 [default = 2147483648]; }", "not between"),
    "a default of many": ("message M { repeated int32 a = 1 [default = 1]; }", "only a single field"),
    "a default of no value": ("message M { optional E a = 1 [default = B]; } enum E { A = 0; }", "refuses"),
    "an unknown option": (P3 + "option what = 1;", "option what at line 2.*no field what"),
    "an unknown custom option": (
        P3 + "option (what) = 1;",
        "option .what. at line 2.*extension what is not defined",
    ),
    "an option of a wrong type": (P3 + "option java_multiple_files = 1;", "true or false, not 1"),
    "an option that is no enum's value": (P3 + "option optimize_for = FAST;", "OptimizeMode, not FAST"),
    "an option twice": (P3 + "option java_package = 'a'; option java_package = 'b';", "set twice"),
    "an option within a string": (P3 + "option java_package.a = 'a';", "has no fields"),
    "an option that is no text": (P3 + "option java_package = '\\xff';", "no text"),
    "an extension of nothing": ("extend What { optional int32 a = 1; }", "What is no message"),
    "a method of nothing": (P3 + "service S { rpc A (B) returns (B); }", "B is no message"),
    "a method twice": (
        P3 + "message B {} service S { rpc A (B) returns (B); rpc A (B) returns (B); }",
        "second",
    ),
    "base64 of nothing sensible": ("abcdefgh", "neither"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_text_that_is_no_schema_is_refused_with_a_reason_and_a_place(name: str) -> None:
    text, reason = WRONG[name]
    with pytest.raises(InvalidSchema, match=reason):
        parse(text, {})


def test_a_reference_that_is_wrong_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r"in the reference a\.proto: .*line 1"):
        parse(P3, {"a.proto": "nonsense;"})


def test_a_file_cannot_import_itself_or_what_comes_after_it() -> None:
    with pytest.raises(InvalidSchema, match="not among the references"):
        parse(P3, {"a.proto": P3 + 'import "a.proto";'})
    with pytest.raises(InvalidSchema, match="not among the references"):
        parse(P3, {"a.proto": P3 + 'import "b.proto";', "b.proto": P3})


def test_an_import_is_not_visible_through_another_unless_that_is_public() -> None:
    references = {"a.proto": P3 + "message A {}", "b.proto": P3 + 'import "a.proto"; message B { A a = 1; }'}
    text = P3 + 'import "b.proto"; message M { A a = 1; }'
    with pytest.raises(InvalidSchema, match="A of a is not defined"):
        parse(text, references)
    references["b.proto"] = references["b.proto"].replace("import", "import public")
    parse(text, references)


def test_references_that_are_not_imported_do_not_get_in_the_way() -> None:
    references = {"a.proto": P3 + "message A {}", "b.proto": P3 + "message A { string b = 1; }"}
    parse(P3 + 'import "b.proto"; message M { A a = 1; }', references)
    parse(P3 + 'import "default"; message M { A a = 1; }', {"default": P3 + "message A {}"})


def test_a_field_of_proto2_can_be_without_a_label() -> None:
    assert "  string a = 1;" in parse("message M { string a = 1; }", {}).canonical


@pytest.mark.parametrize("depth", [33, 2_000, 100_000])
@pytest.mark.parametrize(
    "template",
    [
        ("", "message M {", "}"),
        ("message M { ", "optional group G = 1 {", "}"),
        ("option x = ", "{a:", "1"),
        ("option x = ", "[", ""),
        ("option x = {a ", "<a ", ""),
        ("option x", ".a", " = 1"),
        ("option (x", ".a", ") = 1"),
    ],
)
def test_nesting_has_a_bound(depth: int, template: tuple[str, str, str]) -> None:
    start, inner, end = template
    with pytest.raises(InvalidSchema):
        parse(start + inner * depth + end * depth, {})


def test_nesting_in_a_descriptor_has_a_bound() -> None:
    file = FileDescriptorProto()
    message = file.message_type.add(name="M")
    for _ in range(40):
        message = message.nested_type.add(name="M")
    with pytest.raises(InvalidSchema):
        parse(base64.b64encode(file.SerializeToString()).decode(), {})


def test_a_name_as_long_as_a_book_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="longer than"):
        parse(P3 + "package " + "a." * 100_000 + "b;", {})
    with pytest.raises(InvalidSchema, match="longer than"):
        parse(P3 + "message " + "a" * 100_000 + " {}", {})
    with pytest.raises(InvalidSchema, match="digits"):
        parse(P3 + "option x = " + "1" * 100_000 + ";", {})


def test_many_ranges_and_many_fields_are_no_trouble() -> None:
    ranges = ", ".join(str(number) for number in range(2, 20_000, 2) if not 19_000 <= number < 20_000)
    fields = "".join(f"int32 f{number} = {number};" for number in range(1, 18_999, 2))
    parse(P3 + f"message M {{ reserved {ranges}; {fields} }}", {})


@pytest.mark.parametrize(
    "change",
    [
        lambda file: setattr(file.message_type[0].field[0], "name", "a; } message X { string b"),
        lambda file: setattr(file.message_type[0], "name", "M { string c = 3; } message N"),
        lambda file: setattr(file, "package", "a; option x = 1"),
        lambda file: setattr(file.message_type[0].field[0], "type_name", ".Nowhere"),
        lambda file: file.message_type[0].field.add(name="b", number=1, type=9, label=1),
        lambda file: file.dependency.append("what.proto"),
        lambda file: file.public_dependency.append(5),
        lambda file: setattr(file, "syntax", "proto9"),
    ],
)
def test_a_descriptor_that_is_not_sound_is_refused(change: object) -> None:
    file = FileDescriptorProto(syntax="proto3")
    file.message_type.add(name="M").field.add(name="a", number=1, type=9, label=1)
    parse(base64.b64encode(file.SerializeToString()).decode(), {})
    assert callable(change)
    change(file)
    with pytest.raises(InvalidSchema):
        parse(base64.b64encode(file.SerializeToString()).decode(), {})


def test_a_descriptor_with_strings_that_are_no_text_is_refused() -> None:
    file = FileDescriptorProto(syntax="proto2")
    field = file.message_type.add(name="M").field.add(name="a", number=1, type=12, label=1)
    field.default_value = "\\001"
    field.json_name = "abcd"
    good = file.SerializeToString()
    parse(base64.b64encode(good).decode(), {})
    for bad in (good.replace(b"abcd", b"abc\xff"), good.replace(b"\\001", b"\\q01")):
        assert bad != good
        with pytest.raises(InvalidSchema):
            parse(base64.b64encode(bad).decode(), {})


def test_what_stands_where_in_the_source_is_no_part_of_a_descriptor() -> None:
    file = FileDescriptorProto(syntax="proto3")
    file.message_type.add(name="M")
    plain = parse(base64.b64encode(file.SerializeToString()).decode(), {})
    file.source_code_info.location.add(path=[4, 0], span=[1, 2, 3])
    assert parse(base64.b64encode(file.SerializeToString()).decode(), {}).descriptor == plain.descriptor


def test_names_that_are_reserved_in_a_descriptor_cannot_smuggle_declarations_in() -> None:
    file = FileDescriptorProto(syntax="proto3")
    file.message_type.add(name="M").reserved_name.append('a"; string b = 1; reserved "c')
    schema = parse(base64.b64encode(file.SerializeToString()).decode(), {})
    assert not FileDescriptorProto.FromString(schema.descriptor).message_type[0].field


WORDS = st.sampled_from(
    [
        *"{}[]()<>=,;.:-/",
        *("message", "enum", "oneof", "extend", "service", "rpc", "stream", "group", "map", "to", "max"),
        *("import", "package", "option", "reserved", "optional", "repeated", "default", "M", "string", "'a'"),
        *("1", "0x", "2.5"),
    ]
)


@given(st.lists(WORDS, max_size=60).map(" ".join) | st.text(max_size=60))
def test_noise_is_refused_or_read_but_never_an_accident(text: str) -> None:
    try:
        schema = parse(text, {})
    except InvalidSchema:
        return
    assert parse(schema.canonical, {}).descriptor == schema.descriptor


@given(st.binary(min_size=1, max_size=80))
def test_noise_in_base64_is_refused_or_read_but_never_an_accident(noise: bytes) -> None:
    try:
        schema = parse(base64.b64encode(noise).decode(), {})
    except InvalidSchema:
        return
    assert parse(schema.canonical, {}).descriptor == schema.descriptor
