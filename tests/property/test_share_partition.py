"""A share partition against a model that knows each record: deliveries, answers, releases, time, failures.

What holds whatever happens:
- a record is given to one member at a time, never once it is done with, and never beyond the limit;
- the start offset only moves forward, and only past records that are done with;
- a partition made from what was stored agrees with the living one on everything that was stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.config.broker import BrokerSettings
from ottla.core.ids import Uuid
from ottla.core.share import RecordState, SharePartitionKey, StateBatch
from ottla.groups.share_state import ReadState, ShareStateMachine
from ottla.protocol.errors import InvalidRecordState, InvalidRequest
from ottla.replication.share_delivery import BATCH_OPTIMIZED, RECORD_LIMIT, Limits
from ottla.replication.share_partition import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledged,
    SharePartition,
)
from ottla.replication.share_ranges import Write
from ottla.testing.group_scenario import ScenarioTopics
from ottla.testing.shard import MemoryShard

LOCK_MS = 1_000
MEMBERS = st.sampled_from(["a", "b", "c"])
DONE = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
TYPES = st.sampled_from([ACCEPT, ACCEPT, RELEASE, REJECT, GAP, RENEW])


@dataclass
class Fate:
    """What the model knows of one record."""

    state: RecordState = RecordState.AVAILABLE
    count: int = 0
    member: str = ""
    deadline: int = 0
    becoming: RecordState | None = None


class SharePartitions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        topics = ScenarioTopics()
        topics.add("events", 1)
        topic_id = topics.topic_id("events")
        assert isinstance(topic_id, Uuid)
        self.key = SharePartitionKey("group", topic_id, 0)
        broker = BrokerSettings(share_coordinator_snapshot_update_records_per_snapshot=3)
        self.shard = MemoryShard(lambda: ShareStateMachine(0, settings=lambda: broker, topics=topics))
        self.shard.call(lambda machine, now, ticket: machine.initialize(self.key, 1, 0, now))
        self.now = 0
        self.limits = Limits(delivery_count=5, record_locks=40, lock_duration_ms=LOCK_MS)
        self.partition = SharePartition(0, [], lambda: self.limits)
        self.fates: dict[int, Fate] = {}
        self.writes: list[Write] = []
        self.start = 0
        self.batches = [(0, 3)]  # of the log: first and last offset

    @initialize(count=st.sampled_from([2, 2, 3, 5]), locks=st.sampled_from([10, 40]))
    def limit(self, count: int, locks: int) -> None:
        self.limits = Limits(delivery_count=count, record_locks=locks, lock_duration_ms=LOCK_MS)

    # --- what happens --------------------------------------------------------------------

    @rule(sizes=st.lists(st.integers(1, 9), max_size=4))
    def produce(self, sizes: list[int]) -> None:
        for size in sizes:
            end = self.batches[-1][1] + 1
            self.batches.append((end, end + size - 1))

    @rule(
        member=MEMBERS,
        most=st.integers(1, 25),
        batch_size=st.integers(1, 10),
        mode=st.sampled_from([BATCH_OPTIMIZED, RECORD_LIMIT]),
        read=st.integers(1, 6),
    )
    def acquire(self, member: str, most: int, batch_size: int, mode: int, read: int) -> None:
        offset = self.partition.next_fetch_offset()
        could = self.partition.can_acquire()
        batches = [batch for batch in self.batches if batch[1] >= offset][:read]
        given = self.partition.acquire(
            member,
            batches,
            fetch_offset=offset,
            max_records=most,
            batch_size=batch_size,
            mode=mode,
            now_ms=self.now,
        )
        assert bool(given) == (could and bool(batches))
        if mode == RECORD_LIMIT:
            assert sum(last - first + 1 for first, last, _ in given) <= most
        for first, last, count in given:
            for number in range(first, last + 1):
                fate = self.fates.setdefault(number, Fate())
                assert fate.state is RecordState.AVAILABLE
                assert fate.becoming is None
                fate.count += 1
                assert fate.count == count <= self.limits.delivery_count
                fate.state, fate.member = RecordState.ACQUIRED, member
                fate.deadline = self.now + LOCK_MS

    def _held(self, member: str) -> list[int]:
        return [
            number
            for number, fate in sorted(self.fates.items())
            if fate.state is RecordState.ACQUIRED and fate.member == member and fate.becoming is None
        ]

    @rule(member=MEMBERS, data=st.data())
    def acknowledge(self, member: str, data: st.DataObject) -> None:
        held = self._held(member)
        if not held:
            return
        first = data.draw(st.sampled_from(held))
        last = first
        while last + 1 in held and data.draw(st.booleans()):
            last += 1
        if data.draw(st.booleans()):
            types = [data.draw(TYPES)]
        else:
            types = [data.draw(TYPES) for _ in range(first, last + 1)]
        self._begin(self.partition.acknowledge(member, [Acknowledged(first, last, types)], self.now))
        for index, number in enumerate(range(first, last + 1)):
            kind = types[0] if len(types) == 1 else types[index]
            fate = self.fates[number]
            if kind == RENEW:
                fate.deadline = self.now + LOCK_MS
            elif kind == ACCEPT:
                fate.becoming = RecordState.ACKNOWLEDGED
            elif kind == RELEASE and fate.count < self.limits.delivery_count:
                fate.becoming = RecordState.AVAILABLE
            else:
                fate.becoming = RecordState.ARCHIVED

    @precondition(lambda self: self.fates)
    @rule(member=MEMBERS, data=st.data(), size=st.integers(1, 4))
    def acknowledge_anything(self, member: str, data: st.DataObject, size: int) -> None:
        first = data.draw(st.sampled_from(sorted(self.fates)))
        last = first + size - 1
        held = set(self._held(member))
        wanted = [number for number in range(first, last + 1) if number >= self.start]
        if all(number in held for number in wanted):
            return
        before = self.partition.delivery_complete_count
        with pytest.raises((InvalidRecordState, InvalidRequest)):
            self.partition.acknowledge(member, [Acknowledged(first, last, [ACCEPT])], self.now)
        assert self.partition.delivery_complete_count == before

    @rule(member=MEMBERS)
    def release(self, member: str) -> None:
        held = self._held(member)
        self._begin(self.partition.release(member))
        for number in held:
            fate = self.fates[number]
            is_over = fate.count >= self.limits.delivery_count
            fate.becoming = RecordState.ARCHIVED if is_over else RecordState.AVAILABLE

    def _begin(self, write: Write | None) -> None:
        if write is not None:
            self.writes.append(write)

    @precondition(lambda self: self.writes)
    @rule(data=st.data(), is_stored=st.booleans())
    def finish(self, data: st.DataObject, is_stored: bool) -> None:
        write = self.writes.pop(data.draw(st.integers(0, len(self.writes) - 1)))
        if is_stored:
            self._store(write)
            self.partition.written(write)
        else:
            self.partition.failed(write)
        for batch in write.batches:
            for number in range(batch.first_offset, batch.last_offset + 1):
                fate = self.fates[number]
                assert fate.becoming is not None
                if is_stored:
                    fate.state, fate.member = fate.becoming, ""
                fate.becoming = None
        self._advance()
        self.time_passes(0)

    @rule(wait=st.integers(1, 700))
    def time_passes(self, wait: int) -> None:
        self.now += wait
        write = self.partition.expire(self.now)
        late = {
            number
            for number, fate in self.fates.items()
            if fate.state is RecordState.ACQUIRED and fate.becoming is None and fate.deadline <= self.now
        }
        expired = set()
        for batch in write.batches if write is not None else []:
            expired |= set(range(batch.first_offset, batch.last_offset + 1))
        assert expired == late
        for number in late:
            self._time_out(self.fates[number])
        if write is not None:
            self._store(write)
        self._advance()
        deadline = self.partition.deadline()
        assert deadline is None or deadline > self.now

    def _time_out(self, fate: Fate) -> None:
        is_over = fate.count >= self.limits.delivery_count
        fate.state, fate.member = (RecordState.ARCHIVED if is_over else RecordState.AVAILABLE), ""

    def _store(self, write: Write) -> None:
        self.shard.call(
            lambda machine, now, ticket: machine.write(
                self.key,
                state_epoch=1,
                leader_epoch=0,
                start_offset=write.start_offset,
                delivery_complete_count=write.delivery_complete_count,
                batches=write.batches,
                now=now,
            )
        )

    @rule()
    def fail_over(self) -> None:
        """A new leader knows what was stored; what was only delivered is available once more."""
        if self.writes:
            return
        self.shard.restart()
        read = self.shard.call(lambda machine, now, ticket: machine.read(self.key, 0, now))
        assert isinstance(read, ReadState)
        again = SharePartition(read.start_offset, read.batches, lambda: self.limits)
        self.partition = again
        for fate in self.fates.values():
            if fate.state is RecordState.ACQUIRED:
                # Of this delivery nothing was stored, so it does not count.
                fate.state, fate.member, fate.count = RecordState.AVAILABLE, "", fate.count - 1
        assert _decided(again.stored()) == {
            number: (fate.state, fate.count)
            for number, fate in self.fates.items()
            if number >= self.start and fate.count
        }

    # --- what holds ----------------------------------------------------------------------

    def _advance(self) -> None:
        while (fate := self.fates.get(self.start)) is not None:
            if fate.state not in DONE or fate.becoming is not None:
                break
            self.start += 1

    @invariant()
    def the_start_is_where_work_is_left(self) -> None:
        assert self.partition.start_offset == self.start

    @invariant()
    def what_is_done_is_counted(self) -> None:
        done = [
            number
            for number, fate in self.fates.items()
            if number >= self.start and (fate.state in DONE or fate.becoming in DONE)
        ]
        assert self.partition.delivery_complete_count == len(done)

    @invariant()
    def the_next_to_deliver_is_the_first_available(self) -> None:
        end = self.partition.end_offset
        available = [
            number
            for number in range(self.start, end)
            if self.fates.get(number, Fate()).state is RecordState.AVAILABLE
        ]
        assert self.partition.next_fetch_offset() == (available[0] if available else end)


def _decided(batches: list[StateBatch]) -> dict[int, tuple[int, int]]:
    return {
        number: (batch.delivery_state, batch.delivery_count)
        for batch in batches
        for number in range(batch.first_offset, batch.last_offset + 1)
    }


TestSharePartitions = SharePartitions.TestCase
TestSharePartitions.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
