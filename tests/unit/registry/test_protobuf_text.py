"""The layout of schemas that are kept, and what normalizing leaves of a text's order."""

from __future__ import annotations

from ottla.registry.formats.protobuf.schema import parse

WRITTEN = """
// A comment.
import "google/protobuf/timestamp.proto"; option java_package="org.a";
package a.b;
enum Late { LATE_NOTHING = 0; LATE_SOME = 1 [deprecated = true]; }
message Empty {}
message M {
  enum E { A = 0; reserved 7, 9 to max; option deprecated = false; }
  message Inner { optional string x = 1; option deprecated = true; oneof y { int32 z = 2; } }
  optional string a = 1 [default="it's", deprecated=true]; repeated Inner b = 2;
  option deprecated = true;
  oneof c { Inner d = 4; E e = 5; }
  reserved 10, 12 to 14; reserved "f";
  map<string,google.protobuf.Timestamp> g = 6;
  extensions 100 to max;
}
extend M { optional int32 h = 100; }
service S { rpc Go(stream M) returns (Empty) { option deprecated = true; } rpc Come(M) returns(M); }
"""

CANONICAL = """package a.b;

import "google/protobuf/timestamp.proto";

option java_package = "org.a";

message Empty {}
message M {
  reserved 10, 12 to 14;
  reserved "f";

  option deprecated = true;

  message Inner {
    option deprecated = true;
@@
    optional string x = 1;
@@
    oneof y {
      int32 z = 2;
    }
  }

  optional string a = 1 [
    deprecated = true,
    default = "it\\'s"
  ];
  repeated Inner b = 2;

  oneof c {
    Inner d = 4;
    E e = 5;
  }

  map<string, google.protobuf.Timestamp> g = 6;

  extensions 100 to max;

  enum E {
    reserved 7, 9 to max;
    option deprecated = false;
    A = 0;
  }
}
enum Late {
  LATE_NOTHING = 0;
  LATE_SOME = 1 [deprecated = true];
}

extend M {
  optional int32 h = 100;
}

service S {
  rpc Go (stream M) returns (Empty) {
    option deprecated = true;
  };
  rpc Come (M) returns (M);
}
""".replace("@", " ")


def test_the_canonical_text_has_one_layout_and_no_comments() -> None:
    assert parse(WRITTEN, {}).canonical == CANONICAL
    assert parse(CANONICAL, {}).canonical == CANONICAL


def test_values_of_options_are_laid_out_too() -> None:
    declared = """
        syntax = "proto3";
        import "google/protobuf/descriptor.proto";
        extend google.protobuf.MessageOptions { repeated Sub many = 50001; Sub one = 50002; }
        message Sub { repeated int32 n = 1; Sub sub = 2; string text = 3; }
        message M {
          option (many) = { n: [1,2], sub { text: "\\001\\"a\\"" } }; option (many) = {};
          option (one).sub.n = 3;
        }
        """
    expected = """message M {
  option (many) = {
    n: [
      1,
      2
    ],
    sub: {
      text: "\\001\\"a\\""
    }
  };
  option (many) = {
  };
  option (one).sub.n = 3;
}
"""
    assert expected in parse(declared, {}).canonical


def test_normalizing_sorts_what_has_no_order_and_writes_names_in_full() -> None:
    one = """
        syntax = "proto3";
        package a;
        import "google/protobuf/duration.proto";
        import "google/protobuf/any.proto";
        option java_package = "x"; option java_multiple_files = true;
        message M {
          reserved "z", "y"; reserved 30, 20 to 25;
          Inner b = 4;
          oneof late { int32 x = 9; int32 w = 8; }
          oneof early { int32 v = 5; }
          map<string, Inner> a = 1;
          google.protobuf.Any any = 2;
          google.protobuf.Duration duration = 3;
          message Inner { }
        }
        enum E { ZERO = 0; TWO = 2; ONE = 1; LESS = -1; }
        """
    other = """
        syntax = "proto3";
        package a;
        import "google/protobuf/any.proto";
        import "google/protobuf/duration.proto";
        option java_multiple_files = true; option java_package = "x";
        enum E { ZERO = 0; LESS = -1; ONE = 1; TWO = 2; }
        message M {
          message Inner { }
          reserved 20 to 25, 30; reserved "y", "z";
          map<string, M.Inner> a = 1 [json_name = "a"];
          .google.protobuf.Any any = 2;
          google.protobuf.Duration duration = 3;
          .a.M.Inner b = 4;
          oneof early { int32 v = 5; }
          oneof late { int32 w = 8; int32 x = 9; }
        }
        """
    normalized = parse(one, {}).normalized
    assert parse(other, {}).normalized == normalized
    assert parse(one, {}).canonical != parse(other, {}).canonical
    assert (
        normalized
        == """syntax = "proto3";
package a;

import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";

option java_multiple_files = true;
option java_package = "x";

message M {
  reserved 20 to 25;
  reserved 30;
  reserved "y";
  reserved "z";

  map<string, .a.M.Inner> a = 1;
  .google.protobuf.Any any = 2;
  .google.protobuf.Duration duration = 3;
  .a.M.Inner b = 4;

  oneof early {
    int32 v = 5;
  }
  oneof late {
    int32 w = 8;
    int32 x = 9;
  }

  message Inner {}
}
enum E {
  ZERO = 0;
  LESS = -1;
  ONE = 1;
  TWO = 2;
}
""".replace("@", " ")
    )


def test_normalizing_leaves_the_order_of_messages() -> None:
    one = parse('syntax = "proto3"; message A {} message B {}', {})
    other = parse('syntax = "proto3"; message B {} message A {}', {})
    assert one.normalized != other.normalized


def test_normalizing_makes_one_of_the_ways_to_set_an_option() -> None:
    declared = """
        syntax = "proto3";
        package p;
        import "google/protobuf/descriptor.proto";
        message Sub { repeated int32 n = 1; Sub sub = 2; string text = 3; }
        extend google.protobuf.FieldOptions { Sub one = 50002; }
        message M { int32 a = 1 [%s]; }
        """
    ways = [
        "(one) = { sub: { text: 'x', n: 7 }, text: 'y' }",
        "(one) = { text: 'y' sub { n: [7] text: 'x' } }",
        "(.p.one).text = 'y', (p.one).sub.text = 'x', (one).sub.n = 0x7",
    ]
    assert len({parse(declared % way, {}).normalized for way in ways}) == 1
    assert len({parse(declared % way, {}).canonical for way in ways}) == 3


def test_proto2_is_not_spelt_out_when_normalized() -> None:
    assert parse('syntax = "proto2"; message A {}', {}).normalized == parse("message A {}", {}).normalized
