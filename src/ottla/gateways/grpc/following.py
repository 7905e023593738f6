"""The partitions of a topic, read side by side as messages come."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ottla.gateways.session import EARLIEST, Session, share_of_bytes
from ottla.protocol.batch import Record
from ottla.protocol.errors import KafkaError

READ_MESSAGES: Final = 10_000
READ_WAIT_MS: Final = 30_000
# Reads of all partitions together that wait to be sent.
READS_WAITING_MAX: Final = 2
# How often to see whether the topic has been given more partitions.
LOOK_AGAIN_SECONDS: Final = 2.0


class Following:
    def __init__(self, session: Session, topic: str) -> None:
        self._session = session
        self._topic = topic
        self._reads: asyncio.Queue[tuple[int, list[Record]] | KafkaError] = asyncio.Queue(READS_WAITING_MAX)
        self._reading: dict[int, asyncio.Task[None]] = {}
        self._growing: asyncio.Task[None] | None = None

    def begin(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on."""
        share = share_of_bytes(len(self._reading) + len(offsets))
        for partition, offset in offsets.items():
            self._reading[partition] = asyncio.create_task(self._read(partition, offset, share))

    def grow(self) -> None:
        """Read partitions too that the topic is given from now on."""
        self._growing = asyncio.create_task(self._grow())

    async def next(self) -> tuple[int, list[Record]]:
        """A partition and what has come there. Raises the KafkaError for which one cannot be read."""
        found = await self._reads.get()
        if isinstance(found, KafkaError):
            raise found
        return found

    async def close(self) -> None:
        tasks = [*self._reading.values(), *([self._growing] if self._growing else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, partition: int, offset: int, max_bytes: int) -> None:
        try:
            while True:
                found = await self._session.read(
                    self._topic,
                    partition,
                    offset,
                    max_records=READ_MESSAGES,
                    max_bytes=max_bytes,
                    wait_ms=READ_WAIT_MS,
                )
                offset = found.next_offset
                if found.records:
                    await self._reads.put((partition, found.records))
        except KafkaError as error:
            await self._reads.put(error)

    async def _grow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
            # A topic that is gone is told by those who read it; a partition being made is there next time.
            with suppress(KafkaError):
                partitions = await self._session.partitions(self._topic)
                new = [each for each in partitions if each not in self._reading]
                # From their beginning, wherever the others began: all that they hold is new.
                self.begin({each: await self._session.offset_at(self._topic, each, EARLIEST) for each in new})
