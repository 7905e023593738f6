"""Share groups: heartbeats, epochs, initialization, administration and failover."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.config.broker import BrokerSettings
from ottla.core.caller import Caller
from ottla.core.ids import Uuid
from ottla.groups.shard import GroupMachine
from ottla.groups.share import admin
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import Heard, Initialize, heartbeat
from ottla.protocol.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    KafkaError,
    NonEmptyGroup,
    UnknownMemberId,
)
from ottla.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from ottla.testing.group_scenario import ScenarioTopics
from ottla.testing.shard import MemoryShard, Written


class Groups:
    """A shard with two topics of two partitions, and members that do what they are told."""

    def __init__(self, overrides: dict[str, str] | None = None, **properties: Any) -> None:
        self.topics = ScenarioTopics()
        self.topics.add("a", 2)
        self.topics.add("b", 2)
        settings = BrokerSettings(**properties)
        self.overrides = overrides or {}
        self.shard = MemoryShard(
            lambda: GroupMachine(
                settings=lambda: settings,
                topics=self.topics,
                new_id=lambda: Uuid(bytes(16)),
                group_overrides=lambda group: self.overrides,
            )
        )

    def heard(
        self,
        member: str,
        epoch: int,
        *names: str,
        may_wait: bool = False,
        client_id: str = "client",
        **how: Any,
    ) -> Heard:
        request = ShareGroupHeartbeatRequest(
            **{
                "group_id": "g",
                "member_id": member,
                "member_epoch": epoch,
                "subscribed_topic_names": list(names) or None,
            }
            | how
        )
        caller = Caller("client", "/127.0.0.1", 1)
        heard: Heard = self.shard.call(
            lambda machine, now, _: heartbeat(machine, request, caller, now, may_wait=may_wait)
        )
        return heard

    def beat(self, member: str, epoch: int, *names: str, **how: Any) -> ShareGroupHeartbeatResponse:
        response = self.heard(member, epoch, *names, **how).response
        assert response is not None
        return response

    def join(self, member: str, *names: str) -> ShareGroupHeartbeatResponse:
        """Join as a handler has it done: initialization is waited for."""
        heard = self.heard(member, 0, *names, may_wait=True)
        if heard.initialize is not None:
            self.initialized(heard.initialize)
        return heard.response or self.beat(member, 0, *names)

    def initialized(self, wanted: Initialize) -> None:
        self.shard.call(
            lambda machine, now, _: admin.initialized(machine, wanted.group_id, wanted.indices, now)
        )

    def tick(self) -> None:
        self.shard.advance(1_000)  # so that there may be another assignment

    @property
    def group(self) -> ShareGroup:
        group = self.shard.machine.groups["g"]
        assert isinstance(group, ShareGroup)
        return group

    def id(self, topic: str) -> Uuid:
        found = self.topics.topic_id(topic)
        assert found is not None
        return found

    def assigned(self, response: ShareGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        if response.assignment is None:
            return None
        return {
            self.topics.name_of(each.topic_id) or "?": each.partitions
            for each in response.assignment.topic_partitions
        }

    def take_types(self) -> list[int]:
        """The types of the records that were written since; negative for those that take back."""
        return [
            int.from_bytes(each.record.key[:2], "big") * (1 if each.record.value is not None else -1)
            for each in self.shard.take_news()
            if isinstance(each, Written)
        ]


@pytest.fixture
def groups() -> Groups:
    return Groups()


# --- members -------------------------------------------------------------------------------


def test_the_first_member_waits_for_its_partitions_and_gets_them(groups: Groups) -> None:
    heard = groups.heard("m", 0, "a", may_wait=True)
    assert heard.response is None
    assert heard.initialize == Initialize("g", 2, {groups.id("a"): {0: -1, 1: -1}})
    assert groups.take_types() == [10, 11, 15]
    groups.initialized(heard.initialize)
    assert groups.take_types() == [15]
    response = groups.beat("m", 0, "a")
    assert (response.member_epoch, groups.assigned(response)) == (2, {"a": [0, 1]})
    assert response.heartbeat_interval_ms == 5_000
    assert groups.take_types() == [13, 12, 14]
    assert groups.assigned(groups.beat("m", 2)) is None
    assert groups.take_types() == []


def test_without_waiting_it_is_told_with_a_later_heartbeat_as_by_kafka(groups: Groups) -> None:
    heard = groups.heard("m", 0, "a")
    assert heard.response is not None
    assert (heard.response.member_epoch, groups.assigned(heard.response)) == (2, {})
    assert heard.initialize is not None
    groups.initialized(heard.initialize)
    groups.tick()
    response = groups.beat("m", 2)
    assert (response.member_epoch, groups.assigned(response)) == (3, {"a": [0, 1]})


def test_members_that_come_later_share(groups: Groups) -> None:
    groups.join("m", "a")
    groups.tick()
    second = groups.join("n", "a")
    assert (second.member_epoch, groups.assigned(second)) == (3, {"a": [1]})
    first = groups.beat("m", 2)
    assert (first.member_epoch, groups.assigned(first)) == (3, {"a": [0]})
    groups.tick()
    third = groups.join("o", "a")
    assert sum(map(len, (groups.assigned(third) or {}).values())) == 1


def test_assignments_are_some_time_apart(groups: Groups) -> None:
    groups.join("m", "a")
    second = groups.join("n", "a")
    assert (second.member_epoch, groups.assigned(second)) == (2, {})
    assert second.heartbeat_interval_ms == 1_000
    groups.tick()
    response = groups.beat("n", 2)
    assert (response.member_epoch, groups.assigned(response)) == (3, {"a": [1]})


def test_a_member_that_leaves_makes_room(groups: Groups) -> None:
    groups.join("m", "a")
    groups.tick()
    groups.join("n", "a")
    assert groups.assigned(groups.beat("m", 2)) == {"a": [0]}
    groups.take_types()
    response = groups.beat("n", -1)
    assert (response.member_epoch, response.heartbeat_interval_ms) == (-1, 0)
    assert groups.take_types() == [-14, -13, -10, 11]
    groups.tick()
    assert groups.assigned(groups.beat("m", 3)) == {"a": [0, 1]}
    with pytest.raises(UnknownMemberId):
        groups.beat("n", 3)


def test_a_member_that_is_not_heard_from_is_taken_out(groups: Groups) -> None:
    groups.join("m", "a")
    groups.tick()
    groups.join("n", "a")
    groups.shard.advance(30_000)
    groups.beat("m", 2)
    groups.shard.advance(16_000)
    assert list(groups.group.members) == ["m"]
    assert groups.assigned(groups.beat("m", 3)) == {"a": [0, 1]}
    groups.shard.advance(46_000)
    assert groups.group.is_empty
    assert groups.group.state_name == "Empty"


def test_the_settings_of_the_group_count(groups: Groups) -> None:
    groups.overrides = {"share.session.timeout.ms": "50000", "share.heartbeat.interval.ms": "7000"}
    assert groups.join("m", "a").heartbeat_interval_ms == 7_000
    groups.shard.advance(49_999)
    assert not groups.group.is_empty
    groups.shard.advance(1)
    assert groups.group.is_empty


def test_a_subscription_that_changes_is_followed_at_once_where_it_can_be(groups: Groups) -> None:
    groups.join("m", "a", "b")
    response = groups.beat("m", 2, "b")
    assert groups.assigned(response) == {"b": [0, 1]}  # what it gave up goes before the next assignment
    groups.tick()
    response = groups.beat("m", response.member_epoch)
    assert (response.member_epoch, groups.group.assignment_epoch) == (3, 3)


def test_a_subscription_that_grows_is_initialized(groups: Groups) -> None:
    groups.join("m", "a")
    groups.tick()
    heard = groups.heard("m", 2, "a", "b", may_wait=True)
    assert heard.response is not None  # it has something to do meanwhile
    assert groups.assigned(heard.response) == {"a": [0, 1]}
    assert heard.initialize is not None
    assert heard.initialize.indices == {groups.id("b"): frozenset([0, 1])}
    groups.initialized(heard.initialize)
    groups.tick()
    assert groups.assigned(groups.beat("m", 3)) == {"a": [0, 1], "b": [0, 1]}


def test_a_topic_that_grows_is_noticed(groups: Groups) -> None:
    groups.join("m", "a")
    groups.tick()
    groups.topics.add("a", 3)
    groups.shard.take(lambda machine, now: machine.topics_changed({}, {"a"}, now))
    heard = groups.heard("m", 2)
    assert heard.initialize is not None
    assert heard.initialize.indices == {groups.id("a"): frozenset([2])}
    groups.initialized(heard.initialize)
    groups.tick()
    assert groups.assigned(groups.beat("m", 3)) == {"a": [0, 1, 2]}


def test_a_topic_that_comes_later_is_noticed(groups: Groups) -> None:
    response = groups.join("m", "later")
    assert (response.member_epoch, groups.assigned(response)) == (2, {})
    groups.topics.add("later", 1)
    groups.shard.take(lambda machine, now: machine.topics_changed({}, {"later"}, now))
    groups.tick()
    heard = groups.heard("m", 2)
    assert heard.initialize is not None
    groups.initialized(heard.initialize)
    groups.tick()
    assert groups.assigned(groups.beat("m", 3)) == {"later": [0]}


def test_a_topic_that_is_deleted_is_forgotten(groups: Groups) -> None:
    groups.join("m", "a", "b")
    gone = groups.topics.remove("a")
    groups.shard.take(lambda machine, now: machine.topics_changed({gone: "a"}, set(), now))
    assert gone not in groups.group.partitions.initialized
    groups.tick()
    assert groups.assigned(groups.beat("m", 2)) == {"b": [0, 1]}


def test_heartbeats_of_a_settled_group_write_nothing_and_look_at_nothing(groups: Groups) -> None:
    groups.join("m", "a")
    groups.tick()
    groups.beat("m", 2)
    groups.take_types()
    assert groups.group.is_settled
    groups.topics.partition_count = None  # type: ignore[assignment,method-assign]
    for _ in range(3):
        groups.shard.advance(5_000)
        groups.beat("m", 2)
    assert groups.take_types() == []


# --- initialization ------------------------------------------------------------------------


def test_initialization_that_never_ends_is_tried_again() -> None:
    groups = Groups(group_share_initialize_retry_interval_ms=30_000)
    assert groups.heard("m", 0, "a").initialize is not None
    assert groups.heard("m", 2).initialize is None
    groups.shard.advance(29_000)
    assert groups.heard("m", 2).initialize is None
    groups.shard.advance(1_000)
    again = groups.heard("m", 2).initialize
    assert again is not None
    assert again.indices == {groups.id("a"): frozenset([0, 1])}
    assert groups.heard("m", 2).initialize is None


def test_initialization_that_failed_is_tried_again_at_once(groups: Groups) -> None:
    wanted = groups.heard("m", 0, "a").initialize
    assert wanted is not None
    half = {groups.id("a"): [0]}
    groups.shard.call(lambda machine, now, _: admin.initialized(machine, "g", half, now))
    other = {groups.id("a"): [1]}
    groups.shard.call(lambda machine, now, _: admin.not_initialized(machine, "g", other))
    again = groups.heard("m", 2).initialize
    assert again is not None
    assert again.indices == {groups.id("a"): frozenset([1])}


def test_initialization_of_a_group_that_is_gone_is_of_no_consequence(groups: Groups) -> None:
    indices = {groups.id("a"): [0]}
    assert groups.shard.call(lambda machine, now, _: admin.initialized(machine, "g", indices, now)) is False
    assert groups.shard.call(lambda machine, now, _: admin.not_initialized(machine, "g", indices)) is False
    assert groups.take_types() == []


# --- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "epoch", "names", "how", "error"),
    [
        ("", 0, ["a"], {}, InvalidRequest),
        ("m", 0, [], {}, InvalidRequest),
        ("m", -2, [], {}, InvalidRequest),
        ("m", 0, ["a"], {"rack_id": ""}, InvalidRequest),
        ("m", 0, ["a"], {"group_id": ""}, InvalidRequest),
        ("m", 1, [], {}, GroupIdNotFound),
        ("m", -1, [], {}, GroupIdNotFound),
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_refused(
    groups: Groups, member: str, epoch: int, names: list[str], how: dict[str, Any], error: type[KafkaError]
) -> None:
    with pytest.raises(error):
        groups.beat(member, epoch, *names, **how)
    assert groups.take_types() == []


def test_a_member_is_known_by_its_epoch_or_the_one_before(groups: Groups) -> None:
    groups.join("m", "a")
    groups.tick()
    groups.join("n", "a")
    groups.beat("m", 2)
    groups.beat("m", 2)  # the answer was lost
    for epoch in (1, 4):
        with pytest.raises(FencedMemberEpoch):
            groups.beat("m", epoch)
    with pytest.raises(UnknownMemberId):
        groups.beat("x", 3)


def test_a_group_is_full_at_some_point() -> None:
    groups = Groups(group_share_max_size=1)
    groups.join("m", "a")
    groups.beat("m", 0, "a")
    with pytest.raises(GroupMaxSizeReached):
        groups.join("n", "a")


def test_a_share_group_is_no_group_of_another_kind(groups: Groups) -> None:
    groups.join("m", "a")
    group = groups.group
    for check in (group.check_offset_delete, lambda: group.check_offset_fetch("m", 2)):
        with pytest.raises(GroupIdNotFound):
            check()
    with pytest.raises(GroupIdNotFound):
        group.check_offset_commit(
            member_id="m",
            instance_id=None,
            generation=2,
            transactional=False,
            version=9,
            now=groups.shard.now,
        )
    groups.shard.advance(100 * 24 * 3_600_000)
    assert "g" in groups.shard.machine.groups  # it does not expire


# --- failover ------------------------------------------------------------------------------


def test_another_coordinator_goes_on_where_this_one_was(groups: Groups) -> None:
    groups.join("m", "a")
    groups.tick()
    groups.join("n", "a", "b")
    groups.tick()
    before = groups.group
    groups.shard.restart()
    after = groups.group
    for name in ("epoch", "assignment_epoch", "metadata_hash", "members", "targets", "assigned_at_ms"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.partitions.initialized.keys() == before.partitions.initialized.keys()
    groups.beat("m", 2)
    groups.shard.advance(45_000)
    assert list(groups.group.members) == []


# --- administration ------------------------------------------------------------------------


def test_a_group_is_described(groups: Groups) -> None:
    groups.join("m", "a")
    described = groups.shard.call(lambda machine, now, _: admin.describe(machine, "g"))
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 2, 2)
    assert described.assignor_name == "simple"
    (member,) = described.members
    assert (member.member_id, member.member_epoch, member.client_id) == ("m", 2, "client")
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("a", [0, 1])
    (listed,) = groups.shard.machine.list_groups(types=["share"])
    assert (listed.group_type, listed.protocol_type, listed.group_state) == ("share", "share", "Stable")
    with pytest.raises(GroupIdNotFound):
        groups.shard.call(lambda machine, now, _: admin.describe(machine, "unheard-of"))


def _alter(groups: Groups, **offsets: tuple[int, int]) -> admin.Alter:
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)],
        )
        for name, (index, offset) in offsets.items()
    ]
    alter: admin.Alter = groups.shard.call(
        lambda machine, now, _: admin.alter_offsets(machine, "g", topics, now)
    )
    return alter


def test_positions_are_altered_of_a_group_without_members(groups: Groups) -> None:
    alter = _alter(groups, a=(1, 7), b=(9, 0), c=(0, 0))
    assert alter.initialize == Initialize("g", 1, {groups.id("a"): {1: 7}})
    assert [[one.error_code for one in topic.partitions] for topic in alter.topics] == [[0], [3], [3]]
    assert groups.take_types() == [15]
    groups.initialized(alter.initialize)
    assert groups.group.partitions.initialized[groups.id("a")].partitions == {1}
    groups.join("m", "a")
    with pytest.raises(NonEmptyGroup):
        _alter(groups, a=(1, 0))


def test_positions_are_deleted_in_two_steps(groups: Groups) -> None:
    groups.join("m", "a", "b")
    with pytest.raises(NonEmptyGroup):
        groups.shard.call(lambda machine, now, _: admin.delete_offsets(machine, "g", ["a"]))
    groups.beat("m", -1)
    first = groups.shard.call(lambda machine, now, _: admin.delete_offsets(machine, "g", ["a", "c"]))
    assert first.topics == {groups.id("a"): frozenset([0, 1])}
    assert [(each.topic_name, each.error_code) for each in first.errors] == [("c", 3)]
    # Whoever began did not come to an end: it can be begun again.
    again = groups.shard.call(lambda machine, now, _: admin.delete_offsets(machine, "g", ["a"]))
    assert again.topics == first.topics
    groups.shard.call(lambda machine, now, _: admin.offsets_deleted(machine, "g", [groups.id("a")]))
    assert groups.group.partitions.topic_ids() == {groups.id("b")}
    none = groups.shard.call(lambda machine, now, _: admin.delete_offsets(machine, "g", ["a"]))
    assert (none.topics, [each.error_code for each in none.errors]) == ({}, [3])


def test_a_group_is_deleted_after_its_states(groups: Groups) -> None:
    groups.join("m", "a")
    call = groups.shard.call
    assert call(lambda machine, now, _: admin.delete_states(machine, "g")) == {}
    with pytest.raises(NonEmptyGroup):
        call(lambda machine, now, _: machine.delete_group("g"))
    groups.beat("m", -1)
    states = call(lambda machine, now, _: admin.delete_states(machine, "g"))
    assert states == {groups.id("a"): frozenset([0, 1])}
    groups.take_types()
    call(lambda machine, now, _: machine.delete_group("g"))
    assert groups.take_types() == [-12, -15, -11]
    assert "g" not in groups.shard.machine.groups
    groups.shard.restart()
    assert "g" not in groups.shard.machine.groups
    assert call(lambda machine, now, _: admin.delete_states(machine, "g")) == {}


def test_a_topic_that_is_being_deleted_can_be_subscribed_to_again(groups: Groups) -> None:
    groups.join("m", "a")
    groups.beat("m", -1)
    groups.shard.call(lambda machine, now, _: admin.delete_offsets(machine, "g", ["a"]))
    groups.tick()
    heard = groups.heard("m", 0, "a")
    assert heard.initialize is not None
    assert groups.group.partitions.deleting == {}
