"""Files that Confluent's clients take for granted: extensions for documentation and tags, and two types."""

from __future__ import annotations

from functools import cache

from ottla.registry.formats.protobuf.builder import link
from ottla.registry.formats.protobuf.declarations import read_file
from ottla.registry.formats.protobuf.files import META, Files, Linked

# The numbers and names are those that Confluent's clients put into schemas.
_TEXTS = {
    META: """
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        option java_package = "io.confluent.protobuf";
        option java_outer_classname = "MetaProto";
        message Meta {
          string doc = 1;
          map<string, string> params = 2;
          repeated string tags = 3;
          repeated Rule rules = 4;
        }
        message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
        """,
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        option java_package = "io.confluent.protobuf.type";
        option java_outer_classname = "DecimalProto";
        option java_multiple_files = true;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
        """,
    "confluent/type/variant.proto": """
        syntax = "proto3";
        package confluent.type;
        option java_package = "io.confluent.protobuf.type";
        option java_outer_classname = "VariantProto";
        option java_multiple_files = true;
        message Variant { bytes metadata = 1; bytes value = 2; }
        """,
    # Where Decimal was before.
    "confluent/types/decimal.proto": 'syntax = "proto3"; import public "confluent/type/decimal.proto";',
}


def confluents(name: str) -> Linked | None:
    return _linked(name) if name in _TEXTS else None


@cache
def _linked(name: str) -> Linked:
    files = Files(confluents)
    file = read_file(_TEXTS[name])
    return link(file, name, files, is_reference=True)
