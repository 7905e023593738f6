"""What a broker holds, seen without the client under test: record batches and records as the bytes say."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from aiokafka.record.memory_records import MemoryRecords

FETCH, FETCH_VERSION = 1, 4  # the oldest version that Apache Kafka 4 still answers, and the simplest
BATCH = struct.Struct(">qiibIhiqqqhii")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MARKERS = {0: "abort", 1: "commit"}
CLIENT_ID = b"interop-stage"
TIMEOUT = 20.0
NOT_YET = (3, 5, 6)  # unknown topic, no leader, not the leader


class NotYet(RuntimeError):
    """The topic was made a moment ago, and has no leader so far."""


class Batch(NamedTuple):
    """The header of one record batch, and of a marker which one it is."""

    base_offset: int
    codec: str
    append_time: bool
    transactional: bool
    control: bool
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    marker: str = ""


class Record(NamedTuple):
    """A record as programs report it, see interop/README.md."""

    partition: int
    offset: int
    key: str | None
    value: str | None
    headers: list[list[str | None]]
    timestamp: int


class Log(NamedTuple):
    """One partition: every batch, and the records of those that are not markers."""

    batches: list[Batch]
    records: list[Record]


def fetch_log(bootstrap: str, topic: str, partition: int) -> Log:
    """All of a partition that is small enough for one answer, open and aborted transactions too."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            stored = records_of(ask(bootstrap, topic.encode(), partition), topic.encode())
            return Log(list(batches(stored)), list(records(stored, partition)))
        except NotYet:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def ask(bootstrap: str, name: bytes, partition: int) -> bytes:
    body = struct.pack(">iiiib", -1, 100, 1, 50_000_000, 0)
    body += struct.pack(">ih", 1, len(name)) + name + struct.pack(">iiqi", 1, partition, 0, 50_000_000)
    header = struct.pack(">hhih", FETCH, FETCH_VERSION, 1, len(CLIENT_ID)) + CLIENT_ID
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=TIMEOUT) as connection:
        connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        (size,) = struct.unpack(">i", receive(connection, 4))
        return receive(connection, size)


def receive(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        got = connection.recv(size - len(parts))
        if not got:
            raise ConnectionError("the broker closed the connection")
        parts += got
    return bytes(parts)


def records_of(answer: bytes, name: bytes) -> bytes:
    """The records of the one partition in an answer."""
    # Correlation id, throttle time, one topic and its name, one partition.
    position = 4 + 4 + 4 + 2 + len(name) + 4
    _partition, error, _high_watermark, _last_stable, aborted = struct.unpack_from(">ihqqi", answer, position)
    if error:
        raise (NotYet if error in NOT_YET else RuntimeError)(
            f"fetching {name.decode()} as a witness: error {error}"
        )
    position += struct.calcsize(">ihqqi") + max(aborted, 0) * 16
    (size,) = struct.unpack_from(">i", answer, position)
    return answer[position + 4 : position + 4 + max(size, 0)]


def batches(stored: bytes) -> Iterator[Batch]:
    position = 0
    while position + BATCH.size <= len(stored):
        fields = BATCH.unpack_from(stored, position)
        base_offset, size, attributes = fields[0], fields[1], fields[5]
        end = position + 12 + size
        control = bool(attributes & 0x20)
        yield Batch(
            base_offset=base_offset,
            codec=CODECS[attributes & 7],
            append_time=bool(attributes & 0x08),
            transactional=bool(attributes & 0x10),
            control=control,
            producer_id=fields[9],
            producer_epoch=fields[10],
            base_sequence=fields[11],
            record_count=fields[12],
            marker=marker(stored[position:end]) if control else "",
        )
        position = end


def marker(batch: bytes) -> str:
    """A marker's only record has the version of its format and its kind as key."""
    [(_, record)] = parsed(batch)
    return MARKERS[struct.unpack(">hh", record.key)[1]]


def records(stored: bytes, partition: int) -> Iterator[Record]:
    for control, record in parsed(stored):
        if not control:
            headers = [[name, text(value)] for name, value in record.headers]
            yield Record(
                partition, record.offset, text(record.key), text(record.value), headers, record.timestamp
            )


def parsed(stored: bytes) -> Iterator[tuple[bool, Any]]:
    """Every record, and whether it is a marker, as aiokafka reads them."""
    parts: Any = MemoryRecords(stored)
    while parts.has_next():
        batch = parts.next_batch()
        for record in batch:
            yield bool(getattr(batch, "is_control_batch", False)), record


def text(value: bytes | None) -> str | None:
    return None if value is None else bytes(value).decode()
