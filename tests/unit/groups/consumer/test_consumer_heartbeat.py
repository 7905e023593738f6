"""Heartbeats of consumer groups: what transcripts do not show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from ottla.config.broker import BrokerSettings
from ottla.core.caller import Caller
from ottla.core.ids import Uuid
from ottla.core.outcome import Outcome
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import WAITING_INTERVAL_MS
from ottla.groups.consumer.member import Member
from ottla.groups.shard import GroupMachine
from ottla.protocol.errors import (
    InvalidRequest,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.unit.groups.conftest import GroupShard

JOINING: dict[str, Any] = {
    "rebalance_timeout_ms": 60_000,
    "topic_partitions": [],
    "subscribed_topic_names": ["t"],
}


def beat(shard: GroupShard, member_id: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatResponse:
    version, may_describe = fields.pop("version", 1), fields.pop("may_describe", None)
    given = JOINING if epoch == 0 else {}
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, **{**given, **fields}
    )
    caller = Caller("c", "/127.0.0.1", version, may_describe)
    reply: ConsumerGroupHeartbeatResponse = shard.call(
        lambda machine, now, _: machine.consumer_group_heartbeat(request, caller, now)
    )
    return reply


def group_of(shard: GroupShard) -> ConsumerGroup:
    group = shard.machine.groups["g"]
    assert isinstance(group, ConsumerGroup)
    return group


def owns(shard: GroupShard, *indices: int) -> list[TopicPartitions]:
    topic_id = shard.topics.topic_id("t")
    assert topic_id is not None
    return [TopicPartitions(topic_id=topic_id, partitions=list(indices))]


def test_in_version_0_the_broker_makes_the_id(shard: GroupShard) -> None:
    reply = beat(shard, "", 0, version=0)

    assert reply.member_id == str(Uuid((1).to_bytes(16, "big")))
    assert beat(shard, reply.member_id, 2, version=0).member_epoch == 2
    with pytest.raises(InvalidRequest):
        beat(shard, "", 0, version=1)


def test_the_protocol_can_be_switched_off(shard: GroupShard) -> None:
    shard.settings = BrokerSettings(group_coordinator_rebalance_protocols=("classic",))

    with pytest.raises(UnsupportedVersion):
        beat(shard, "a", 0)


class Untouchable(dict[str, Member]):
    """Members that may be looked up one by one, and not all together."""

    def _refuse(self, *args: object) -> NoReturn:
        raise AssertionError("a heartbeat looked at every member")

    def __iter__(self) -> Iterator[str]:
        self._refuse()

    keys = values = items = copy = _refuse


class UnknownTopics:
    """Topics that nobody may ask about."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError("a heartbeat looked at the topics")


def test_a_heartbeat_that_says_nothing_new_looks_at_one_member_and_no_topic(shard: GroupShard) -> None:
    for member_id in "abc":
        beat(shard, member_id, 0)
    shard.advance(1_000)
    epochs = {}
    for _ in range(3):
        for member_id in "abc":
            assigned = group_of(shard).members[member_id].assigned
            reported = owns(shard, *(index for _, index in assigned))
            epochs[member_id] = beat(
                shard, member_id, group_of(shard).members[member_id].epoch, topic_partitions=reported
            ).member_epoch
    assert group_of(shard).state_name == "Stable"
    written = len(shard.log)
    group = group_of(shard)
    group.members = Untouchable(group.members)
    shard.machine.topics = UnknownTopics()

    for member_id in "abc":
        reply = beat(shard, member_id, epochs[member_id])
        assert reply.assignment is None

    assert len(shard.log) == written


def test_a_refused_heartbeat_leaves_no_trace(shard: GroupShard) -> None:
    beat(shard, "a", 0)
    shard.topics.add("t", 9)
    shard.take(lambda machine, now: machine.topics_changed({}, {"t"}, now))
    written = len(shard.log)

    with pytest.raises(UnknownMemberId):
        beat(shard, "b", 3)
    assert len(shard.log) == written
    shard.advance(1_000)
    assert beat(shard, "a", 2).member_epoch == 3


def test_who_waits_for_partitions_is_asked_to_come_back_soon(shard: GroupShard) -> None:
    assert beat(shard, "a", 0).heartbeat_interval_ms == 5_000
    assert beat(shard, "b", 0).heartbeat_interval_ms == WAITING_INTERVAL_MS
    shard.advance(1_000)
    assert beat(shard, "b", 2).heartbeat_interval_ms == WAITING_INTERVAL_MS
    assert beat(shard, "a", 2).heartbeat_interval_ms == 5_000
    beat(shard, "a", 2, topic_partitions=owns(shard, 0, 1))
    assert beat(shard, "b", 3).heartbeat_interval_ms == 5_000


def test_a_groups_own_settings_count(shard: GroupShard) -> None:
    overrides = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "7000"}
    shard.machine = GroupMachine(
        settings=lambda: shard.settings,
        topics=shard.topics,
        new_id=lambda: Uuid(bytes(16)),
        group_overrides=lambda group_id: overrides if group_id == "g" else {},
    )

    assert beat(shard, "a", 0).heartbeat_interval_ms == 7_000
    shard.advance(49_999)
    assert "a" in group_of(shard).members
    shard.advance(1)
    assert "a" not in group_of(shard).members


def test_a_static_member_that_joins_twice_has_missed_the_answer(shard: GroupShard) -> None:
    first = beat(shard, "a", 0, instance_id="i")

    again = beat(shard, "a", 0, instance_id="i")

    assert (again.member_epoch, again.assignment) == (first.member_epoch, first.assignment)


def test_a_clock_that_is_put_back_does_not_keep_a_group_waiting(shard: GroupShard) -> None:
    beat(shard, "a", 0)
    shard.elapsed_ms -= 3_600_000

    assert beat(shard, "b", 0).member_epoch == 3


def test_a_member_may_commit_with_an_older_epoch_what_it_has_had_since(shard: GroupShard) -> None:
    beat(shard, "a", 0)
    beat(shard, "b", 0)
    shard.advance(1_000)
    beat(shard, "a", 2)
    epoch = beat(shard, "a", 2, topic_partitions=owns(shard, 0, 1)).member_epoch
    assert epoch == 3

    def commit(member_id: str, generation: int, index: int) -> int:
        partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=1)
        reply = shard.commit(
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        return reply.topics[0].partitions[0].error_code

    assert commit("a", 3, 0) == 0
    assert commit("a", 2, 0) == 0  # it had it in epoch 2 already
    assert commit("a", 2, 2) == StaleMemberEpoch.code  # and this it has given up
    assert commit("a", 1, 0) == StaleMemberEpoch.code
    beat(shard, "b", 2)
    assert commit("b", 3, 2) == 0
    assert commit("b", 2, 2) == StaleMemberEpoch.code  # it has had it since epoch 3


def test_positions_are_shown_to_members_of_the_present_epoch_and_to_administrators(shard: GroupShard) -> None:
    beat(shard, "a", 0)
    group = group_of(shard)

    group.check_offset_fetch(None, -1)
    group.check_offset_fetch("a", 2)
    with pytest.raises(StaleMemberEpoch):
        group.check_offset_fetch("a", 1)
    with pytest.raises(UnknownMemberId):
        group.check_offset_fetch("b", 2)


def test_a_producer_that_does_not_say_for_whom_may_commit_in_its_transaction(shard: GroupShard) -> None:
    beat(shard, "a", 0)
    asked = {"member_id": "", "instance_id": None, "generation": -1, "version": 3, "now": shard.now}
    group = group_of(shard)

    assert group.check_offset_commit(transactional=True, **asked) is None  # type: ignore[arg-type]
    with pytest.raises(UnknownMemberId):
        group.check_offset_commit(transactional=False, **asked)  # type: ignore[arg-type]
    asked |= {"member_id": "a", "generation": 2, "version": 8}
    with pytest.raises(UnsupportedVersion):
        group.check_offset_commit(transactional=False, **asked)  # type: ignore[arg-type]


def test_a_group_with_members_cannot_be_deleted_and_its_topics_positions_stay(shard: GroupShard) -> None:
    beat(shard, "a", 0)
    shard.commit(member_id="a", generation_id_or_member_epoch=2)
    group = group_of(shard)

    with pytest.raises(NonEmptyGroup):
        group.check_delete()
    assert group.is_subscribed("t")
    assert not group.is_subscribed("u")


def test_what_kafka_before_4_1_wrote_of_topics_is_taken_back(shard: GroupShard) -> None:
    beat(shard, "a", 0)
    group = group_of(shard)
    group.has_partition_metadata = True
    group.is_stale = True

    beat(shard, "a", 2)

    assert shard.log[-1].record.key.startswith(b"\x00\x04")  # type: ignore[union-attr]
    assert group.has_partition_metadata is False


def test_describing_a_group_shows_what_a_member_still_has_to_give_up(shard: GroupShard) -> None:
    beat(shard, "a", 0, rack_id="r", subscribed_topic_regex="u")
    beat(shard, "b", 0)
    shard.advance(1_000)
    beat(shard, "a", 2)

    described = shard.call(lambda machine, now, _: Outcome(reply=machine.describe_consumer_group("g")))

    member = described.members[0]
    assert (member.rack_id, member.subscribed_topic_regex, member.member_type) == ("r", "u", 1)
    assert sum(len(each.partitions) for each in member.assignment.topic_partitions) == 5
    assert sum(len(each.partitions) for each in member.target_assignment.topic_partitions) < 5


BY_PATTERN: dict[str, Any] = {"subscribed_topic_names": None, "subscribed_topic_regex": ".*"}


def assigned(shard: GroupShard, reply: ConsumerGroupHeartbeatResponse) -> list[str | None]:
    assert reply.assignment is not None
    return [shard.topics.name_of(topic.topic_id) for topic in reply.assignment.topic_partitions]


def test_an_expression_does_not_stand_for_topics_that_the_member_may_not_see(shard: GroupShard) -> None:
    reply = beat(shard, "a", 0, **BY_PATTERN, may_describe={"u"}.__contains__)

    assert assigned(shard, reply) == ["u"]
    assert group_of(shard).resolved[".*"].topics == {"u"}


def test_after_a_while_an_expression_stands_for_what_the_member_may_see_by_then() -> None:
    shard = GroupShard(group_consumer_regex_refresh_interval_ms=10_000)
    visible = {"u"}
    beat(shard, "a", 0, **BY_PATTERN, may_describe=visible.__contains__)
    beat(shard, "a", 2, may_describe=visible.__contains__)
    visible.add("t")

    shard.advance(10_000)
    assert beat(shard, "a", 2, may_describe=visible.__contains__).assignment is None
    shard.advance(1)
    reply = beat(shard, "a", 2, may_describe=visible.__contains__)
    assert (reply.member_epoch, sorted(filter(None, assigned(shard, reply)))) == (3, ["t", "u"])

    # The same once more is written down, and is no reason for anything else.
    for _ in range(2):
        shard.advance(10_001)
        shard.take_news()
        assert beat(shard, "a", 3, may_describe=visible.__contains__).assignment is None
        assert len(shard.take_news()) == 2
        assert beat(shard, "a", 3, may_describe=visible.__contains__).member_epoch == 3
        assert len(shard.take_news()) == 1
