"""The coordinator of share state: its records byte for byte, its epochs, its snapshots and its pruning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.config.broker import BrokerSettings
from ottla.core.ids import Uuid
from ottla.core.outcome import LogRecord
from ottla.core.share import SharePartitionKey, StateBatch
from ottla.groups.share_state import Prune, ReadState, ShareStateMachine, Summary
from ottla.protocol.errors import (
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
    KafkaError,
    UnknownTopicOrPartition,
)
from ottla.testing.group_scenario import ScenarioTopics
from ottla.testing.shard import START_MS, MemoryShard, Written

PRUNE_MS, COLD_MS = 300_000, 300_000


class Coordinator:
    """One shard, and two topics with two partitions."""

    def __init__(self, updates_per_snapshot: int = 500) -> None:
        self.topics = ScenarioTopics()
        self.topics.add("a", 2)
        self.topics.add("b", 2)
        settings = BrokerSettings(
            share_coordinator_snapshot_update_records_per_snapshot=updates_per_snapshot,
            share_coordinator_state_topic_prune_interval_ms=PRUNE_MS,
            share_coordinator_cold_partition_snapshot_interval_ms=COLD_MS,
        )
        self.shard = MemoryShard(lambda: ShareStateMachine(7, settings=lambda: settings, topics=self.topics))

    def key(self, topic: str = "a", partition: int = 0, group: str = "g") -> SharePartitionKey:
        topic_id = self.topics.topic_id(topic)
        assert topic_id is not None
        return SharePartitionKey(group, topic_id, partition)

    def initialize(self, key: SharePartitionKey, state_epoch: int = 1, start_offset: int = -1) -> None:
        self.shard.call(lambda machine, now, _: machine.initialize(key, state_epoch, start_offset, now))

    def write(self, key: SharePartitionKey, *batches: tuple[int, int, int, int], **values: Any) -> None:
        given = {
            "state_epoch": 1,
            "leader_epoch": 0,
            "start_offset": 0,
            "delivery_complete_count": 0,
        } | values
        self.shard.call(
            lambda machine, now, _: machine.write(
                key, batches=[StateBatch(*each) for each in batches], now=now, **given
            )
        )

    def read(self, key: SharePartitionKey, leader_epoch: int = 0) -> ReadState:
        state: ReadState = self.shard.call(lambda machine, now, _: machine.read(key, leader_epoch, now))
        return state

    def summary(self, key: SharePartitionKey) -> Summary:
        summary: Summary = self.shard.call(lambda machine, now, _: machine.read_summary(key))
        return summary

    def delete(self, key: SharePartitionKey) -> None:
        self.shard.call(lambda machine, now, _: machine.delete(key, now))

    def take_records(self) -> list[LogRecord]:
        return [each.record for each in self.shard.take_news() if isinstance(each, Written)]


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


def test_records_are_those_that_kafka_writes() -> None:
    """The first three records of a share group, as Apache Kafka 4.3.0 wrote them."""
    topics = ScenarioTopics()
    topics.add("kp", 1)
    topic_id = Uuid.parse("NEYSHIzeTBmWA-lggU-9bg")
    topics._ids["kp"] = topic_id
    key = SharePartitionKey("sg", topic_id, 0)
    shard = MemoryShard(lambda: ShareStateMachine(15, settings=lambda: BrokerSettings(), topics=topics))
    shard.elapsed_ms = 1_794_779_067_957 - START_MS
    shard.call(lambda machine, now, _: machine.initialize(key, 2, -1, now))

    def write(start: int, complete: int, *batches: StateBatch) -> None:
        shard.call(
            lambda machine, now, _: machine.write(
                key,
                state_epoch=2,
                leader_epoch=0,
                start_offset=start,
                delivery_complete_count=complete,
                batches=batches,
                now=now,
            )
        )

    write(0, 5, *(StateBatch(offset, offset, 2, 1) for offset in range(5)))
    write(5, 0, *(StateBatch(offset, offset, 0, 1) for offset in range(5, 10)))
    name = b"\x00\x02sg" + topic_id + b"\x00\x00\x00\x00"
    time = (1_794_779_067_957).to_bytes(8, "big")
    assert [each.record for each in shard.log if isinstance(each, Written)] == [
        LogRecord(
            b"\x00\x00" + name,
            bytes.fromhex("0000 00000000 00000002 00000000 ffffffffffffffff") + time + time + b"\x01\x00",
        ),
        LogRecord(
            b"\x00\x01" + name,
            bytes.fromhex(
                "0000 00000000 00000000 0000000000000000 02"
                "0000000000000000 0000000000000004 02 0001 00"
                "01 00 04 00000005"
            ),
        ),
        LogRecord(
            b"\x00\x01" + name,
            bytes.fromhex(
                "0000 00000000 00000000 0000000000000005 02"
                "0000000000000005 0000000000000009 00 0001 00"
                "01 00 04 00000000"
            ),
        ),
    ]


def test_what_is_written_is_read_and_survives(coordinator: Coordinator) -> None:
    key = coordinator.key()
    coordinator.initialize(key, 3)
    assert coordinator.read(key) == ReadState(3, -1, [])
    coordinator.write(key, (0, 4, 2, 1), state_epoch=3, delivery_complete_count=5)
    coordinator.write(key, (5, 9, 0, 1), state_epoch=3, start_offset=2)
    expected = ReadState(3, 2, [StateBatch(2, 4, 2, 1), StateBatch(5, 9, 0, 1)])
    assert coordinator.read(key) == expected
    coordinator.shard.restart()
    assert coordinator.read(key) == expected
    assert coordinator.summary(key) == Summary(3, 0, 2, 0)


def test_a_start_offset_that_is_not_given_stays(coordinator: Coordinator) -> None:
    key = coordinator.key()
    coordinator.initialize(key, start_offset=4)
    coordinator.write(key, (3, 9, 0, 1), start_offset=-1)
    assert coordinator.read(key) == ReadState(1, 4, [StateBatch(4, 9, 0, 1)])


def test_partitions_do_not_know_of_each_other(coordinator: Coordinator) -> None:
    one, other = coordinator.key("a", 1), coordinator.key("b", 1)
    coordinator.initialize(one)
    coordinator.initialize(other)
    coordinator.write(one, (0, 4, 2, 1))
    assert coordinator.read(other).batches == []
    coordinator.delete(one)
    assert coordinator.read(other) == ReadState(1, -1, [])
    assert coordinator.summary(one) == Summary()


def test_deleting_what_is_not_there_writes_nothing(coordinator: Coordinator) -> None:
    coordinator.delete(coordinator.key())
    assert coordinator.take_records() == []


def test_initializing_again_begins_anew_with_the_next_snapshot(coordinator: Coordinator) -> None:
    key = coordinator.key()
    coordinator.initialize(key, 1)
    coordinator.write(key, (0, 4, 2, 1))
    coordinator.initialize(key, 2, 7)
    assert coordinator.read(key) == ReadState(2, 7, [])
    assert coordinator.summary(key).delivery_complete_count == 0


def _refused(coordinator: Coordinator, act: Callable[[], object], error: type[KafkaError]) -> None:
    written = len(coordinator.shard.log)
    with pytest.raises(error):
        act()
    assert len(coordinator.shard.log) == written


def test_older_state_epochs_are_fenced(coordinator: Coordinator) -> None:
    key = coordinator.key()
    coordinator.initialize(key, 5)
    _refused(coordinator, lambda: coordinator.initialize(key, 4), FencedStateEpoch)
    _refused(coordinator, lambda: coordinator.write(key, state_epoch=4), FencedStateEpoch)
    coordinator.write(key, state_epoch=-1)
    coordinator.shard.restart()
    _refused(coordinator, lambda: coordinator.write(key, state_epoch=4), FencedStateEpoch)


def test_a_reader_of_a_later_leader_epoch_fences_those_before(coordinator: Coordinator) -> None:
    key = coordinator.key()
    coordinator.initialize(key)
    coordinator.read(key, 0)
    coordinator.take_records()
    coordinator.read(key, 0)
    assert coordinator.take_records() == []  # nothing is new
    coordinator.read(key, 3)
    assert len(coordinator.take_records()) == 1
    _refused(coordinator, lambda: coordinator.read(key, 2), FencedLeaderEpoch)
    _refused(coordinator, lambda: coordinator.write(key, leader_epoch=2), FencedLeaderEpoch)
    coordinator.write(key, leader_epoch=3)
    coordinator.write(key, leader_epoch=-1)
    coordinator.shard.restart()
    _refused(coordinator, lambda: coordinator.write(key, leader_epoch=2), FencedLeaderEpoch)
    # Beginning anew does not let an old leader back in.
    coordinator.initialize(key, 2)
    _refused(coordinator, lambda: coordinator.read(key, 2), FencedLeaderEpoch)


def test_what_was_never_initialized_can_be_neither_read_nor_written(coordinator: Coordinator) -> None:
    key = coordinator.key()
    _refused(coordinator, lambda: coordinator.read(key), InvalidRequest)
    _refused(coordinator, lambda: coordinator.write(key), InvalidRequest)


def test_partitions_that_no_topic_has_are_refused(coordinator: Coordinator) -> None:
    far, negative = coordinator.key(partition=2), coordinator.key(partition=-1)
    _refused(coordinator, lambda: coordinator.initialize(far), UnknownTopicOrPartition)
    _refused(coordinator, lambda: coordinator.delete(far), UnknownTopicOrPartition)
    _refused(coordinator, lambda: coordinator.summary(far), UnknownTopicOrPartition)
    _refused(coordinator, lambda: coordinator.initialize(negative), InvalidRequest)


def _types(records: list[LogRecord]) -> list[int]:
    return [int.from_bytes(each.key[:2], "big") for each in records]


def test_after_so_many_updates_comes_a_snapshot() -> None:
    coordinator = Coordinator(updates_per_snapshot=2)
    key = coordinator.key()
    coordinator.initialize(key)
    for offset in range(6):
        coordinator.write(key, (offset, offset, 2, 1))
    assert _types(coordinator.take_records()) == [0, 1, 1, 0, 1, 1, 0]
    expected = ReadState(1, 0, [StateBatch(0, 5, 2, 1)])
    assert coordinator.read(key) == expected
    coordinator.shard.restart()
    assert coordinator.read(key) == expected
    # The snapshot alone says it all.
    last = coordinator.shard.log[-1]
    assert isinstance(last, Written)
    alone = MemoryShard(
        lambda: ShareStateMachine(0, settings=lambda: BrokerSettings(), topics=coordinator.topics)
    )
    alone.machine.apply(*last)
    assert alone.call(lambda machine, now, _: machine.read(key, 0, now)) == expected


def test_what_was_overtaken_is_asked_to_be_deleted() -> None:
    coordinator = Coordinator(updates_per_snapshot=1)
    one, other = coordinator.key("a"), coordinator.key("b")
    coordinator.initialize(one)  # 0
    coordinator.initialize(other)  # 1
    for offset in range(4):
        coordinator.write(one, (offset, offset, 2, 1))  # the last snapshot is 5
    coordinator.shard.advance(PRUNE_MS - 1)
    assert coordinator.shard.effects == []
    coordinator.shard.advance(1)
    assert coordinator.shard.effects == [Prune(7, 1)]
    coordinator.shard.advance(PRUNE_MS)
    # Both snapshots had become old, and stand later in the log now.
    assert coordinator.shard.effects[1:] == [Prune(7, 6)]
    written = len(coordinator.shard.log)
    coordinator.shard.advance(3 * PRUNE_MS)
    assert coordinator.read(one).batches == [StateBatch(0, 3, 2, 1)]
    assert coordinator.read(other) == ReadState(1, -1, [])
    idle = len(coordinator.shard.log)
    coordinator.shard.advance(10 * PRUNE_MS)
    assert len(coordinator.shard.log) == idle, f"nothing happens, and yet more than {written} was written"


def test_when_nothing_is_left_the_log_is_emptied_up_to_the_last_word(coordinator: Coordinator) -> None:
    key = coordinator.key()
    coordinator.initialize(key)
    coordinator.write(key, (0, 4, 2, 1))
    coordinator.delete(key)
    coordinator.shard.advance(PRUNE_MS)
    assert coordinator.shard.effects == [Prune(7, 2)]


def test_deleted_topics_are_forgotten(coordinator: Coordinator) -> None:
    gone, kept = coordinator.key("a"), coordinator.key("b")
    coordinator.initialize(gone)
    coordinator.initialize(kept)
    coordinator.shard.take(lambda machine, now: machine.topics_deleted([gone.topic_id]))
    _refused(coordinator, lambda: coordinator.read(gone), InvalidRequest)
    coordinator.shard.restart()
    _refused(coordinator, lambda: coordinator.read(gone), InvalidRequest)
    assert coordinator.read(kept) == ReadState(1, -1, [])


def test_records_that_nobody_understands_are_passed_over(coordinator: Coordinator) -> None:
    key = coordinator.key()
    coordinator.initialize(key)
    at = coordinator.shard.log[-1].at  # type: ignore[union-attr]
    for entry in (LogRecord(b"", b""), LogRecord(b"\x00\x07", b"x"), LogRecord(b"\x00\x00", b"\x00\x00")):
        coordinator.shard.machine.apply(entry, at)
    assert coordinator.read(key) == ReadState(1, -1, [])
