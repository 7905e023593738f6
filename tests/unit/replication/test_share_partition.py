"""A share partition by example. tests/property has the same against a model of every record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ottla.core.share import StateBatch
from ottla.protocol.errors import InvalidRecordState, InvalidRequest
from ottla.replication.share_delivery import BATCH_OPTIMIZED, RECORD_LIMIT, Acquired, Limits
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

LIMITS = Limits(delivery_count=5, record_locks=2_000, lock_duration_ms=1_000)


class Partition:
    """A share partition over a log of batches, with a coordinator that stores at once."""

    def __init__(self, start: int = 0, stored: Iterable[StateBatch] = (), limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.machine = SharePartition(start, stored, lambda: self.limits)
        self.log: list[tuple[int, int]] = []
        self.writes: list[Write] = []

    def produce(self, *sizes: int, at: int | None = None) -> None:
        for size in sizes:
            end = self.log[-1][1] + 1 if self.log else 0
            first = end if at is None else at
            self.log.append((first, first + size - 1))

    def fetch(self, member: str = "m", most: int = 500, now: int = 0, **how: Any) -> list[Acquired]:
        offset = self.machine.next_fetch_offset()
        batches = [batch for batch in self.log if batch[1] >= offset]
        given = {"batch_size": 500, "mode": BATCH_OPTIMIZED} | how
        return self.machine.acquire(
            member, batches, fetch_offset=offset, max_records=most, now_ms=now, **given
        )

    def say(self, *said: tuple[int, int, list[int]], member: str = "m", now: int = 0) -> Write | None:
        """Acknowledge; nothing is stored yet."""
        return self.machine.acknowledge(member, [Acknowledged(*each) for each in said], now)

    def acknowledge(self, *said: tuple[int, int, list[int]], member: str = "m") -> None:
        self.store(self.say(*said, member=member))

    def store(self, write: Write | None) -> None:
        if write is not None:
            self.writes.append(write)
            self.machine.written(write)


@pytest.fixture
def partition() -> Partition:
    made = Partition()
    made.produce(10)
    return made


def test_new_records_are_delivered_from_the_start(partition: Partition) -> None:
    assert partition.fetch() == [Acquired(0, 9, 1)]
    assert partition.fetch() == []
    partition.produce(5)
    assert partition.fetch() == [Acquired(10, 14, 1)]
    assert partition.machine.in_flight == 15


def test_the_start_moves_once_what_comes_first_is_stored(partition: Partition) -> None:
    partition.fetch()
    partition.acknowledge((3, 5, [ACCEPT]))
    assert partition.machine.start_offset == 0
    assert partition.machine.delivery_complete_count == 3
    write = partition.say((0, 2, [ACCEPT]))
    assert partition.machine.start_offset == 0
    partition.store(write)
    assert partition.machine.start_offset == 6
    assert partition.machine.delivery_complete_count == 0
    partition.acknowledge((6, 9, [REJECT]))
    assert partition.machine.start_offset == partition.machine.end_offset == 10


def test_a_write_says_what_changed_as_of_the_start_it_was_decided_at(partition: Partition) -> None:
    partition.fetch()
    write = partition.say((0, 4, [ACCEPT]), (7, 9, [RELEASE, GAP, REJECT]))
    assert write is not None
    assert write.batches == [
        StateBatch(0, 4, 2, 1),
        StateBatch(7, 7, 0, 1),
        StateBatch(8, 9, 4, 1),
    ]
    assert (write.start_offset, write.delivery_complete_count) == (0, 7)
    other = partition.say((5, 6, [ACCEPT]))
    assert other is not None
    assert (other.start_offset, other.delivery_complete_count) == (0, 9)


def test_writes_may_be_stored_in_any_order(partition: Partition) -> None:
    partition.fetch()
    first, second = partition.say((0, 4, [ACCEPT])), partition.say((5, 9, [ACCEPT]))
    partition.store(second)
    assert partition.machine.start_offset == 0
    partition.store(first)
    assert partition.machine.start_offset == 10


def test_what_could_not_be_stored_stays_with_the_member(partition: Partition) -> None:
    partition.fetch()
    write = partition.say((0, 9, [ACCEPT]))
    assert write is not None
    partition.machine.failed(write)
    assert partition.machine.delivery_complete_count == 0
    assert partition.fetch("other") == []
    partition.acknowledge((0, 9, [ACCEPT]))
    assert partition.machine.start_offset == 10


def test_a_lock_that_ran_out_while_storing_is_taken_when_that_fails(partition: Partition) -> None:
    partition.fetch(now=0)
    write = partition.say((0, 9, [ACCEPT]))
    assert write is not None
    assert partition.machine.expire(1_000) is None
    partition.machine.failed(write)
    assert partition.machine.deadline() == 1_000
    expired = partition.machine.expire(1_001)
    assert expired is not None
    assert expired.batches == [StateBatch(0, 9, 0, 1)]
    assert partition.fetch("other") == [Acquired(0, 9, 2)]


def test_a_lock_runs_out(partition: Partition) -> None:
    partition.fetch(now=0)
    assert partition.machine.deadline() == 1_000
    assert partition.machine.expire(999) is None
    write = partition.machine.expire(1_000)
    assert write is not None
    assert write.batches == [StateBatch(0, 9, 0, 1)]
    assert partition.machine.deadline() is None
    with pytest.raises(InvalidRecordState):
        partition.say((0, 9, [ACCEPT]))


def test_a_renewed_lock_lasts_and_the_rest_does_not(partition: Partition) -> None:
    partition.fetch(now=0)
    assert partition.say((4, 5, [RENEW]), now=700) is None
    write = partition.machine.expire(1_000)
    assert write is not None
    assert write.batches == [StateBatch(0, 3, 0, 1), StateBatch(6, 9, 0, 1)]
    assert partition.machine.deadline() == 1_700
    partition.acknowledge((4, 5, [ACCEPT]))


def test_renewing_can_be_forbidden(partition: Partition) -> None:
    partition.limits = LIMITS._replace(may_renew=False)
    partition.fetch()
    with pytest.raises(InvalidRecordState, match="not enabled"):
        partition.say((0, 9, [RENEW]))


def test_who_goes_leaves_only_its_own(partition: Partition) -> None:
    partition.produce(10)
    assert partition.fetch("a", 10) == [Acquired(0, 9, 1)]
    assert partition.fetch("b", 10) == [Acquired(10, 19, 1)]
    partition.store(partition.machine.release("a"))
    assert partition.machine.release("a") is None
    assert partition.fetch("b") == [Acquired(0, 9, 2)]


@pytest.mark.parametrize("how", ["release", "expire", "leave"])
def test_a_record_is_given_up_after_so_many_deliveries(partition: Partition, how: str) -> None:
    partition.limits = LIMITS._replace(delivery_count=2)
    partition.produce(10)
    for now in (0, 2_000):
        assert partition.fetch(most=10, now=now) == [Acquired(0, 9, 1 if now == 0 else 2)]
        if how == "release":
            partition.acknowledge((0, 9, [RELEASE]))
        elif how == "leave":
            partition.store(partition.machine.release("m"))
        else:
            assert partition.machine.expire(now + 1_000) is not None
    assert partition.machine.start_offset == 10
    assert partition.fetch() == [Acquired(10, 19, 1)]


def test_a_limit_that_is_lowered_holds_for_what_is_available(partition: Partition) -> None:
    for _ in range(3):
        partition.fetch()
        partition.acknowledge((0, 9, [RELEASE]))
    partition.limits = LIMITS._replace(delivery_count=3)
    assert partition.fetch() == []
    assert partition.machine.start_offset == 10


def test_records_that_keep_failing_come_in_smaller_numbers_and_at_last_alone() -> None:
    partition = Partition(limits=LIMITS._replace(delivery_count=6))
    partition.produce(8)
    for count in (1, 2, 3):
        assert partition.fetch() == [Acquired(0, 7, count)]
        partition.acknowledge((0, 7, [RELEASE]))
    assert [partition.fetch(), partition.fetch()] == [[Acquired(0, 3, 4)], [Acquired(4, 7, 4)]]
    partition.acknowledge((0, 7, [RELEASE]))
    assert [partition.fetch() for _ in range(4)] == [[Acquired(n, n + 1, 5)] for n in (0, 2, 4, 6)]
    partition.acknowledge((0, 7, [RELEASE]))
    partition.produce(1)
    assert [partition.fetch() for _ in range(8)] == [[Acquired(n, n, 6)] for n in range(8)]
    assert partition.fetch() == [Acquired(8, 8, 1)]


def test_records_that_failed_before_do_not_come_with_others() -> None:
    partition = Partition(limits=LIMITS._replace(delivery_count=4))
    partition.produce(2, 2)
    for _ in range(2):
        partition.fetch(most=2)
        partition.acknowledge((0, 1, [RELEASE]))
    assert partition.fetch() == [Acquired(0, 0, 3)]
    assert partition.fetch() == [Acquired(1, 1, 3)]
    assert partition.fetch() == [Acquired(2, 3, 1)]


def test_whole_batches_are_given_unless_the_limit_is_strict() -> None:
    partition = Partition()
    partition.produce(4, 4, 4)
    assert partition.fetch(most=5) == [Acquired(0, 7, 1)]
    assert partition.fetch(most=3, mode=RECORD_LIMIT) == [Acquired(8, 10, 1)]
    partition.acknowledge((0, 10, [RELEASE]))
    assert partition.fetch(most=9, mode=RECORD_LIMIT) == [Acquired(0, 7, 2), Acquired(8, 8, 2)]
    assert partition.fetch(most=9, mode=RECORD_LIMIT) == [Acquired(9, 10, 2), Acquired(11, 11, 1)]


def test_what_is_given_is_told_in_batches_of_the_size_asked_for() -> None:
    partition = Partition()
    partition.produce(3, 3, 3, 3)
    assert partition.fetch(batch_size=4) == [Acquired(0, 5, 1), Acquired(6, 11, 1)]


def test_no_more_than_so_many_records_are_in_flight() -> None:
    partition = Partition(limits=LIMITS._replace(record_locks=10))
    partition.produce(*[1] * 30)
    assert partition.fetch() == [Acquired(0, 9, 1)]
    assert not partition.machine.can_acquire()
    assert partition.fetch() == []
    # What comes back takes no room.
    partition.acknowledge((4, 5, [RELEASE]))
    assert partition.machine.can_acquire()
    assert partition.fetch() == [Acquired(4, 5, 2)]
    partition.acknowledge((0, 2, [ACCEPT]))
    assert partition.fetch() == [Acquired(10, 12, 1)]


def test_aborted_batches_are_given_to_nobody() -> None:
    partition = Partition()
    partition.produce(2, 2, 2)
    assert partition.fetch(aborted=[(2, 3)]) == [Acquired(0, 1, 1), Acquired(4, 5, 1)]
    partition.acknowledge((0, 1, [ACCEPT]))
    assert partition.machine.start_offset == 4
    only = Partition()
    only.produce(3)
    assert only.fetch(aborted=[(0, 2)]) == []
    assert only.machine.start_offset == 3


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ((0, 10, [ACCEPT]), InvalidRequest),
        ((12, 14, [ACCEPT]), InvalidRequest),
        ((0, 4, [ACCEPT]), InvalidRecordState),
        ((8, 9, [ACCEPT]), InvalidRecordState),
    ],
)
def test_who_does_not_have_a_record_cannot_acknowledge_it(
    partition: Partition, said: tuple[int, int, list[int]], error: type[Exception]
) -> None:
    partition.fetch("m")
    partition.acknowledge((0, 0, [RELEASE]))
    partition.acknowledge((9, 9, [ACCEPT]))
    with pytest.raises(error):
        partition.say(said)
    with pytest.raises(InvalidRecordState):
        partition.say((3, 4, [ACCEPT]), member="other")
    # All or nothing: the good part of a bad request does not count either.
    with pytest.raises(error):
        partition.say((1, 1, [ACCEPT]) if said[0] > 1 else (2, 2, [ACCEPT]), said)
    partition.acknowledge((1, 8, [ACCEPT]))
    assert partition.machine.delivery_complete_count == 9


def test_a_record_cannot_be_acknowledged_twice(partition: Partition) -> None:
    partition.fetch()
    with pytest.raises(InvalidRecordState):
        partition.say((0, 3, [ACCEPT]), (3, 4, [ACCEPT]))
    write = partition.say((0, 3, [ACCEPT]))
    with pytest.raises(InvalidRecordState):
        partition.say((0, 3, [ACCEPT]))
    partition.store(write)
    assert partition.say((0, 3, [ACCEPT])) is None  # long done with


def test_offsets_that_the_log_does_not_have_are_passed_over(partition: Partition) -> None:
    partition.produce(5, at=15)  # 10 to 14 were compacted away
    partition.fetch(most=10)
    assert partition.fetch() == [Acquired(15, 19, 1)]
    partition.acknowledge((15, 19, [ACCEPT]))
    partition.acknowledge((0, 9, [ACCEPT]))
    assert partition.machine.start_offset == 20
    partition.produce(5, at=30)
    assert partition.fetch() == [Acquired(30, 34, 1)]
    assert partition.machine.start_offset == 30


def test_records_that_vanished_while_they_were_available_are_given_up(partition: Partition) -> None:
    partition.fetch()
    partition.acknowledge((0, 9, [RELEASE]))
    partition.log = [(4, 9)]
    assert partition.fetch() == [Acquired(4, 9, 2)]
    assert partition.machine.start_offset == 4


def test_the_log_may_begin_later(partition: Partition) -> None:
    partition.fetch("m", 10)
    partition.produce(10)
    write = partition.say((0, 3, [ACCEPT]))
    partition.machine.log_start_moved(6)
    assert partition.machine.start_offset == 6
    assert partition.machine.delivery_complete_count == 0
    partition.store(write)  # of no consequence
    partition.acknowledge((4, 9, [ACCEPT]))  # as far as they are still there
    assert partition.machine.start_offset == 10
    partition.machine.log_start_moved(15)
    assert partition.machine.next_fetch_offset() == partition.machine.start_offset == 15
    partition.machine.log_start_moved(3)
    assert partition.machine.start_offset == 15


def test_state_is_restored_with_what_nobody_came_back_on_available() -> None:
    stored = [StateBatch(3, 4, 2, 1), StateBatch(7, 8, 0, 2), StateBatch(9, 9, 4, 5)]
    partition = Partition(1, stored)
    partition.produce(12)
    assert (partition.machine.start_offset, partition.machine.end_offset) == (1, 10)
    assert partition.machine.delivery_complete_count == 3
    assert partition.fetch() == [
        Acquired(1, 2, 1),
        Acquired(5, 6, 1),
        Acquired(7, 8, 3),
        Acquired(10, 11, 1),
    ]


def test_state_that_is_all_done_is_not_in_flight() -> None:
    partition = Partition(0, [StateBatch(0, 4, 2, 1), StateBatch(5, 9, 4, 5)])
    assert (partition.machine.start_offset, partition.machine.in_flight) == (10, 0)


def test_a_stored_record_that_was_delivered_often_enough_is_not_delivered_again() -> None:
    partition = Partition(0, [StateBatch(0, 4, 0, 5)])
    assert partition.machine.start_offset == 5


def test_what_costs_is_the_number_of_fates() -> None:
    partition = Partition()
    partition.produce(1_000)
    partition.fetch(most=1_000)
    ranges = partition.machine._ranges
    assert len(ranges) == 1
    for offset in range(1, 1_000, 2):
        partition.acknowledge((offset, offset, [ACCEPT]))
    assert len(ranges) == 1_000
    for offset in range(2, 1_000, 2):
        partition.acknowledge((offset, offset, [ACCEPT]))
    assert len(ranges) == 2
