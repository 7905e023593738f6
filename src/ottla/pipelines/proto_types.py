"""Protobuf messages as Arrow types, and messages as values of these.

Fields that know whether they are set (messages, `optional`, members of a oneof) are null when they are not;
the others have their default, as Protobuf says. Enums are the names of their values, unsigned numbers get the
next larger type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ottla.pipelines.errors import PipelineError

Convert = Callable[[Any], Any]

_WRAPPERS = {
    "google.protobuf.DoubleValue",
    "google.protobuf.FloatValue",
    "google.protobuf.Int64Value",
    "google.protobuf.UInt64Value",
    "google.protobuf.Int32Value",
    "google.protobuf.UInt32Value",
    "google.protobuf.BoolValue",
    "google.protobuf.StringValue",
    "google.protobuf.BytesValue",
}
# What may hold anything becomes the JSON text of it.
_OPEN = {
    "google.protobuf.Struct",
    "google.protobuf.Value",
    "google.protobuf.ListValue",
    "google.protobuf.Any",
}


def arrow_type(message: Any, path: tuple[str, ...] = ()) -> pa.DataType:
    """The struct of a message."""
    name = message.full_name
    if name in path:
        raise PipelineError(f"the Protobuf message {name} contains itself; Spark has no columns for that")
    return pa.struct([(each.name, _field_type(each, (*path, name))) for each in message.fields])


def converter(message: Any) -> Convert:
    """A function from a message to a dict that Arrow takes for the type above."""
    parts = [_field_converter(each) for each in message.fields]

    def convert(value: Any) -> dict[str, Any]:
        return {name: get(value) for name, get in parts}

    return convert


def _field_type(field: Any, path: tuple[str, ...]) -> pa.DataType:
    if _is_map(field):
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        return pa.map_(_single_type(key, path), _single_type(value, path))
    single = _single_type(field, path)
    return pa.list_(single) if field.is_repeated else single


def _single_type(field: Any, path: tuple[str, ...]) -> pa.DataType:
    from google.protobuf.descriptor import FieldDescriptor as F

    if field.type in (F.TYPE_MESSAGE, F.TYPE_GROUP):
        name = field.message_type.full_name
        if name == "google.protobuf.Timestamp":
            return pa.timestamp("us", tz="UTC")
        if name == "google.protobuf.Duration":
            return pa.duration("us")
        if name in _WRAPPERS:
            return _single_type(field.message_type.fields_by_name["value"], path)
        return pa.string() if name in _OPEN else arrow_type(field.message_type, path)
    known = {
        F.TYPE_DOUBLE: pa.float64(),
        F.TYPE_FLOAT: pa.float32(),
        F.TYPE_BOOL: pa.bool_(),
        F.TYPE_STRING: pa.string(),
        F.TYPE_ENUM: pa.string(),
        F.TYPE_BYTES: pa.binary(),
        F.TYPE_UINT32: pa.int64(),
        F.TYPE_FIXED32: pa.int64(),
        F.TYPE_UINT64: pa.decimal128(20, 0),
        F.TYPE_FIXED64: pa.decimal128(20, 0),
        F.TYPE_INT64: pa.int64(),
        F.TYPE_SINT64: pa.int64(),
        F.TYPE_SFIXED64: pa.int64(),
    }
    return known.get(field.type, pa.int32())


def _field_converter(field: Any) -> tuple[str, Convert]:
    name = field.name
    if _is_map(field):
        one = _single_converter(field.message_type.fields_by_name["value"])
        return name, lambda message: [
            (key, one(value) if one else value) for key, value in getattr(message, name).items()
        ]
    one = _single_converter(field)
    if field.is_repeated:
        if one is None:
            return name, lambda message: list(getattr(message, name))
        return name, lambda message: [one(each) for each in getattr(message, name)]
    if one is None:
        if field.has_presence:
            return name, lambda message: getattr(message, name) if message.HasField(name) else None
        return name, lambda message: getattr(message, name)
    if field.has_presence:
        return name, lambda message: one(getattr(message, name)) if message.HasField(name) else None
    return name, lambda message: one(getattr(message, name))


def _single_converter(field: Any) -> Convert | None:
    """How one value is converted; None if it is fine as it is."""
    from google.protobuf.descriptor import FieldDescriptor as F

    if field.type == F.TYPE_ENUM:
        names = {each.number: each.name for each in field.enum_type.values}
        return lambda number: names.get(number, str(number))
    if field.type not in (F.TYPE_MESSAGE, F.TYPE_GROUP):
        return None
    name = field.message_type.full_name
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        return lambda value: value.seconds * 1_000_000 + value.nanos // 1000
    if name in _WRAPPERS:
        return lambda value: value.value
    if name in _OPEN:
        from google.protobuf.json_format import MessageToJson

        return lambda value: MessageToJson(value, indent=None)
    return converter(field.message_type)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)
