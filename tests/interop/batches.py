"""Record batches written and read by hand, byte by byte, independently of Ottla's own code."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20


def now_ms() -> int:
    return int(time.time() * 1000)


def varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def record(offset_delta: int, key: bytes | None, value: bytes | None, timestamp_delta: int = 0) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta)
    for field in (key, value):
        body += varint(-1) if field is None else varint(len(field)) + field
    body += varint(0)
    return varint(len(body)) + body


def batch(
    *values: bytes | None,
    key: bytes | None = b"key",
    records: bytes | None = None,
    base_offset: int = 0,
    attributes: int = 0,
    timestamp: int | None = None,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    count: int | None = None,
    last_offset_delta: int | None = None,
    magic: int = 2,
    crc: int | None = None,
) -> bytes:
    """A batch of one record per value. Every header field can be given wrong on purpose."""
    values = values or (b"value",)
    if records is None:
        records = b"".join(record(delta, key, value) for delta, value in enumerate(values))
    count = len(values) if count is None else count
    timestamp = now_ms() if timestamp is None else timestamp
    after_crc = struct.pack(
        ">hiqqqhii",
        attributes,
        len(values) - 1 if last_offset_delta is None else last_offset_delta,
        timestamp,
        timestamp if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        sequence,
        count,
    )
    payload = after_crc + records
    crc = crc32c.crc32c(payload) if crc is None else crc
    return struct.pack(">qiibI", base_offset, len(payload) + 9, -1, magic, crc) + payload


@dataclass(frozen=True)
class Header:
    """The header of a batch as the broker returned it."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    crc_is_right: bool

    @property
    def codec(self) -> int:
        return self.attributes & 7

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1


def headers(data: bytes) -> Iterator[Header]:
    """Every whole batch in the records of a fetch response."""
    position = 0
    while position + HEADER.size <= len(data):
        fields = HEADER.unpack_from(data, position)
        end = position + 12 + fields[1]
        if end > len(data):
            return
        yield Header(*fields, crc_is_right=crc32c.crc32c(data[position + 21 : end]) == fields[4])
        position = end


def one_header(data: bytes) -> Header:
    (header,) = headers(data)
    return header


def message_set_v1(values: Sequence[bytes]) -> bytes:
    """What producers before 0.11 sent: a plain MessageSet of magic 1."""
    import binascii

    out = bytearray()
    for offset, value in enumerate(values):
        body = struct.pack(">bbqi", 1, 0, now_ms(), -1) + struct.pack(">i", len(value)) + value
        message = struct.pack(">I", binascii.crc32(body)) + body
        out += struct.pack(">qi", offset, len(message)) + message
    return bytes(out)
