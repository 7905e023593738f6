"""Record batches of version 2, the unit that Kafka sends and stores.

A batch is 61 bytes of header and then its records, compressed as one stream if at all. The broker hardly
ever looks inside: it checks a batch, patches a few header fields in place and passes the bytes on. Reading
and writing single records, here in Python, is for what the broker itself has to say: metadata, group
offsets, transaction states.

Whatever is wrong with bytes handed in is a `CorruptMessage` (not a batch) or an `InvalidRecord` (a batch with
bad records in it); past the bound on decompression it is a `MessageTooLarge`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from struct import Struct, error
from typing import Final, NamedTuple

from crc32c import crc32c

from ottla.core.files import Buffer
from ottla.protocol import kernel
from ottla.protocol.compression import DEFAULT_LIMIT, NONE, compress, decompress
from ottla.protocol.errors import CorruptMessage, InvalidRecord

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Bytes of a batch that its length field does not count: the base offset and the length itself."""

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_SEQUENCE: Final = -1
NO_PRODUCER_ID: Final = -1

_HEADER: Final = Struct(">qiibIhiqqqhii")
_ASSIGNED: Final = Struct(">qii")
_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT16: Final = Struct(">h")

_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_ATTRIBUTES_AT: Final = 21
_MAX_TIMESTAMP_AT: Final = 35
_LAST_SEQUENCE_POSSIBLE: Final = 0x7FFF_FFFF


class BatchHeader(NamedTuple):
    """The header fields in their order on the wire."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop tombstones of this batch; it takes the place of the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset_delta)


def add_to_sequence(sequence: int, count: int) -> int:
    """Sequence numbers go from the greatest 32-bit integer back to 0."""
    return (sequence + count) & _LAST_SEQUENCE_POSSIBLE


@dataclass(slots=True)
class Record:
    """One record. In a batch of LogAppendTime every record has the time of the append."""

    offset: int = 0
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    """Keys that are not UTF-8, which Kafka lets pass, keep their bytes as lone surrogates."""


def read_header(buffer: Buffer, pos: int = 0) -> BatchHeader:
    """The header of the batch at `pos`; the records need not be there yet."""
    try:
        header = BatchHeader._make(_HEADER.unpack_from(buffer, pos))
    except error:
        raise CorruptMessage("a batch header is cut off") from None
    if header.magic != 2:
        raise CorruptMessage(f"a batch has magic {header.magic}, not 2")
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptMessage(f"a batch has length {header.batch_length}, which is less than its header")
    return header


def iter_batches(
    buffer: Buffer, pos: int = 0, end: int | None = None
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every whole batch from `pos` on, in place. One that `end` cuts off is no error: it ends the walk."""
    view = memoryview(buffer)
    if end is None:
        end = len(view)
    while end - pos >= HEADER_SIZE:
        header = read_header(view, pos)
        after = pos + LOG_OVERHEAD + header.batch_length
        if after > end:
            return
        yield header, view[pos:after]
        pos = after
    # What is left is shorter than a header, but long enough to see whether it could become one.
    if end - pos > _MAGIC_AT and view[pos + _MAGIC_AT] != 2:
        raise CorruptMessage(f"a batch has magic {view[pos + _MAGIC_AT]}, not 2")


def crc_ok(batch: Buffer, pos: int = 0) -> bool:
    """Whether the CRC of the whole batch at `pos` is that of its bytes."""
    header = read_header(batch, pos)
    end = pos + header.size
    if end > len(batch):
        raise CorruptMessage("a batch is cut off")
    computed: int = crc32c(memoryview(batch)[pos + _ATTRIBUTES_AT : end])
    return computed == header.crc


def uncompressed_records(
    batch: Buffer, header: BatchHeader | None = None, limit: int = DEFAULT_LIMIT
) -> Buffer:
    """The records section of a batch as the kernel reads it."""
    if header is None:
        header = read_header(batch)
    if header.size > len(batch):
        raise CorruptMessage("a batch is cut off")
    return decompress(header.codec, memoryview(batch)[HEADER_SIZE : header.size], limit)


def read_records(batch: Buffer, limit: int = DEFAULT_LIMIT) -> list[Record]:
    """Every record of one batch, checked. The CRC is the caller's business."""
    header = read_header(batch)
    section = memoryview(uncompressed_records(batch, header, limit))
    fault, index, columns = kernel.columns(section, header.record_count)
    if fault:
        raise InvalidRecord(kernel.describe(fault, index))
    _, _, offset_deltas, timestamp_deltas, keys, key_lengths, values, value_lengths, headers, counts = columns
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    records = []
    for i in range(header.record_count):
        key, key_length, value, value_length = keys[i], key_lengths[i], values[i], value_lengths[i]
        records.append(
            Record(
                kernel.wrapped(base_offset + offset_deltas[i]),
                kernel.wrapped(base_timestamp + timestamp_deltas[i]) if append_time is None else append_time,
                None if key_length < 0 else bytes(section[key : key + key_length]),
                None if value_length < 0 else bytes(section[value : value + value_length]),
                _read_headers(section, headers[i], counts[i]) if counts[i] else [],
            )
        )
    return records


def _read_headers(section: memoryview, pos: int, count: int) -> list[tuple[str, bytes | None]]:
    """Headers of a record that the kernel has found well-formed."""
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, pos = _read_varint(section, pos)
        key = str(section[pos : pos + length], "utf-8", "surrogateescape")
        length, pos = _read_varint(section, pos + length)
        if length < 0:
            headers.append((key, None))
        else:
            headers.append((key, bytes(section[pos : pos + length])))
            pos += length
    return headers


def _read_varint(view: memoryview, pos: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFF_FFFF
            return (value >> 1) ^ -(value & 1), pos
        shift += 7


def _write_varint(out: bytearray, value: int) -> None:
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def _write_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out.append(1)  # -1
    else:
        _write_varint(out, len(value))
        out += value


def write_record(out: bytearray, record: Record, offset_delta: int, timestamp_delta: int) -> None:
    """Appends one record of a records section."""
    body = bytearray(1)
    _write_varint(body, timestamp_delta)
    _write_varint(body, offset_delta)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    _write_varint(body, len(record.headers))
    for key, value in record.headers:
        _write_bytes(body, key.encode("utf-8", "surrogateescape"))
        _write_bytes(body, value)
    _write_varint(out, len(body))
    out += body


def write_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: int = NONE,
    level: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
    keep_offsets: bool = False,
    last_offset_delta: int | None = None,
    max_timestamp: int | None = None,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """One batch of these records.

    They take the offsets from `base_offset` on, whatever theirs are, unless `keep_offsets`: then each stays
    at its own, as compaction needs it, and `last_offset_delta` may reach past the last of them. An empty
    batch, which compaction also leaves, keeps `last_offset_delta` and `max_timestamp` if given.
    `attributes` are the bits other than the codec, such as TRANSACTIONAL and CONTROL.
    """
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON
        base_timestamp = delete_horizon_ms
    else:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    section = bytearray()
    latest = NO_TIMESTAMP
    delta = -1
    for index, record in enumerate(records):
        delta = record.offset - base_offset if keep_offsets else index
        write_record(section, record, delta, kernel.wrapped(record.timestamp - base_timestamp))
        latest = max(latest, record.timestamp)
    if max_timestamp is None:
        max_timestamp = latest
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp = log_append_time_ms
    return build_batch(
        BatchHeader(
            base_offset=base_offset,
            batch_length=0,
            partition_leader_epoch=leader_epoch,
            magic=2,
            crc=0,
            attributes=attributes & ~CODEC_MASK | codec,
            last_offset_delta=max(delta, 0) if last_offset_delta is None else last_offset_delta,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(records),
        ),
        section,
        level,
    )


def build_batch(header: BatchHeader, section: Buffer, level: int | None = None) -> bytearray:
    """A batch of this header, its length and CRC made right, and of an uncompressed records section."""
    payload = compress(header.codec, section, level)
    batch = bytearray(HEADER_SIZE + len(payload))
    batch[HEADER_SIZE:] = payload
    base_offset, _, *others = header
    _HEADER.pack_into(batch, 0, base_offset, len(batch) - LOG_OVERHEAD, *others)
    write_crc(batch)
    return batch


def recompress(batch: Buffer, codec: int, level: int | None = None, limit: int = DEFAULT_LIMIT) -> bytearray:
    """The same batch under another codec: header and records stay, byte for byte."""
    header = read_header(batch)
    section = uncompressed_records(batch, header, limit)
    return build_batch(header._replace(attributes=header.attributes & ~CODEC_MASK | codec), section, level)


def write_crc(batch: bytearray | memoryview, pos: int = 0) -> None:
    """Makes the CRC of the batch at `pos` right again after a change to what it covers."""
    view = memoryview(batch)
    (length,) = _INT32.unpack_from(view, pos + 8)
    _UINT32.pack_into(view, pos + _CRC_AT, crc32c(view[pos + _ATTRIBUTES_AT : pos + LOG_OVERHEAD + length]))


def assign(
    batch: bytearray | memoryview, base_offset: int, leader_epoch: int, batch_length: int, pos: int = 0
) -> None:
    """Gives a batch its place in the log. The CRC does not cover these fields, so that it need not change.

    The batch length lies between the two and is written as it was.
    """
    _ASSIGNED.pack_into(batch, pos, base_offset, batch_length, leader_epoch)


def set_base_offset(batch: bytearray | memoryview, base_offset: int, pos: int = 0) -> None:
    _INT64.pack_into(batch, pos, base_offset)


def set_leader_epoch(batch: bytearray | memoryview, leader_epoch: int, pos: int = 0) -> None:
    _INT32.pack_into(batch, pos + LOG_OVERHEAD, leader_epoch)


def set_max_timestamp(
    batch: bytearray | memoryview, max_timestamp: int, *, log_append_time: bool = False, pos: int = 0
) -> None:
    """Writes the max timestamp and whether it is the time of the append, and the CRC over them."""
    (attributes,) = _INT16.unpack_from(batch, pos + _ATTRIBUTES_AT)
    attributes = attributes | LOG_APPEND_TIME if log_append_time else attributes & ~LOG_APPEND_TIME
    _INT16.pack_into(batch, pos + _ATTRIBUTES_AT, attributes)
    _INT64.pack_into(batch, pos + _MAX_TIMESTAMP_AT, max_timestamp)
    write_crc(batch, pos)


def first_at_or_after(
    batch: Buffer, timestamp: int, start_offset: int = 0, limit: int = DEFAULT_LIMIT
) -> tuple[int, int] | None:
    """Offset and timestamp of the first record from `start_offset` on that is not before `timestamp`."""
    header = read_header(batch)
    section = uncompressed_records(batch, header, limit)
    wanted = timestamp
    if header.is_log_append_time:
        if header.max_timestamp < timestamp:
            return None
        wanted = -0x8000_0000_0000_0000
    # Deltas are int32, so that anything below 0 means all records and anything greater none.
    first_delta = min(max(start_offset - header.base_offset, 0), 1 << 31)
    fault, index, offset_delta, found = kernel.first_at_or_after(
        section, header.record_count, header.base_timestamp, wanted, first_delta
    )
    if fault:
        raise InvalidRecord(kernel.describe(fault, index))
    if index < 0:
        return None
    return header.base_offset + offset_delta, header.max_timestamp if header.is_log_append_time else found
