"""Lines from stdin or files, sent as records."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ottla.cli.given_values import no_partition
from ottla.cli.output import plural, print_json_line
from ottla.cli.running import Misused
from ottla.client.cluster import Cluster
from ottla.client.producer import Delivery, Producer

_CHUNK: Final = 64 * 1024
_UNTOLD: Final = 10_000
"""Deliveries that may wait to be printed before sending waits for them."""


@dataclass(slots=True)
class Sending:
    """What to send, and how."""

    topic: str
    files: list[Path]
    key: bytes | None
    separator: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None
    whole: bool
    null: bool
    acks: int
    codec: int
    rate: float | None
    create: bool
    tell: bool

    def split(self, line: bytes) -> tuple[bytes | None, bytes | None]:
        """Key and value of a line."""
        key, value = self.key, line
        if self.separator is not None:
            key, found, value = line.partition(self.separator)
            if not found:
                shown = self.separator.decode("utf-8", "replace")
                raise Misused(f"--key-separator {shown!r} is not in the line {line[:60]!r}")
        return key, None if self.null and not value else value


async def send_everything(cluster: Cluster, sending: Sending) -> None:
    if sending.partition is not None:
        topic = await cluster.topic(sending.topic, create=sending.create)
        if sending.partition not in topic.partitions:
            raise no_partition(topic, sending.partition)
    count = 0
    clock = asyncio.get_running_loop().time
    began = clock()
    untold: deque[Delivery] = deque()
    async with Producer(cluster, acks=sending.acks, codec=sending.codec, create=sending.create) as producer:
        async for line in _records(sending):
            key, value = sending.split(line)
            if sending.rate is not None:
                await asyncio.sleep(began + count / sending.rate - clock())
            delivery = await producer.send(
                sending.topic, value, key=key, headers=sending.headers, partition=sending.partition
            )
            count += 1
            if producer.has_failed:
                break
            if sending.tell:
                untold.append(delivery)
                if len(untold) >= _UNTOLD:
                    await _tell(sending.topic, untold)
        await producer.flush()
        await _tell(sending.topic, untold)
    if not sending.tell and sys.stderr.isatty():
        print(f"sent {plural(count, 'record')} to {sending.topic}", file=sys.stderr)


async def _tell(topic: str, untold: deque[Delivery]) -> None:
    while untold:
        delivery = untold.popleft()
        offset = await delivery.offset()
        print_json_line({"topic": topic, "partition": delivery.partition, "offset": offset})


async def _records(sending: Sending) -> AsyncIterator[bytes]:
    if sending.whole:
        for path in sending.files:
            yield path.read_bytes()
        if not sending.files:
            yield b"".join([chunk async for chunk in _stdin()])
        return
    if not sending.files:
        async for line in _lines(_stdin()):
            yield line
    for path in sending.files:
        with path.open("rb") as file:
            for line in file:
                yield line.removesuffix(b"\n").removesuffix(b"\r")


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest


async def _stdin() -> AsyncIterator[bytes]:
    """Stdin as it comes. A thread reads it, since a pipe or terminal may have nothing for a long time."""
    try:
        fd = sys.stdin.fileno()
    except (OSError, ValueError):  # not a file: a program has put something in its place
        yield sys.stdin.buffer.read()
        return
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue(maxsize=8)

    def read() -> None:
        chunk = b"first"
        while chunk:
            try:
                chunk = os.read(fd, _CHUNK)
            except OSError:
                chunk = b""
            putting = chunks.put(chunk)
            try:
                asyncio.run_coroutine_threadsafe(putting, loop).result()
            except (RuntimeError, CancelledError):  # the loop is gone, and with it whoever wanted this
                putting.close()
                return

    # A daemon: when we are interrupted, nobody waits for the next line to be typed.
    threading.Thread(target=read, name="stdin", daemon=True).start()
    while chunk := await chunks.get():
        yield chunk
