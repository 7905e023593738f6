"""The descriptor of a schema is the one that protoc makes, also after a way through text or base64."""

from __future__ import annotations

import base64
from pathlib import Path

import confluent_kafka.schema_registry.confluent.meta_pb2  # noqa: F401  its extensions must make no difference
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ottla.registry.formats.protobuf.schema import parse
from tests.unit.registry.protoc import compiled, own

REFERENCES = {
    "deep/base.proto": 'syntax = "proto3"; package deep; message Base { enum Kind { A = 0; } string i = 1; }',
    "money.proto": """
        syntax = "proto3";
        package shop;
        import public "deep/base.proto";
        message Money { int64 units = 1; }
        enum Currency { EUR = 0; }
        """,
    "choices.proto": """
        syntax = "proto2";
        package choices;
        import "google/protobuf/descriptor.proto";
        message Choice {
          optional string text = 1;
          repeated int32 numbers = 2;
          optional Choice inner = 3;
          map<string, int64> counts = 4;
          optional Level level = 5;
          optional bytes raw = 6;
          optional double ratio = 7;
          extensions 100 to 200;
        }
        enum Level { LOW = 0; HIGH = 1; }
        extend Choice { optional string more = 100; }
        extend google.protobuf.FileOptions { optional Choice file = 50001; }
        extend google.protobuf.MessageOptions { optional Choice message = 50001; }
        extend google.protobuf.FieldOptions {
          optional Choice field = 50001;
          repeated string tags = 50002;
          optional Level level = 50003;
          optional float weight = 50004;
          optional sint64 count = 50005;
          optional bool shown = 50006;
        }
        extend google.protobuf.OneofOptions { optional string oneof = 50001; }
        extend google.protobuf.EnumOptions { optional string enum = 50001; }
        extend google.protobuf.EnumValueOptions { optional string value = 50001; }
        extend google.protobuf.ServiceOptions { optional string service = 50001; }
        extend google.protobuf.MethodOptions { optional string method = 50001; }
        extend google.protobuf.ExtensionRangeOptions { optional string range = 50001; }
        """,
}

TEXTS = {
    "nothing": "",
    "no syntax": "message A { optional string b = 1; }",
    "proto2": """
        syntax = "proto2";
        package a.b;
        message M {
          required int32 one = 1;
          optional string two = 2 [default = "it's \\"quoted\\" \\n\\t\\\\ \\303\\244 ä", json_name = "zwei"];
          repeated bytes three = 3;
          optional bytes four = 4 [default = "\\000\\xff\\'a"];
          optional double five = 5 [default = 1.5e10];
          optional float six = 6 [default = -inf];
          optional float seven = 7 [default = nan];
          optional double eight = 8 [default = 0.1];
          optional int64 nine = 9 [default = -0x1F];
          optional uint64 ten = 10 [default = 18446744073709551615];
          optional bool eleven = 11 [default = true];
          optional E twelve = 12 [default = B];
          optional sint32 thirteen = 13 [default = 017];
          optional double fourteen = 14 [default = 7];
          repeated int32 fifteen = 15 [packed = true, deprecated = true];
          optional string sixteen = 16 [ctype = CORD];
          enum E { A = 0; B = 1; C = -1; }
          extensions 100 to 199, 500, 1000 to max;
          reserved 200 to 299, 300;
          reserved "old", "older";
        }
        extend M { optional string more = 100; repeated M.E most = 101; }
        """,
    "groups": """
        syntax = "proto2";
        message M {
          message First {}
          repeated group Result = 1 {
            required string url = 2;
            optional group Inner = 3 { optional int32 x = 4; }
          }
          oneof choice { string a = 5; group Picked = 6 { optional int32 y = 1; } }
          message Last {}
          extensions 100 to 200;
        }
        extend M { optional group Extra = 100 { optional int32 z = 1; } }
        """,
    "proto3": """
        syntax = "proto3";
        package a;
        option java_package = "org.a";
        option optimize_for = SPEED;
        option java_multiple_files = true;
        message M {
          optional int32 first = 1;
          repeated int32 second_one = 2 [packed = false];
          map<string, Inner> third_map = 3;
          oneof choice { string fourth = 4; Inner fifth = 5; }
          optional Inner _sixth = 6;
          map<int32, E> seventh = 7 [deprecated = true];
          int32 MixedCase_name2x__y = 8;
          message Inner { Inner inner = 1; M outer = 2; .a.M absolute = 3; a.M from_package = 4; }
          enum E { option allow_alias = true; ZERO = 0; NULL = 0 [deprecated = true]; reserved 5 to max, -3; }
          option deprecated = true;
        }
        """,
    "nested messages between maps": """
        syntax = "proto3";
        message M {
          message A {}
          map<string, A> first = 1;
          message B {}
          oneof x { string y = 2; }
          map<string, B> second = 3;
          int32 last = 4;
          message C {}
        }
        """,
    "synthetic oneofs whose names are taken": """
        syntax = "proto3";
        message M { optional int32 a = 1; int32 _a = 2; oneof _b { int32 c = 3; } optional int32 b = 4; }
        """,
    "scopes": """
        syntax = "proto3";
        package a.b.a;
        message A {
          message A { A a = 1; .a.b.a.A b = 2; A.B c = 3; message B {} }
          A a = 1;
          B b = 2;
          a.A c = 3;
          string A_ = 4;
        }
        message B { A.A a = 1; enum A_ { X = 0; } A_ e = 2; }
        """,
    "imports": """
        syntax = "proto3";
        package shop.orders;
        import "google/protobuf/timestamp.proto";
        import "money.proto";
        import "google/protobuf/any.proto";
        message Order {
          Money price = 1;
          shop.Currency currency = 2;
          google.protobuf.Timestamp at = 3;
          deep.Base base = 4;
          .deep.Base.Kind kind = 5;
          map<string, google.protobuf.Any> more = 6;
        }
        """,
    "services": """
        syntax = "proto3";
        message A {}
        service S {
          option deprecated = true;
          rpc One (A) returns (A);
          rpc Two (stream A) returns (stream .A) {
            option deprecated = true;
            option idempotency_level = IDEMPOTENT;
          }
          rpc stream (A) returns (A);
        }
        """,
    "custom options": """
        syntax = "proto2";
        package using;
        import "choices.proto";
        option (choices.file).text = "a";
        option (choices.file).inner.numbers = 1;
        option (choices.file).inner.numbers = 2;
        message M {
          option (choices.message) = {
            text: "x" 'y', numbers: [1, 2, 0x3]
            inner { inner < level: HIGH > raw: "\\377" }
            counts { key: "k" value: 7 }
            counts: { key: "j", value: -8 };
            ratio: -inf
            [choices.more]: "extended"
          };
          optional string a = 1 [
            (choices.field).text = "t", (.choices.tags) = "one", deprecated = true, (choices.tags) = "two",
            (choices.level) = HIGH, (choices.weight) = 1.25, (choices.count) = -3, (choices.shown) = true
          ];
          oneof o { option (choices.oneof) = "o"; int32 b = 2 [(mine) = 5]; }
          extensions 100 to 200 [(choices.range) = "r"];
        }
        extend google.protobuf.FieldOptions { optional int32 mine = 50100; }
        enum E { option (choices.enum) = "e"; V = 1 [(choices.value) = "v"]; }
        service S { option (choices.service) = "s"; rpc R (M) returns (M) { option (choices.method) = "m"; } }
        """.replace('import "choices', 'import "google/protobuf/descriptor.proto";\nimport "choices'),
    "an edition": """
        edition = "2023";
        package e;
        option features.field_presence = IMPLICIT;
        message M {
          reserved one, two;
          int32 a = 1 [features.field_presence = LEGACY_REQUIRED];
          repeated int32 b = 2 [features.repeated_field_encoding = EXPANDED];
          M c = 3 [features.message_encoding = DELIMITED, features.field_presence = EXPLICIT];
        }
        enum E { option features.enum_type = CLOSED; A = 1; }
        """,
    "words that are also names": """
        syntax = "proto3";
        message message { string optional = 1; string message = 2; string syntax = 3; map map = 5; }
        message map { enum enum { to = 0; max = 1; } .map.enum value = 1; string returns = 2; }
        """,
    "comments and space": """// first
        /* a * comment // with others */ syntax /**/ = 'proto' "3" ; ;;
        message/**/A{string b=1;;}; // last""",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_descriptor_is_the_one_that_protoc_makes(name: str, tmp_path: Path) -> None:
    expected = compiled(tmp_path, TEXTS[name], REFERENCES)
    assert expected is not None
    assert own(parse(TEXTS[name], REFERENCES).descriptor, expected) == expected


@pytest.mark.parametrize("name", TEXTS)
def test_the_canonical_text_has_the_same_descriptor_and_is_its_own_canonical_text(name: str) -> None:
    schema = parse(TEXTS[name], REFERENCES)
    again = parse(schema.canonical, REFERENCES)
    assert FileDescriptorProto.FromString(again.descriptor) == FileDescriptorProto.FromString(
        schema.descriptor
    )
    assert again.canonical == schema.canonical


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "nothing"])
def test_the_base64_of_a_descriptor_is_a_schema_with_that_descriptor(name: str, tmp_path: Path) -> None:
    expected = compiled(tmp_path, TEXTS[name], REFERENCES)
    schema = parse(base64.b64encode(expected.SerializeToString()).decode(), REFERENCES)
    assert own(schema.descriptor, expected) == expected
    assert own(parse(schema.canonical, REFERENCES).descriptor, expected) == expected


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_normalized_as_its_base64_is(name: str) -> None:
    schema = parse(TEXTS[name], REFERENCES)
    normalized = schema.normalized
    assert parse(normalized, REFERENCES).normalized == normalized
    if schema.descriptor:
        encoded = base64.b64encode(schema.descriptor).decode()
        assert parse(encoded, REFERENCES).normalized == normalized


def test_references_can_be_base64_as_well(tmp_path: Path) -> None:
    encoded = {}
    for name, text in REFERENCES.items():
        encoded[name] = base64.b64encode(parse(text, encoded).descriptor).decode()
    expected = compiled(tmp_path, TEXTS["imports"], REFERENCES)
    assert own(parse(TEXTS["imports"], encoded).descriptor, expected) == expected


def test_an_entry_of_a_map_can_be_declared_as_a_message_as_javas_clients_do() -> None:
    explicit = parse(
        """
        syntax = "proto3";
        message M {
          repeated .M.CountsEntry counts = 1;
          message CountsEntry { option map_entry = true; string key = 1; int32 value = 2; }
        }
        """,
        {},
    )
    short = parse('syntax = "proto3"; message M { map<string, int32> counts = 1; }', {})
    assert explicit.descriptor == short.descriptor
    assert "map_entry" in explicit.canonical
    assert explicit.normalized == short.normalized
    assert "map<string, int32> counts = 1;" in explicit.normalized


def test_what_confluents_clients_take_for_granted_can_be_imported() -> None:
    schema = parse(
        """
        syntax = "proto3";
        import "confluent/meta.proto";
        import "confluent/types/decimal.proto";
        import "confluent/type/variant.proto";
        import "google/type/money.proto";
        message M {
          string name = 1 [
            (confluent.field_meta).tags = "PII",
            (confluent.field_meta).params = { key: "a" value: "b" }
          ];
          confluent.type.Decimal price = 2 [(confluent.field_meta) = { rules: [{ name: "r" }] }];
          confluent.type.Variant variant = 3;
          google.type.Money money = 4;
        }
        """,
        {},
    )
    assert '(confluent.field_meta).tags = "PII"' in schema.canonical
    encoded = parse(base64.b64encode(schema.descriptor).decode(), {})
    assert encoded.descriptor == schema.descriptor
    assert encoded.normalized == schema.normalized
    assert 'tags: "PII"' in schema.normalized


def test_confluents_options_need_no_import_and_are_found_from_a_package_that_hides_them() -> None:
    text = """
        syntax = "proto3";
        package io.confluent.generated;
        message M { string a = 1 [(confluent.field_meta) = { doc: "of a" }]; }
        """
    schema = parse(text, {})
    encoded = parse(base64.b64encode(schema.descriptor).decode(), {})
    assert encoded.descriptor == schema.descriptor
    assert 'doc: "of a"' in encoded.canonical
    assert parse(schema.normalized, {}).descriptor == schema.descriptor


def test_a_file_that_declares_confluents_or_googles_names_itself_is_read_as_it_is() -> None:
    text = """
        syntax = "proto2";
        package google.protobuf;
        message FieldOptions { optional string ctype = 1; extensions 1000 to max; }
        message M { optional string a = 1 [deprecated = true]; }
        """
    assert parse(text, {}).normalized == parse(parse(text, {}).normalized, {}).normalized
    text = """
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        extend google.protobuf.FieldOptions { string field_meta = 1088; }
        message M { string a = 1 [(confluent.field_meta) = "mine"]; }
        """
    assert '(confluent.field_meta) = "mine"' in parse(text, {}).normalized
