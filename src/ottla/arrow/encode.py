"""Arrow columns to record batches of version 2, ready to be produced.

Rows are first given a partition (`partition_keys`, or a column of the user), grouped (`rows_by_partition`)
and then encoded, with one `Encoder` per Arrow batch. A producer stamps each batch with its id and sequence
before it is sent.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.arrow.schema import HEADERS_TYPE
from ottla.core.files import Buffer
from ottla.protocol import columns as column_kernel
from ottla.protocol._rows_py import BinarySource, HeaderSource, HeaderWithoutKey
from ottla.protocol.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchHeader,
    write_crc,
)
from ottla.protocol.compression import NONE, compress
from ottla.protocol.errors import InvalidRecord

BATCH_BYTES: Final = 512 * 1024
"""Half of the broker's default `message.max.bytes`: well filled, and far from being refused."""

_HEADER: Final = Struct(">qiibIhiqqqhii")
_PRODUCER: Final = Struct(">qhi")
_PRODUCER_AT: Final = 43
_ATTRIBUTES: Final = Struct(">h")
_ATTRIBUTES_AT: Final = 21


class EncodedBatch(NamedTuple):
    """A record batch whose CRC is right, of no producer until `stamp` gives it one."""

    record_count: int
    batch: bytearray


class Encoder:
    """The rows of an Arrow batch, of which the columns key, value, timestamp and headers are taken.

    Keys and values may be binary or strings of any kind that Arrow has. A timestamp that is null, or without
    a column, is `now_ms`. Raises InvalidRecord for columns that cannot become records.
    """

    def __init__(self, batch: pa.RecordBatch, *, now_ms: int) -> None:
        self._now_ms = now_ms
        self._rows = column_kernel.Rows(
            batch.num_rows,
            _binary_source("key", _column(batch, "key")),
            _binary_source("value", _column(batch, "value")),
            _timestamps(_column(batch, "timestamp"), now_ms),
            _header_source(_column(batch, "headers")),
        )
        self.count = batch.num_rows

    def encode(
        self,
        rows: pa.Array | Buffer | None = None,
        *,
        codec: int = NONE,
        level: int | None = None,
        max_bytes: int = BATCH_BYTES,
    ) -> list[EncodedBatch]:
        """These rows (int64 numbers; all of them by default) in batches of at most `max_bytes` uncompressed.

        A record that is larger than that has a batch of its own; whether it is too large is for the broker
        to say. Raises InvalidRecord for a header without a key, and IndexError for a row that is not there.
        """
        numbers = None if rows is None else _row_numbers(rows)
        end = self.count if numbers is None else len(numbers) // 8
        batches = []
        index = 0
        while index < end:
            try:
                after, batch, base_timestamp, max_timestamp = self._rows.write(
                    numbers, index, max_bytes, self._now_ms
                )
            except (HeaderWithoutKey, OverflowError) as error:
                raise InvalidRecord(str(error)) from None
            count = after - index
            batches.append(
                EncodedBatch(count, _finish(batch, count, codec, level, base_timestamp, max_timestamp))
            )
            index = after
        return batches


def encode(
    batch: pa.RecordBatch,
    rows: pa.Array | Buffer | None = None,
    *,
    now_ms: int,
    codec: int = NONE,
    level: int | None = None,
    max_bytes: int = BATCH_BYTES,
) -> list[EncodedBatch]:
    """`Encoder.encode` for an Arrow batch of which all rows go to one partition."""
    return Encoder(batch, now_ms=now_ms).encode(rows, codec=codec, level=level, max_bytes=max_bytes)


def _finish(
    batch: bytearray, count: int, codec: int, level: int | None, base_timestamp: int, max_timestamp: int
) -> bytearray:
    if codec != NONE:
        payload = compress(codec, memoryview(batch)[HEADER_SIZE:], level)
        batch = bytearray(HEADER_SIZE + len(payload))
        batch[HEADER_SIZE:] = payload
    header = BatchHeader(
        base_offset=0,
        batch_length=len(batch) - LOG_OVERHEAD,
        partition_leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=codec,
        last_offset_delta=count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=-1,
        base_sequence=NO_SEQUENCE,
        record_count=count,
    )
    _HEADER.pack_into(batch, 0, *header)
    write_crc(batch)
    return batch


def stamp(
    batch: bytearray,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    *,
    transactional: bool = False,
) -> None:
    """Makes a batch one of this producer, in place, and its CRC right."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    attributes = attributes | TRANSACTIONAL if transactional else attributes & ~TRANSACTIONAL
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, attributes)
    _PRODUCER.pack_into(batch, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    write_crc(batch)


def partition_keys(key: pa.Array, partition_count: int, *, keyless: int = -1) -> pa.Array:
    """The partition of every row as an int32 array: where Kafka's default partitioner sends the key.

    Rows without a key get `keyless`: Kafka's producer keeps to one partition for a batch of them.
    """
    source = _binary_source("key", key)
    if source is None:
        return pa.repeat(pa.scalar(keyless, pa.int32()), len(key))
    partitions = column_kernel.partition_keys(source, partition_count, keyless)
    return pa.Array.from_buffers(pa.int32(), len(key), [None, pa.py_buffer(partitions)])


def rows_by_partition(partitions: pa.Array, partition_count: int) -> dict[int, pa.Array]:
    """The row numbers of each partition that has any, as int64 arrays, in the order of the rows.

    `partitions` are int32 and none is null. Raises IndexError for one that is not there.
    """
    if partitions.null_count:
        raise InvalidRecord("a row has no partition")
    if partitions.type != pa.int32():
        partitions = partitions.cast(pa.int32())
    numbers = memoryview(partitions.buffers()[1] or b"")[4 * partitions.offset :][: 4 * len(partitions)]
    rows, starts = column_kernel.rows_by_partition(numbers, partition_count)
    all_rows = pa.Array.from_buffers(pa.int64(), len(partitions), [None, pa.py_buffer(rows)])
    bounds = memoryview(starts).cast("q")
    return {
        partition: all_rows.slice(bounds[partition], bounds[partition + 1] - bounds[partition])
        for partition in range(partition_count)
        if bounds[partition] < bounds[partition + 1]
    }


def _column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    index = batch.schema.get_field_index(name)
    return None if index < 0 else batch.column(index)


def _row_numbers(rows: pa.Array | Buffer) -> memoryview:
    if isinstance(rows, pa.Array):
        if rows.null_count:
            raise ValueError("a row number is null")
        rows = rows.cast(pa.int64())
        return memoryview(rows.buffers()[1] or b"").cast("B")[8 * rows.offset :][: 8 * len(rows)]
    view = memoryview(rows)
    if view.itemsize != 8:
        raise ValueError(f"row numbers are int64, not {view.itemsize} bytes wide")
    return view.cast("B")


def _binary_source(name: str, column: pa.Array | None) -> BinarySource | None:
    if column is None or pa.types.is_null(column.type):
        return None
    column = _as_binary(name, column)
    validity, offsets, data = column.buffers()
    return BinarySource(
        len(column),
        column.offset,
        validity if column.null_count else None,
        offsets if offsets is not None and offsets.size else bytes(8),
        data if data is not None else b"",
        pa.types.is_large_binary(column.type),
    )


def _as_binary(name: str, column: pa.Array) -> pa.Array:
    kind: Any = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column
    if pa.types.is_string(kind):
        return column.view(pa.binary())
    if pa.types.is_large_string(kind):
        return column.view(pa.large_binary())
    if pa.types.is_dictionary(kind):
        return _as_binary(name, column.dictionary_decode())
    if pa.types.is_binary_view(kind) or pa.types.is_string_view(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.large_binary())
    raise InvalidRecord(f"the column {name} is {kind}; it has to be binary or a string")


def _timestamps(column: pa.Array | None, now_ms: int) -> Buffer | None:
    if column is None or pa.types.is_null(column.type):
        return None
    if pa.types.is_timestamp(column.type):
        # Kafka has milliseconds. What is finer is cut off, towards the earlier one.
        column = pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms", tz=column.type.tz))
    elif not pa.types.is_integer(column.type):
        raise InvalidRecord(
            f"the column timestamp is {column.type}; it has to be a timestamp or milliseconds"
        )
    column = column.cast(pa.int64()).fill_null(now_ms)
    return memoryview(column.buffers()[1] or b"").cast("B")[8 * column.offset :][: 8 * len(column)]


def _header_source(column: pa.Array | None) -> HeaderSource | None:
    if column is None or pa.types.is_null(column.type):
        return None
    if column.type != HEADERS_TYPE:
        try:
            column = column.cast(HEADERS_TYPE)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidRecord(f"the column headers is {column.type}: {error}") from None
    # A null pair comes out as a null key, which is refused.
    keys, values = column.values.flatten()
    key_source, value_source = _binary_source("headers", keys), _binary_source("headers", values)
    assert key_source is not None and value_source is not None
    validity, offsets = column.buffers()[:2]
    return HeaderSource(
        len(column),
        column.offset,
        validity if column.null_count else None,
        offsets if offsets is not None and offsets.size else bytes(4),
        key_source,
        value_source,
    )
