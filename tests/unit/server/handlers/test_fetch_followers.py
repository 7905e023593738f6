from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.protocol.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from ottla.replication.fetch_session import FetchSessions
from ottla.replication.isr import NOT_REGISTERED, Standing
from ottla.replication.partition import Partition
from ottla.server.handlers.fetch import fetch
from tests.unit.server.handlers.conftest import Surroundings

FOLLOWER = 2
EPOCH = 6  # of broker 2, as `Surroundings.register` has it


class Proposals:
    """Stands for the node's in-sync sets: notes who proposes."""

    def __init__(self) -> None:
        self.made: list[Partition] = []

    def propose(self, partition: Partition) -> None:
        self.made.append(partition)


@pytest.fixture
def leading(node: Surroundings) -> Surroundings:
    """A node that leads `a` in epoch 3; broker 2 follows and is in sync."""
    node.register(FOLLOWER)

    def standing_of(broker: int) -> Standing:
        known = node.image.brokers.get(broker)
        return NOT_REGISTERED if known is None else Standing(known.epoch, known.is_active)

    surroundings: Any = node
    surroundings.standing_of = standing_of
    surroundings.in_sync_sets = Proposals()
    surroundings.fetch_sessions = FetchSessions(10)
    surroundings.random_session_id = lambda: 1
    node.create("a", replicas=(1, FOLLOWER), leader_epoch=3)
    return node


def asked(node: Surroundings, replica: int = FOLLOWER, epoch: int = EPOCH, **partition: Any) -> FetchRequest:
    fields = {"current_leader_epoch": 3, "partition_max_bytes": 1 << 20} | partition
    return FetchRequest(
        replica_state=ReplicaState(replica_id=replica, replica_epoch=epoch),
        min_bytes=1,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=node.partition("a").topic_id, partitions=[FetchPartition(**fields)])],
    )


def answer(node: Surroundings, request: FetchRequest) -> PartitionData:
    response = node.call(fetch, request, 18)
    assert isinstance(response, FetchResponse) and not response.error_code
    return response.responses[0].partitions[0]


def test_a_followers_fetch_moves_the_high_watermark_before_it_is_answered(leading: Surroundings) -> None:
    leading.produce("a", 1, 2, 3)
    log = leading.partition("a").log
    assert answer(leading, asked(leading)).high_watermark == 0
    assert answer(leading, asked(leading, fetch_offset=3, last_fetched_epoch=3)).high_watermark == 3
    assert log.high_watermark == 3


def test_a_follower_reads_past_the_high_watermark(leading: Surroundings) -> None:
    leading.produce("a", 1, 2, 3)
    assert answer(leading, asked(leading)).records
    assert leading.partition("a").log.high_watermark == 0


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"current_leader_epoch": 2}, FencedLeaderEpoch),
        ({"current_leader_epoch": 4}, UnknownLeaderEpoch),
        ({"fetch_offset": 9}, OffsetOutOfRange),
        ({"replica": 7}, UnknownLeaderEpoch),
        ({"epoch": EPOCH - 1}, NotLeaderOrFollower),
    ],
)
def test_who_may_not_be_counted_is_refused(leading: Surroundings, fields: dict[str, int], error: Any) -> None:
    leading.produce("a", 1, 2, 3)
    assert answer(leading, asked(leading, **fields)).error_code == error.code
    assert leading.partition("a").isr.followers[FOLLOWER].end_offset == -1


def test_a_follower_with_another_history_is_told_and_not_counted(leading: Surroundings) -> None:
    leading.produce("a", 1, 2, 3)
    said = answer(leading, asked(leading, fetch_offset=2, last_fetched_epoch=2))
    assert (said.diverging_epoch.epoch, said.diverging_epoch.end_offset) == (2, 0)
    assert leading.partition("a").isr.followers[FOLLOWER].end_offset == -1


def test_who_has_caught_up_is_proposed(leading: Surroundings) -> None:
    partition = leading.partition("a")
    partition.isr.reset((1, FOLLOWER), (1,), 1)
    leading.produce("a", 1, 2, 3)
    answer(leading, asked(leading, fetch_offset=1, last_fetched_epoch=3))
    surroundings: Any = leading
    assert surroundings.in_sync_sets.made == []
    answer(leading, asked(leading, fetch_offset=3, last_fetched_epoch=3))
    assert surroundings.in_sync_sets.made == [partition]
    assert partition.isr.maximal == {1, FOLLOWER}


def test_a_consumer_reads_from_a_follower_up_to_its_watermark(leading: Surroundings) -> None:
    partition = leading.partition("a")
    leading.produce("a", 1, 2, 3)
    partition.log.advance_high_watermark(2)
    partition.stop_leading(FOLLOWER, 4, 9)
    request = asked(leading, replica=-1, epoch=-1, current_leader_epoch=4)
    said = answer(leading, request)
    assert not said.error_code
    assert said.high_watermark == 2
    assert answer(leading, asked(leading, replica=FOLLOWER, current_leader_epoch=4)).error_code == (
        NotLeaderOrFollower.code
    )


def test_a_commit_that_falls_below_the_minimum_is_told_at_once(leading: Surroundings) -> None:
    async def scenario() -> None:
        partition = leading.partition("a")
        leading.produce("a", 1)
        committed = partition.committed(0)
        assert committed is not None
        partition.take_state(1, 3, 5, (1, FOLLOWER), (1,), 2, 0)
        with pytest.raises(NotEnoughReplicasAfterAppend):
            await committed

    asyncio.run(scenario())


def in_session(
    node: Surroundings, number: int, *, epoch: int = EPOCH, **partition: Any
) -> list[PartitionData]:
    """What an incremental fetch is answered; without fields it names no partition."""
    request = asked(node, epoch=epoch, last_fetched_epoch=3, **partition)
    request.session_id, request.session_epoch = (1, number) if number else (0, 0)
    if number and not partition:
        request.topics = []
    response = node.call(fetch, request, 18)
    assert isinstance(response, FetchResponse) and not response.error_code
    return [each for topic in response.responses for each in topic.partitions]


def test_a_quiet_follower_counts_and_hears_of_what_comes_next(leading: Surroundings) -> None:
    partition = leading.partition("a")
    leading.produce("a", 1, 2, 3)
    there = {"fetch_offset": 3, "high_watermark": 3, "log_start_offset": 0}
    in_session(leading, 0, **there)
    assert not in_session(leading, 1)
    follower = partition.isr.followers[FOLLOWER]
    follower.caught_up_ms = follower.fetched_ms = -1
    assert not in_session(leading, 2)
    assert follower.caught_up_ms == follower.fetched_ms >= 0
    leading.produce("a", 4)
    [said] = in_session(leading, 3)
    assert said.records
    [said] = in_session(leading, 4, **{**there, "fetch_offset": 4})
    assert said.high_watermark == 4 == partition.log.high_watermark


def test_a_quiet_follower_that_was_registered_anew_or_left_out_is_noticed(leading: Surroundings) -> None:
    partition = leading.partition("a")
    surroundings: Any = leading
    leading.produce("a", 1)
    in_session(leading, 0, fetch_offset=1, high_watermark=1, log_start_offset=0)
    assert not in_session(leading, 1)
    partition.isr.reset((1, FOLLOWER), (1,), 1)
    assert not in_session(leading, 2)
    assert surroundings.in_sync_sets.made == [partition]
    [said] = in_session(leading, 3, epoch=EPOCH - 1)
    assert said.error_code == NotLeaderOrFollower.code
    assert not in_session(leading, 4)[0].error_code
    partition.stop_leading(FOLLOWER, 4, 9)
    assert in_session(leading, 5)[0].error_code


def test_a_quiet_follower_says_that_its_log_begins_later(leading: Surroundings) -> None:
    partition = leading.partition("a")
    leading.produce("a", 1, 2)
    there = {"fetch_offset": 2, "high_watermark": 2}
    in_session(leading, 0, **there, log_start_offset=0)
    in_session(leading, 1)
    partition.log.delete_records(1)
    [said] = in_session(leading, 2)
    assert said.log_start_offset == 1
    in_session(leading, 3, **there, log_start_offset=1)
    assert partition.isr.followers[FOLLOWER].start_offset == 1
