"""A client that costs next to nothing, so that what is measured is the broker.

Requests are laid out once as bytes (Produce 8, Fetch 11: the last versions without tagged fields) and sent
again and again; of responses only the frames are told apart, and the error codes of the first are checked.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from typing import Self

import crc32c

PRODUCE, FETCH, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 18, 19, 20
SIZE = struct.Struct(">i")


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def frame(api_key: int, version: int, body: bytes) -> bytes:
    head = struct.pack(">hhi", api_key, version, 1) + text("bench")
    return SIZE.pack(len(head) + len(body)) + head + body


def varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def batch(count: int, size: int) -> bytes:
    """A batch of `count` records with a value of `size` bytes each."""
    return batch_of([bytes(size)] * count)


def batch_of(values: Sequence[bytes]) -> bytes:
    records = bytearray()
    count = len(values)
    for delta, value in enumerate(values):
        body = b"\0\0" + varint(delta) + varint(-1) + varint(len(value)) + value + varint(0)
        records += varint(len(body)) + body
    now = round(time.time() * 1000)
    payload = struct.pack(">hiqqqhii", 0, count - 1, now, now, -1, -1, -1, count) + records
    return struct.pack(">qiibI", 0, len(payload) + 9, -1, 2, crc32c.crc32c(payload)) + payload


def produce_frame(topic: str, records: bytes, *, acks: int = 1, partition: int = 0) -> bytes:
    body = struct.pack(">hhii", -1, acks, 30_000, 1) + text(topic)
    body += struct.pack(">iii", 1, partition, len(records)) + records
    return frame(PRODUCE, 8, body)


def fetch_frame(
    topic: str, offset: int, *, partition_max_bytes: int, max_wait_ms: int = 0, partition: int = 0
) -> bytes:
    body = struct.pack(">iiiibii", -1, max_wait_ms, 1, 100_000_000, 0, 0, -1)
    body += SIZE.pack(1) + text(topic)
    body += struct.pack(">iiiqqi", 1, partition, -1, offset, -1, partition_max_bytes)
    return frame(FETCH, 11, body + SIZE.pack(0) + text(""))


def create_topic_frame(topic: str, partitions: int) -> bytes:
    body = SIZE.pack(1) + text(topic) + struct.pack(">ihii", partitions, 1, 0, 0)
    return frame(CREATE_TOPICS, 4, body + struct.pack(">ib", 30_000, 0))


class Connection:
    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = memoryview(b"")

    def ask(self, request: bytes) -> bytes:
        """The body of the response, after its correlation id."""
        self.socket.sendall(request)
        return self.receive()

    def receive(self) -> bytes:
        """The body of the next response."""
        (size,) = SIZE.unpack(self._exactly(4))
        return self._exactly(size)[4:]

    def pipeline(self, requests: bytes | bytearray, count: int) -> int:
        """Sends `count` requests at once and reads as many responses; returns the bytes that came."""
        self.socket.sendall(requests)
        return self.skip_frames(count)

    def skip_frames(self, count: int) -> int:
        """Reads `count` frames without looking into them; returns their bytes."""
        if not self.buffer:  # not for connections that only wait: ten thousand of these would be 40 GB
            self.buffer = memoryview(bytearray(4 << 20))
        total = position = end = 0
        left = -1  # bytes to come of the frame at hand; below zero between frames
        while count:
            if left < 0 and end - position >= 4:
                (left,) = SIZE.unpack_from(self.buffer, position)
                position += 4
            if left >= 0:
                step = min(left, end - position)
                position, left = position + step, left - step
                if left == 0:
                    count, left = count - 1, -1
                    continue
            # The buffer is used up, but for a part of the next size.
            rest = end - position
            self.buffer[:rest] = bytes(self.buffer[position:end])
            got = self.socket.recv_into(self.buffer[rest:])
            if got == 0:
                raise ConnectionError("the broker closed the connection")
            position, end, total = 0, rest + got, total + got
        return total

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            chunk = self.socket.recv(size - len(parts))
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            parts += chunk
        return bytes(parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def create_topic(address: tuple[str, int], topic: str, partitions: int = 1) -> None:
    """Returns when the first produce request is taken."""
    with Connection(address) as connection:
        connection.ask(create_topic_frame(topic, partitions))
        for partition in range(partitions):
            request = produce_frame(topic, batch(1, 1), partition=partition)
            deadline = time.monotonic() + 30
            while produce_error(connection.ask(request), topic) != 0:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{topic} takes no records")


def delete_topic(address: tuple[str, int], topic: str) -> None:
    """A bench writes more than a disk may hold at once."""
    with Connection(address) as connection:
        connection.ask(frame(DELETE_TOPICS, 1, SIZE.pack(1) + text(topic) + SIZE.pack(30_000)))


def produce_error(response: bytes, topic: str) -> int:
    (error,) = struct.unpack_from(">h", response, 4 + len(text(topic)) + 8)
    return int(error)


def fetch_error(response: bytes, topic: str) -> int:
    (error,) = struct.unpack_from(">h", response, 10 + 4 + len(text(topic)) + 8)
    return int(error)
