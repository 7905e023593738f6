"""Whether rows can be written to a topic: the columns that a sink knows, and their types.

What is refused, and in which words, is as in Spark's Kafka connector. Other columns are passed over, as
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

HEADERS: Final = "array<struct<key:string,value:binary>>"
DESIRED: Final = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": (HEADERS,),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}


class BadSchema(ValueError):
    """Rows that cannot become records."""


def check_schema(schema: StructType, topic: str | None, *, include_timestamp: bool = False) -> None:
    """Raises `BadSchema` unless rows of this schema can be written."""
    types = {each.name: each.dataType for each in schema.fields}
    for name in DESIRED:
        if schema.names.count(name) > 1:
            raise BadSchema(f"there are several columns '{name}': which one is to be written?")
    if topic is None and "topic" not in types:
        raise BadSchema(
            "topic option required when no 'topic' attribute is present. "
            "Use the topic option for setting a topic."
        )
    if "value" not in types:
        raise BadSchema("Required attribute 'value' not found")
    for name, desired in DESIRED.items():
        if name not in types or (name == "topic" and topic is not None):
            continue
        if name == "timestamp" and not include_timestamp:
            continue
        found = _catalog_string(types[name])
        if found not in desired:
            raise BadSchema(
                f"{name} attribute unsupported type {found}. {name} must be a(n) {' or '.join(desired)}"
            )


def _catalog_string(kind: DataType) -> str:
    """A type as Spark writes it, whatever can be null in it; char, varchar and collations are strings
    here."""
    from pyspark.sql.types import ArrayType, StringType, StructType

    if isinstance(kind, StringType):
        return "string"
    if isinstance(kind, ArrayType):
        return f"array<{_catalog_string(kind.elementType)}>"
    if isinstance(kind, StructType):
        fields = ",".join(f"{each.name}:{_catalog_string(each.dataType)}" for each in kind.fields)
        return f"struct<{fields}>"
    return kind.simpleString()
