"""Arrow arrays over the buffers that the column kernel has filled; nothing is copied."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ottla.arrow.schema import HEADERS_TYPE, TYPES
from ottla.core.files import Buffer
from ottla.protocol._columns_py import BinaryColumn, HeaderColumn, Taken


class TopicArrays:
    """Arrays for the columns of one partition."""

    def __init__(self, schema: pa.Schema, topic: str, partition: int) -> None:
        self._schema = schema
        self._same = {"topic": topic, "partition": partition}
        # The longest array of the same value; shorter ones are parts of it.
        self._repeated: dict[str, Any] = {}

    def batch(self, taken: Taken) -> pa.RecordBatch:
        arrays = [self._array(name, taken) for name in self._schema.names]
        if not arrays:
            # Without columns a batch would not know how many rows it has.
            return pa.RecordBatch.from_struct_array(pa.array([{}] * taken.rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, name: str, taken: Taken) -> pa.Array:
        match name:
            case "key":
                return _binary(taken.key, taken.rows)
            case "value":
                return _binary(taken.value, taken.rows)
            case "offset":
                return _fixed(name, taken.offset, taken.rows)
            case "timestamp":
                return _fixed(name, taken.timestamp, taken.rows)
            case "timestampType":
                return _fixed(name, taken.timestamp_type, taken.rows)
            case "headers":
                return _headers(taken.headers, taken.rows)
            case _:
                return self._repeat(name, taken.rows)

    def _repeat(self, name: str, rows: int) -> pa.Array:
        kept = self._repeated.get(name)
        if kept is None or len(kept) < rows:
            kept = self._repeated[name] = pa.repeat(pa.scalar(self._same[name], TYPES[name]), rows)
        return kept if len(kept) == rows else kept.slice(0, rows)


def _buffer(buffer: Buffer | pa.Buffer) -> pa.Buffer:
    return buffer if isinstance(buffer, pa.Buffer) else pa.py_buffer(buffer)


def _fixed(name: str, values: Buffer | None, rows: int) -> pa.Array:
    assert values is not None
    return pa.Array.from_buffers(TYPES[name], rows, [None, _buffer(values)], 0)


def _binary(column: BinaryColumn | None, rows: int) -> pa.Array:
    assert column is not None
    validity = None if column.validity is None else _buffer(column.validity)
    buffers = [validity, _buffer(column.offsets), _buffer(column.data)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers, column.null_count)


def _headers(column: HeaderColumn | None, rows: int) -> pa.Array:
    assert column is not None
    values = _binary(column.values, column.pairs)
    pairs = pa.StructArray.from_arrays([_header_keys(column), values], fields=list(HEADERS_TYPE.value_type))
    return pa.Array.from_buffers(HEADERS_TYPE, rows, [None, _buffer(column.offsets)], 0, children=[pairs])


def _header_keys(column: HeaderColumn) -> pa.Array:
    buffers = [None, _buffer(column.key_offsets), _buffer(column.key_data)]
    if column.is_ascii:
        return pa.Array.from_buffers(pa.string(), column.pairs, buffers, 0)
    found = pa.Array.from_buffers(pa.binary(), column.pairs, buffers, 0)
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        # Kafka never looks whether a key is UTF-8. Java's consumer puts U+FFFD where it is not.
        return pa.array([key.decode("utf-8", "replace") for key in found.to_pylist()], pa.string())
