"""What a broker holds, seen without the client under test: record batches as the bytes say."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

FETCH, FETCH_VERSION = 1, 4  # the oldest version that Apache Kafka 4 still answers, and the simplest
BATCH = struct.Struct(">qiibIhiqqqhii")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMEOUT = 20.0


class Batch(NamedTuple):
    """The header of one record batch."""

    base_offset: int
    codec: str
    transactional: bool
    control: bool
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


def fetch_batches(bootstrap: str, topic: str, partition: int) -> list[Batch]:
    """Every batch of a partition that is small enough for one answer."""
    name = topic.encode()
    body = struct.pack(">iiiib", -1, 100, 1, 50_000_000, 0)
    body += struct.pack(">ih", 1, len(name)) + name + struct.pack(">iiqi", 1, partition, 0, 50_000_000)
    header = struct.pack(">hhih", FETCH, FETCH_VERSION, 1, -1)
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=TIMEOUT) as connection:
        connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        (size,) = struct.unpack(">i", receive(connection, 4))
        answer = receive(connection, size)
    return list(batches(records_of(answer, name)))


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
        raise RuntimeError(f"fetching {name.decode()} as a witness: error {error}")
    position += struct.calcsize(">ihqqi") + max(aborted, 0) * 16
    (size,) = struct.unpack_from(">i", answer, position)
    return answer[position + 4 : position + 4 + max(size, 0)]


def batches(records: bytes) -> Iterator[Batch]:
    position = 0
    while position + BATCH.size <= len(records):
        fields = BATCH.unpack_from(records, position)
        base_offset, size, attributes = fields[0], fields[1], fields[5]
        yield Batch(
            base_offset=base_offset,
            codec=CODECS[attributes & 7],
            transactional=bool(attributes & 0x10),
            control=bool(attributes & 0x20),
            producer_id=fields[9],
            producer_epoch=fields[10],
            base_sequence=fields[11],
            record_count=fields[12],
        )
        position += 12 + size
