"""Reading partitions: what was assigned, from where it was told to, batch by batch.

There are no fetch sessions: each poll names every partition. That costs a few bytes and means that nothing
has to be agreed upon again after an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from enum import StrEnum
from struct import Struct
from typing import Final, NamedTuple

from ottla.client import offsets
from ottla.client.cluster import Cluster, Purpose
from ottla.client.errors import check
from ottla.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.core.types import TopicPartition
from ottla.protocol.batch import BatchHeader, Record, crc_ok, iter_batches, read_records
from ottla.protocol.errors import CorruptMessage, OffsetOutOfRange
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

MAX_BYTES: Final = 16 * 1024 * 1024
"""What one broker may answer at once; with `PARTITION_BYTES`, the bound on what a poll holds in memory."""
PARTITION_BYTES: Final = 4 * 1024 * 1024
_CONTROL_TYPE: Final = Struct(">hh").unpack_from
_ABORT: Final = 0


class Reset(StrEnum):
    """Where to go on when the records wanted are gone, or were never there."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


class Fetched(NamedTuple):
    """The records of one partition that one poll brought. They may be none: a batch may hold only what
    readers do not see, but the position moves on."""

    partition: TopicPartition
    records: list[Record]
    position: int
    high_watermark: int


class Consumer:
    """`consumer.assign({partition: offset})`, then `await consumer.poll()` again and again."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        isolation: int = READ_UNCOMMITTED,
        reset: Reset = Reset.EARLIEST,
        max_bytes: int = MAX_BYTES,
        partition_bytes: int = PARTITION_BYTES,
        verify: bool = True,
    ) -> None:
        self.cluster = cluster
        self.isolation, self.reset, self.verify = isolation, reset, verify
        self.max_bytes, self.partition_bytes = max_bytes, partition_bytes
        self.positions: dict[TopicPartition, int] = {}

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets on, and no others."""
        self.positions = dict(positions)

    def drop(self, partition: TopicPartition) -> None:
        self.positions.pop(partition, None)

    async def poll(self, wait_ms: int = 500) -> list[Fetched]:
        """What has come in: at once if there is anything, else when something comes or the wait is over."""
        if not self.positions:
            await asyncio.sleep(wait_ms / 1000)
            return []
        return await self.cluster.persist(lambda: self._poll(wait_ms))

    async def _poll(self, wait_ms: int) -> list[Fetched]:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in self.positions:
            by_leader.setdefault(await self.cluster.leader(partition), []).append(partition)
        if len(by_leader) > 1:
            # The slowest answers last, and one with nothing new waits; the others should not wait with it.
            wait_ms = min(wait_ms, 100)
        asked = (self._fetch(leader, partitions, wait_ms) for leader, partitions in by_leader.items())
        answers = await asyncio.gather(*asked)
        fetched = []
        for partition, data in (pair for answer in answers for pair in answer):
            if data.error_code == OffsetOutOfRange.code and self.reset is not Reset.NONE:
                await self._reset(partition)
                continue
            check(data.error_code, f"partition {partition}")
            fetched.append(self._take(partition, data))
        # Only now, so that a poll that fails half way is made again as a whole.
        for each in fetched:
            self.positions[each.partition] = each.position
        return fetched

    async def _fetch(
        self, leader: int, partitions: list[TopicPartition], wait_ms: int
    ) -> list[tuple[TopicPartition, PartitionData]]:
        topics: dict[str, FetchTopic] = {}
        for each in partitions:
            topic = topics.get(each.topic)
            if topic is None:
                known = await self.cluster.topic(each.topic)
                topic = topics[each.topic] = FetchTopic(topic=each.topic, topic_id=known.id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=each.partition,
                    fetch_offset=self.positions[each],
                    partition_max_bytes=self.partition_bytes,
                )
            )
        # Turns, so that with more data than fits an answer no partition has to wait for the others' end.
        self._rotate(partitions)
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=self.max_bytes,
            isolation_level=self.isolation,
            topics=list(topics.values()),
        )
        connection = await self.cluster.broker(leader, Purpose.FETCH)
        patience = self.cluster.timeout + wait_ms / 1000
        response = await connection.ask(request, FetchResponse, within=patience)
        check(response.error_code, "fetching")
        found = []
        for answered in response.responses:
            name = answered.topic or self.cluster.name_of(answered.topic_id) or ""
            found += [(TopicPartition(name, data.partition_index), data) for data in answered.partitions]
        return found

    def _rotate(self, partitions: list[TopicPartition]) -> None:
        first = partitions[0]
        self.positions[first] = self.positions.pop(first)

    async def _reset(self, partition: TopicPartition) -> None:
        where = offsets.beginnings if self.reset is Reset.EARLIEST else offsets.ends
        self.positions.update(await where(self.cluster, [partition]))

    def _take(self, partition: TopicPartition, data: PartitionData) -> Fetched:
        position = self.positions[partition]
        records: list[Record] = []
        aborted = _Aborted(data) if self.isolation == READ_COMMITTED else None
        for header, batch in iter_batches(data.records or b""):
            if self.verify and not crc_ok(batch):
                raise CorruptMessage(
                    f"partition {partition}: the batch at offset {header.base_offset} is damaged"
                )
            hidden = header.is_control or (aborted is not None and aborted.hides(header))
            if not hidden:
                records += (each for each in read_records(batch) if each.offset >= position)
            elif aborted is not None and header.is_control:
                aborted.ended(header, read_records(batch))
            position = max(position, header.last_offset + 1)
        return Fetched(partition, records, position, data.high_watermark)


class _Aborted:
    """Which batches of an answer belong to transactions that were aborted."""

    def __init__(self, data: PartitionData) -> None:
        starts = sorted((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
        self._starts: Iterator[tuple[int, int]] = iter(starts)
        self._next = next(self._starts, None)
        self._open: set[int] = set()

    def hides(self, header: BatchHeader) -> bool:
        self._begin(header.last_offset)
        return header.is_transactional and header.producer_id in self._open

    def ended(self, header: BatchHeader, markers: list[Record]) -> None:
        self._begin(header.last_offset)
        for marker in markers:
            if marker.key is not None and _CONTROL_TYPE(marker.key)[1] == _ABORT:
                self._open.discard(header.producer_id)

    def _begin(self, last_offset: int) -> None:
        while self._next is not None and self._next[0] <= last_offset:
            self._open.add(self._next[1])
            self._next = next(self._starts, None)
