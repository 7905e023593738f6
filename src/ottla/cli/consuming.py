"""Reading records and printing them, alone or as a member of a group."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ottla.cli.formatting import Format
from ottla.cli.given_values import partitions_of
from ottla.cli.running import Refused
from ottla.cli.times import local_now, parse_time
from ottla.client import group_admin, offsets
from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer, Fetched, Reset
from ottla.client.group import GroupMember
from ottla.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.core.types import TopicPartition
from ottla.protocol.errors import IllegalGeneration, RebalanceInProgress, UnknownMemberId

LAST_COMMIT_SECONDS: Final = 5.0
# How often to see whether a topic that is followed has been given more partitions.
LOOK_AGAIN_SECONDS: Final = 2.0

_NO_LONGER_OURS: Final = (RebalanceInProgress, IllegalGeneration, UnknownMemberId)


@dataclass(slots=True)
class Reading:
    """What to read, from where, how far, and how to print it."""

    topics: list[str]
    include: re.Pattern[str] | None
    partitions: list[int]
    output: Format
    from_end: bool
    offset: int | None
    time: str | None
    count: int | None
    follow: bool
    committed_only: bool

    @property
    def isolation(self) -> int:
        return READ_COMMITTED if self.committed_only else READ_UNCOMMITTED

    @property
    def is_enough(self) -> bool:
        return self.count is not None and self.count <= 0

    async def find(self, cluster: Cluster) -> list[TopicPartition]:
        """The partitions that are meant, as far as they exist now."""
        if self.include is None:
            return await partitions_of(cluster, self.topics, self.partitions)
        names = [each.name for each in await cluster.all_topics() if not each.is_internal]
        found = await partitions_of(cluster, filter(self.include.fullmatch, names))
        if not found and not self.follow:
            raise Refused(
                f"no topic matches --include {self.include.pattern}; `ottla topic list` shows those there are"
            )
        return [each for each in found if not self.partitions or each.partition in self.partitions]

    def consumer(self, cluster: Cluster) -> Consumer:
        reset = Reset.LATEST if self.from_end else Reset.EARLIEST
        return Consumer(cluster, isolation=self.isolation, reset=reset)

    def print(self, fetched: list[Fetched]) -> dict[TopicPartition, int]:
        """Print what came, up to the count; answers how far each partition has been printed."""
        printed = {}
        out = sys.stdout.buffer
        for each in fetched:
            records = each.records if self.count is None else each.records[: self.count]
            for record in records:
                out.write(self.output(each.partition, record))
            whole = len(records) == len(each.records)
            if whole or records:
                printed[each.partition] = each.position if whole else records[-1].offset + 1
            if self.count is not None:
                self.count -= len(records)
        out.flush()
        return printed


class Growth:
    """Looks now and then whether there are partitions to read that were not there before."""

    def __init__(self, cluster: Cluster, reading: Reading, known: Iterable[TopicPartition]) -> None:
        self._cluster, self._reading, self._known = cluster, reading, set(known)
        self._clock = asyncio.get_running_loop().time
        self._look_at = self._clock() + LOOK_AGAIN_SECONDS

    async def new(self) -> list[TopicPartition]:
        """Those that have come since; none while it is too early to look again."""
        if self._clock() < self._look_at:
            return []
        if self._reading.include is None:  # which looks at all topics anyway
            await self._cluster.persist(lambda: self._cluster.refresh(self._reading.topics))
        found = [p for p in await self._reading.find(self._cluster) if p not in self._known]
        self._known.update(found)
        self._look_at = self._clock() + LOOK_AGAIN_SECONDS
        return found


async def consume_partitions(cluster: Cluster, reading: Reading) -> None:
    """Read partitions from where it was said, to their ends as they are now or for ever."""
    partitions = await reading.find(cluster)
    growth = Growth(cluster, reading, partitions)
    ends = await offsets.ends(cluster, partitions, isolation=reading.isolation)
    starts = await _starts(cluster, reading, ends)
    consumer = reading.consumer(cluster)
    consumer.assign(starts if reading.follow else {p: at for p, at in starts.items() if at < ends[p]})
    while (consumer.positions or reading.follow) and not reading.is_enough:
        fetched = await consumer.poll()
        if not reading.follow:
            fetched = [_until(each, ends[each.partition]) for each in fetched]
        reading.print(fetched)
        if not reading.follow:
            for partition, position in list(consumer.positions.items()):
                if position >= ends[partition]:
                    consumer.drop(partition)
        elif new := await growth.new():
            # From their beginning, wherever we started with the others: all that they hold is news.
            consumer.assign(consumer.positions | await offsets.beginnings(cluster, new))


async def _starts(
    cluster: Cluster, reading: Reading, ends: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    if reading.from_end:
        return ends
    if reading.time is not None:
        return await offsets.at_time(cluster, ends, parse_time(reading.time, local_now()))
    begins = await offsets.beginnings(cluster, ends)
    if reading.offset is None:
        return begins
    if reading.offset < 0:
        return {p: max(begins[p], end + reading.offset) for p, end in ends.items()}
    return {p: max(begins[p], reading.offset) for p in ends}


async def consume_group(cluster: Cluster, group_id: str, reading: Reading, commit: bool) -> None:
    """Read what the group gives us, from where it left off; what has been printed is committed."""
    begun_with = await reading.find(cluster)
    growth = Growth(cluster, reading, begun_with)
    consumer = reading.consumer(cluster)
    async with GroupMember(cluster, group_id, [each.topic for each in begun_with]) as member:
        printed: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, int] = {}
        try:
            while not reading.is_enough:
                if member.must_rejoin:
                    assigned = await member.join()
                    ends = await offsets.ends(cluster, assigned, isolation=reading.isolation)
                    committed = await group_admin.committed_offsets(cluster, group_id)
                    starts = await _where_to_start(cluster, reading, set(ends) - set(committed), begun_with)
                    consumer.assign({p: committed.get(p, starts.get(p, 0)) for p in ends})
                if not reading.follow and all(at >= ends[p] for p, at in consumer.positions.items()):
                    return
                printed = reading.print(await consumer.poll())
                if commit:
                    await _commit(member, printed)
                    printed = {}
                if reading.follow and (new := await growth.new()):
                    member.topics = sorted({*member.topics, *(each.topic for each in new)})
                    member.rebalancing.set()  # the group has to share them out
        finally:
            # An interrupt may come between printing and committing.
            if commit and printed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LAST_COMMIT_SECONDS):
                        await _commit(member, printed)


async def _commit(member: GroupMember, printed: dict[TopicPartition, int]) -> None:
    with suppress(*_NO_LONGER_OURS):  # whoever has them now reads these records again
        await member.commit(printed)


async def _where_to_start(
    cluster: Cluster, reading: Reading, new: set[TopicPartition], begun_with: list[TopicPartition]
) -> dict[TopicPartition, int]:
    """Where a group begins with partitions in which it has committed nothing."""
    at_end = new.intersection(begun_with) if reading.from_end else set()
    return await offsets.ends(cluster, at_end) | await offsets.beginnings(cluster, new - at_end)


def _until(fetched: Fetched, end: int) -> Fetched:
    """Without what was written after we began."""
    if fetched.position <= end:
        return fetched
    return fetched._replace(records=[each for each in fetched.records if each.offset < end])
