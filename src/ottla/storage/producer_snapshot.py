"""`.snapshot`: the state of a log's producers as of the offset in the file's name.

Taken whenever a segment begins and when the log is closed, so that a start need not read the whole log. Only
the last batch of each producer is in it. Version 1: int16 version, uint32 CRC-32C of all that follows, int32
count, then 46 bytes per producer.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from crc32c import crc32c

from ottla.storage.producer_state import (
    NO_OFFSET,
    AppendedBatch,
    Producer,
    sequence_before,
)

VERSION: Final = 1
_HEADER: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
# Id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, transaction start.
_ENTRY: Final = Struct(">qhiqiqiq")


class CorruptSnapshot(ValueError):
    """The file is not a snapshot that can be believed."""


def encode_snapshot(producers: Iterable[Producer]) -> bytes:
    entries = [
        _ENTRY.pack(
            producer.id,
            producer.epoch,
            producer.last_sequence,
            producer.last_offset,
            producer.offset_delta,
            producer.timestamp,
            producer.coordinator_epoch,
            producer.transaction_first_offset,
        )
        for producer in producers
    ]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEADER.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[Producer]:
    """The producers of a snapshot. Raises `CorruptSnapshot`."""
    if len(data) < _HEADER.size + _COUNT.size:
        raise CorruptSnapshot(f"{len(data)} bytes are too few")
    version, crc = _HEADER.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(f"version {version} is unknown")
    body = memoryview(data)[_HEADER.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot("the checksum is wrong")
    (count,) = _COUNT.unpack_from(body)
    entries = body[_COUNT.size :]
    if count * _ENTRY.size != len(entries):
        raise CorruptSnapshot(f"{count} producers do not take {len(entries)} bytes")
    return [_producer(*fields) for fields in _ENTRY.iter_unpack(entries)]


def _producer(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> Producer:
    producer = Producer(producer_id)
    producer.epoch = epoch
    producer.timestamp = timestamp
    producer.coordinator_epoch = coordinator_epoch
    producer.transaction_first_offset = transaction_first_offset
    if last_offset != NO_OFFSET:
        first_sequence = sequence_before(last_sequence, offset_delta) if last_sequence >= 0 else last_sequence
        producer.batches.append(
            AppendedBatch(first_sequence, last_sequence, last_offset, offset_delta, timestamp)
        )
    return producer
