"""Share partitions on a running node: loaded, stored, fenced, dropped and cleaned up after.

What the handlers answer is in tests/interop/test_share_groups.py, where Apache Kafka has to agree.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ottla.core.share import SharePartitionKey, StateBatch
from ottla.protocol import errors
from ottla.protocol.batch import iter_batches, read_header
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.share_fetch import FetchTopic, ForgottenTopic, ShareFetchRequest
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.protocol.stored.metadata import FeatureLevelRecord
from ottla.runtime.share_start import duration_ms
from ottla.server.handlers.share_fetch import share_fetch
from ottla.server.handlers.share_group_heartbeat import share_group_heartbeat
from tests.unit.server.share.sharing import Member, SharingNode, offsets, run, until

ACCEPT, RELEASE = 1, 2


async def _begin(serving: SharingNode, *counts: int, reset: str = "earliest") -> Member:
    """A topic with batches of so many records, and a member that may read them."""
    await serving.create("t")
    await serving.configure("g", share_auto_offset_reset=reset)
    serving.produce("t", *counts)
    return await Member(serving).join()


def _key(member: Member) -> SharePartitionKey:
    return SharePartitionKey("g", member.topic_id, 0)


def test_a_member_has_its_partitions_with_its_first_heartbeat(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await serving.create("t", 3)
        response = await Member(serving).beat()
        assert response.assignment is not None
        (topic,) = response.assignment.topic_partitions
        assert topic.partitions == [0, 1, 2]

    run(SharingNode(tmp_path), story)


def test_where_a_group_begins_is_stored_before_it_reads(tmp_path: Path) -> None:
    async def before(serving: SharingNode) -> None:
        member = await _begin(serving, 3, reset="latest")
        assert offsets(await member.fetch(wait_ms=50)) == []

    async def after(serving: SharingNode) -> None:
        # What came while nobody was there is not lost on the group.
        serving.produce("t", 2)
        member = await Member(serving).join()
        assert offsets(await member.fetch()) == [3, 4]

    run(SharingNode(tmp_path), before)
    run(SharingNode(tmp_path), after)


def test_a_fetch_holds_only_the_batches_it_gives(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 2, 2, 2, 2)
        data = await member.fetch(most=3)
        assert offsets(data) == [0, 1, 2, 3]
        assert [header.base_offset for header, _ in iter_batches(data.records)] == [0, 2]
        assert await member.acknowledge(0, 1, ACCEPT) == 0
        assert await member.acknowledge(2, 2, RELEASE) == 0
        data = await member.fetch(most=1)
        assert offsets(data) == [2]
        assert read_header(data.records).base_offset == 2

    run(SharingNode(tmp_path), story)


def test_a_fetch_waits_until_there_is_enough(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 1)
        size = serving.partition("t").log.size
        waiting = member.start_fetch(wait_ms=20_000, min_bytes=3 * size)
        for _ in range(2):
            for _ in range(50):
                await asyncio.sleep(0)
            assert not waiting.done()
            serving.produce("t", 1)
        response = await waiting
        ((data,),) = [topic.partitions for topic in response.responses]
        assert offsets(data) == [0, 1, 2]

    run(SharingNode(tmp_path), story)


def test_a_fetch_that_waited_long_enough_takes_what_there_is(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 1)
        assert offsets(await member.fetch(wait_ms=100, min_bytes=1 << 20)) == [0]

    run(SharingNode(tmp_path), story)


def test_a_waiting_fetch_gets_what_another_member_gives_back(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        first = await _begin(serving, 3)
        second = await Member(serving, "second").join()
        assert offsets(await first.fetch()) == [0, 1, 2]
        assert offsets(await second.fetch(wait_ms=1)) == []
        waiting = second.start_fetch(wait_ms=20_000)
        await asyncio.sleep(0)
        assert await first.acknowledge(1, 1, RELEASE) == 0
        response = await waiting
        ((data,),) = [topic.partitions for topic in response.responses]
        assert offsets(data) == [1]

    run(SharingNode(tmp_path), story)


def test_records_whose_time_is_up_go_to_who_waits(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        first = await _begin(serving, 3)
        second = await Member(serving, "second").join()
        assert offsets(await first.fetch()) == [0, 1, 2]
        assert offsets(await second.fetch(wait_ms=1)) == []
        shares = serving.node.shares
        shared = shares.find(_key(first))
        waiting = second.start_fetch(wait_ms=20_000)
        serving.clock.ahead_ms += 31_000
        assert shared.timer is not None
        shared.timer.cancel()  # it goes by the clock of the loop, which cannot be moved
        shared.timer = None
        shares.set_timer(shared)
        response = await waiting
        ((data,),) = [topic.partitions for topic in response.responses]
        assert offsets(data) == [0, 1, 2]
        await until(lambda: bool(shared.machine.stored() == []))
        state = await shares.states.read(_key(first), 0)
        assert state.batches == [StateBatch(0, 2, 0, 1)]

    run(SharingNode(tmp_path), story)


class CountingWaiter:
    def __init__(self) -> None:
        self.count = 0

    def readable(self, size: int) -> None:
        self.count += 1


def test_those_who_wait_are_woken_only_when_there_is_something_for_them(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, *[60] * 3)
        await serving.configure("g", share_partition_max_record_locks="100")
        assert len(offsets(await member.fetch(most=60))) == 60
        waiter = CountingWaiter()
        serving.node.shares.find(_key(member)).waiters[waiter] = None
        assert await member.acknowledge(0, 9, ACCEPT) == 0
        assert waiter.count == 0
        assert await member.acknowledge(10, 10, RELEASE) == 0
        assert waiter.count == 1
        assert len(offsets(await member.fetch(most=60))) == 61  # now no more can be in flight
        waiter.count = 0
        assert await member.acknowledge(10, 30, ACCEPT) == 0
        assert waiter.count == 1

    run(SharingNode(tmp_path), story)


# --- failures ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "told", "is_kept"),
    [
        (errors.CoordinatorNotAvailable, errors.CoordinatorNotAvailable, True),
        (errors.NotCoordinator, errors.CoordinatorNotAvailable, True),
        (errors.FencedStateEpoch, errors.NotLeaderOrFollower, False),
        (errors.FencedLeaderEpoch, errors.NotLeaderOrFollower, False),
        (errors.UnknownTopicOrPartition, errors.UnknownTopicOrPartition, False),
        (errors.InvalidRequest, errors.UnknownServerError, True),
    ],
)
def test_an_acknowledgement_that_could_not_be_stored_did_not_happen(
    tmp_path: Path, failure: type[errors.KafkaError], told: type[errors.KafkaError], is_kept: bool
) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 3)
        assert offsets(await member.fetch()) == [0, 1, 2]
        shares = serving.node.shares
        write = shares.states.write

        async def fail(*_: Any, **__: Any) -> None:
            await asyncio.sleep(0)
            raise failure

        shares.states.write = fail  # type: ignore[method-assign]
        assert await member.acknowledge(0, 2, ACCEPT) == told.code
        shares.states.write = write  # type: ignore[method-assign]
        if is_kept:
            assert await member.acknowledge(0, 2, ACCEPT) == 0
        else:
            # It was dropped, and is loaded anew as it was stored.
            with pytest.raises(errors.UnknownTopicOrPartition):
                shares.find(_key(member))
            assert offsets(await member.fetch()) == [0, 1, 2]

    run(SharingNode(tmp_path), story)


def test_a_partition_that_cannot_be_loaded_says_so_and_is_tried_again(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 3)
        shares = serving.node.shares
        read = shares.states.read

        async def fail(*_: Any) -> Any:
            await asyncio.sleep(0)
            raise errors.CoordinatorLoadInProgress

        shares.states.read = fail  # type: ignore[method-assign]
        data = await member.fetch()
        assert data.error_code == errors.CoordinatorNotAvailable.code
        shares.states.read = read  # type: ignore[method-assign]
        assert offsets(await member.fetch()) == [0, 1, 2]

    run(SharingNode(tmp_path), story)


def test_a_group_that_never_joined_reads_nothing(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await serving.create("t")
        serving.produce("t", 1)
        data = await Member(serving).fetch()
        assert data.error_code == errors.UnknownServerError.code

    run(SharingNode(tmp_path), story)


def test_a_partition_that_is_led_elsewhere_is_dropped(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 3)
        assert offsets(await member.fetch(most=1)) == [0, 1, 2]
        waiting = member.start_fetch(wait_ms=20_000)
        await asyncio.sleep(0)
        partition = serving.partition("t")
        partition.stop_leading(7, 1, 1)
        serving.node.coordinators.follow(partition)
        response = await waiting
        ((data,),) = [topic.partitions for topic in response.responses]
        assert data.error_code == errors.NotLeaderOrFollower.code

    run(SharingNode(tmp_path), story)


def test_a_later_leader_epoch_begins_from_what_is_stored(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 3)
        assert offsets(await member.fetch()) == [0, 1, 2]
        assert await member.acknowledge(0, 0, ACCEPT) == 0
        partition = serving.partition("t")
        partition.become_leader(5, 1)
        serving.node.coordinators.follow(partition)
        assert offsets(await member.fetch()) == [1, 2]
        assert (await serving.node.shares.states.summary(_key(member))).leader_epoch == 5

    run(SharingNode(tmp_path), story)


def test_a_topic_that_is_deleted_takes_its_state_along(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 3)
        key = _key(member)
        assert offsets(await member.fetch()) == [0, 1, 2]
        topics = [DeleteTopicState(name="t")]
        await serving.node.quorum.submit(DeleteTopicsRequest(topics=topics, timeout_ms=10_000), 6)
        await serving.node.caught_up()
        with pytest.raises(errors.UnknownTopicOrPartition):
            serving.node.shares.find(key)
        request = ShareFetchRequest(
            group_id="g",
            member_id="member",
            share_session_epoch=1,
            max_records=1,
            max_bytes=100,
            max_wait_ms=5_000,
        )
        response = await serving.call(share_fetch, request, 2, member.connection)
        ((data,),) = [topic.partitions for topic in response.responses]
        assert data.error_code == errors.UnknownTopicId.code
        for _, machine in serving.node.share_state.partitions():
            assert not machine._states

    run(SharingNode(tmp_path), story)


# --- sessions ------------------------------------------------------------------------------


def test_when_the_last_session_ends_nothing_is_kept_in_memory(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        first = await _begin(serving, 3)
        second = await Member(serving, "second").join()
        assert offsets(await first.fetch()) == [0, 1, 2]
        assert offsets(await second.fetch(wait_ms=1)) == []
        shares = serving.node.shares
        first.connection.lose()
        assert offsets(await second.fetch()) == [0, 1, 2]
        assert shares.find(_key(first))
        second.connection.lose()
        await until(lambda: not shares._shared)
        state = await shares.states.read(_key(first), 0)
        assert state.batches == [StateBatch(0, 2, 0, 2)]

    run(SharingNode(tmp_path), story)


def test_a_connection_that_is_lost_does_not_end_a_session_that_moved_on(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 3)
        assert offsets(await member.fetch()) == [0, 1, 2]
        old, member.connection, member.session_epoch = member.connection, type(member.connection)(), 0
        assert offsets(await member.fetch(wait_ms=1)) == []
        old.lose()
        assert await member.acknowledge(0, 2, ACCEPT) == 0

    run(SharingNode(tmp_path), story)


def test_one_session_too_many_is_told_so_after_a_while(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 3)
        await member.fetch()
        late = Member(serving, "late")
        waiting = late.start_fetch(wait_ms=20)
        await asyncio.sleep(0)
        assert not waiting.done()
        assert (await waiting).error_code == errors.ShareSessionLimitReached.code

    run(SharingNode(tmp_path, group_share_max_share_sessions="1"), story)


def test_a_session_without_partitions_has_nothing_to_say(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, 3)
        await member.fetch()
        forgotten = [ForgottenTopic(topic_id=member.topic_id, partitions=[0])]
        response = await member.start_fetch(wait_ms=20, topics=[], forgotten_topics_data=forgotten)
        assert (response.error_code, response.responses) == (0, [])

    run(SharingNode(tmp_path), story)


# --- surroundings --------------------------------------------------------------------------


def test_what_is_not_needed_of_the_state_is_deleted(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _begin(serving, *[1] * 8)
        for offset in range(8):
            assert offsets(await member.fetch(most=1)) == [offset]
            assert await member.acknowledge(offset, offset, ACCEPT) == 0
        await until(lambda: any(each.log.start_offset == 8 for each in serving.state_logs()))
        member.connection.lose()
        await until(lambda: not serving.node.shares._shared)

    async def after(serving: SharingNode) -> None:
        member = await Member(serving).join()
        serving.produce("t", 1)
        assert offsets(await member.fetch()) == [8]

    properties = {
        "share_coordinator_snapshot_update_records_per_snapshot": "1",
        "share_coordinator_state_topic_prune_interval_ms": "20",
    }
    run(SharingNode(tmp_path, **properties), story)
    run(SharingNode(tmp_path, **properties), after)


def test_a_cluster_without_share_groups_says_so(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await serving.create("t")
        serving.node.image.apply(FeatureLevelRecord(name="share.version", feature_level=0), 10_000)
        beat = ShareGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["t"])
        response = await serving.call(share_group_heartbeat, beat, 1)
        assert response.error_code == errors.UnsupportedVersion.code
        topics = [FetchTopic(topic_id=serving.topic("t").id)]
        response = await serving.call(
            share_fetch, ShareFetchRequest(group_id="g", member_id="m", topics=topics), 2
        )
        assert response.error_code == errors.UnsupportedVersion.code

    run(SharingNode(tmp_path), story)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1H", 3_600_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("PT0.25S", 250),
        ("P3D", 259_200_000),
        ("pt5m", 300_000),
    ],
)
def test_durations_are_read_as_java_does(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


def test_what_is_no_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="no duration"):
        duration_ms("an hour")
