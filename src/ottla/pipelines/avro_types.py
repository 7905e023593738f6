"""Avro schemas as Arrow types: what a record of a schema looks like as columns.

Logical types for dates, times of day and UUIDs are read as what they are stored as, and get their meaning
from the Arrow type, which is much faster than a Python object for each. Only decimals go through Python's
own.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ottla.pipelines.errors import PipelineError

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "timestamp-nanos": pa.timestamp("ns", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}
# A union of these is the larger one, as in Spark's own Avro reader.
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def arrow_type(schema: Any, named: Mapping[str, Any], path: tuple[str, ...] = ()) -> pa.DataType:
    """The Arrow type of a schema that fastavro has parsed, where names are full names. `named` holds the
    records, enums and fixed types by these; `path` the names this one is inside of."""
    if isinstance(schema, list):
        return _union(schema, named, path)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        return arrow_type(named[schema], named, path)
    kind = schema["type"]
    if schema.get("logicalType") == "decimal":
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if schema.get("logicalType") in _LOGICAL:
        return _LOGICAL[schema["logicalType"]]
    if kind == "record":
        name = schema["name"]
        if name in path:
            raise PipelineError(f"the Avro record {name} contains itself; Spark has no columns for that")
        fields = [(each["name"], arrow_type(each["type"], named, (*path, name))) for each in schema["fields"]]
        return pa.struct(fields)
    if kind == "array":
        return pa.list_(arrow_type(schema["items"], named, path))
    if kind == "map":
        return pa.map_(pa.string(), arrow_type(schema["values"], named, path))
    if kind == "enum":
        return pa.string()
    if kind == "fixed":
        return pa.binary()
    return arrow_type(kind, named, path)


def _union(branches: list[Any], named: Mapping[str, Any], path: tuple[str, ...]) -> pa.DataType:
    present = [each for each in branches if each != "null"]
    if not present:
        return pa.null()
    if len(present) == 1:
        return arrow_type(present[0], named, path)
    names = frozenset(each if isinstance(each, str) else "" for each in present)
    if names in _WIDER:
        return _PRIMITIVES[_WIDER[names]]
    inside = f" in {path[-1]}" if path else ""
    raise PipelineError(
        f"an Avro union of {len(present)} types{inside} has no columns in Spark; only null and one type has"
    )


def without_logical_types(schema: Any) -> Any:
    """The schema as data is stored: what is read by it are plain numbers and texts, and decimals."""
    if isinstance(schema, list):
        return [without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: copy.deepcopy(value) for name, value in schema.items() if name not in _NESTED}
    if plain.get("logicalType") != "decimal":
        plain.pop("logicalType", None)
    if "fields" in schema:
        plain["fields"] = [{**each, "type": without_logical_types(each["type"])} for each in schema["fields"]]
    for name in ("type", "items", "values"):
        if name in schema:
            plain[name] = without_logical_types(schema[name])
    return plain


_NESTED = ("fields", "type", "items", "values")
