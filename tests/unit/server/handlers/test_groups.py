"""The handlers of groups and positions: every version, on a shard in memory.

What a group does is tested in tests/unit/groups and tests/scenarios; here is what the handlers add to it,
which is the versions, and the errors that come before any group is reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.config.broker import BrokerSettings
from ottla.core.ids import ZERO_UUID, Uuid
from ottla.groups.shard import GroupMachine
from ottla.protocol.errors import CoordinatorLoadInProgress, KafkaError, NotCoordinator
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.server.handlers.delete_groups import delete_groups
from ottla.server.handlers.describe_groups import describe_groups
from ottla.server.handlers.heartbeat import heartbeat
from ottla.server.handlers.join_group import join_group
from ottla.server.handlers.leave_group import leave_group
from ottla.server.handlers.list_groups import list_groups
from ottla.server.handlers.offset_commit import offset_commit
from ottla.server.handlers.offset_delete import offset_delete
from ottla.server.handlers.offset_fetch import offset_fetch
from ottla.server.handlers.sync_group import sync_group
from ottla.testing.group_scenario import ScenarioTopics
from ottla.testing.shard import MemoryShard


class GroupsInMemory:
    """A coordinator with one shard, where waiting is time passing. `error` is for all who call."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self.topics = ScenarioTopics()
        self.topics.add("t", 3)
        self._ids = 0
        settings = BrokerSettings()
        self.shard = MemoryShard(
            lambda: GroupMachine(settings=lambda: settings, topics=self.topics, new_id=self._new_id)
        )

    def _new_id(self) -> Uuid:
        self._ids += 1
        return Uuid(self._ids.to_bytes(16, "big"))

    async def call(self, key: str, command: Callable[..., Any], *, transaction: Any = (-1, -1)) -> Any:
        if self.error is not None:
            raise self.error
        ticket = self.shard.run(command, transaction=transaction)
        while ticket.waits:
            await asyncio.sleep(0)
            self.shard.advance(1_000)
        if ticket.error is not None:
            raise ticket.error
        return ticket.reply

    async def call_all(self, command: Callable[..., Any]) -> list[Any]:
        return [await self.call("", command)]


@pytest.fixture
def broker(node: Any) -> Any:
    node.groups = GroupsInMemory()
    return node


def join(broker: Any, version: int, **fields: Any) -> Any:
    usual: dict[str, Any] = {"group_id": "g", "session_timeout_ms": 10_000, "protocol_type": "consumer"}
    usual["protocols"] = [JoinGroupRequestProtocol(name="range", metadata=b"m")]
    if version >= 1:
        usual["rebalance_timeout_ms"] = 60_000
    return broker.call(join_group, JoinGroupRequest(**usual | fields), version)


def stable(broker: Any) -> str:
    """A group of one member; its id."""
    member_id: str = join(broker, 3).member_id
    request = SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=member_id,
        assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")],
    )
    assert broker.call(sync_group, request, 3).assignment == b"all"
    return member_id


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_syncs_beats_and_leaves_in_every_version(broker: Any, version: int) -> None:
    first = join(broker, version)
    if version >= 4:
        assert (first.error_code, first.generation_id, first.leader, first.members) == (79, -1, "", [])
        assert first.protocol_name == ("" if version < 7 else None)
        first = join(broker, version, member_id=first.member_id)
    assert (first.error_code, first.generation_id, first.leader) == (0, 1, first.member_id)
    assert first.member_id.startswith("test-")
    assert [(each.member_id, each.metadata) for each in first.members] == [(first.member_id, b"m")]
    assert first.protocol_type == ("consumer" if version >= 7 else None)

    assignments = [SyncGroupRequestAssignment(member_id=first.member_id, assignment=b"all")]
    request = SyncGroupRequest(
        group_id="g", generation_id=1, member_id=first.member_id, assignments=assignments
    )
    synced = broker.call(sync_group, request, min(version, 5))
    assert (synced.error_code, synced.assignment) == (0, b"all")
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=first.member_id)
    assert broker.call(heartbeat, beat, min(version, 4)).error_code == 0
    if version < 3:
        leave = LeaveGroupRequest(group_id="g", member_id=first.member_id)
    else:
        leave = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=first.member_id)])
    left = broker.call(leave_group, leave, min(version, 5))
    assert left.error_code == 0
    assert [each.error_code for each in left.members] == ([] if version < 3 else [0])
    assert broker.call(heartbeat, beat, min(version, 4)).error_code == 25


@pytest.mark.parametrize("version", range(6))
def test_leaving_without_being_a_member_is_an_error_of_the_member(broker: Any, version: int) -> None:
    stable(broker)
    for group_id in ("g", "unknown"):
        if version < 3:
            request = LeaveGroupRequest(group_id=group_id, member_id="nobody")
            assert broker.call(leave_group, request, version).error_code == 25
        else:
            members = [MemberIdentity(member_id="nobody"), MemberIdentity(group_instance_id="none")]
            response = broker.call(
                leave_group, LeaveGroupRequest(group_id=group_id, members=members), version
            )
            assert response.error_code == 0
            assert [(each.member_id, each.group_instance_id) for each in response.members] == [
                ("nobody", None),
                ("", "none"),
            ]
            assert [each.error_code for each in response.members] == [25, 25]


def commit_request(broker: Any, version: int, offset: int = 5) -> OffsetCommitRequest:
    topic_id = broker.groups.topics.topic_id("t") if version >= 10 else ZERO_UUID
    topic = OffsetCommitRequestTopic(
        name="t" if version < 10 else "",
        topic_id=topic_id,
        partitions=[OffsetCommitRequestPartition(partition_index=1, committed_offset=offset)],
    )
    return OffsetCommitRequest(group_id="g", topics=[topic])


def fetch_request(broker: Any, version: int, *, everything: bool = False) -> OffsetFetchRequest:
    if version < 8:
        topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
        return OffsetFetchRequest(group_id="g", topics=None if everything else topics)
    topic_id = broker.groups.topics.topic_id("t") if version >= 10 else ZERO_UUID
    asked = [
        OffsetFetchRequestTopics(
            name="t" if version < 10 else "", topic_id=topic_id, partition_indexes=[0, 1]
        )
    ]
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id="g", topics=None if everything else asked),
            OffsetFetchRequestGroup(group_id="other", topics=None if everything else asked),
        ]
    )


@pytest.mark.parametrize("version", range(11))
def test_positions_are_committed_in_every_version(broker: Any, version: int) -> None:
    response = broker.call(offset_commit, commit_request(broker, version), version)
    [topic] = response.topics
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [(1, 0)]
    assert (topic.name, topic.topic_id) == (
        ("t", ZERO_UUID) if version < 10 else ("", broker.groups.topics.topic_id("t"))
    )
    position = broker.groups.shard.machine.offsets.get("g", "t", 1)
    assert position is not None and position.offset == 5


@pytest.mark.parametrize("version", range(11))
def test_positions_are_fetched_in_every_version(broker: Any, version: int) -> None:
    broker.call(offset_commit, commit_request(broker, 9), 9)
    response = broker.call(offset_fetch, fetch_request(broker, version), version)
    if version < 8:
        [topic] = response.topics
        assert response.groups == []
    else:
        [topic], [other] = (group.topics for group in response.groups)
        assert [group.group_id for group in response.groups] == ["g", "other"]
        assert [each.committed_offset for each in other.partitions] == [-1, -1]
    assert [(each.partition_index, each.committed_offset) for each in topic.partitions] == [(0, -1), (1, 5)]
    assert (topic.name == "t") == (version < 10)


@pytest.mark.parametrize("version", range(2, 11))
def test_all_positions_are_fetched_from_version_2_on(broker: Any, version: int) -> None:
    broker.call(offset_commit, commit_request(broker, 9), 9)
    response = broker.call(offset_fetch, fetch_request(broker, version, everything=True), version)
    topics = response.topics if version < 8 else response.groups[0].topics
    assert [[each.committed_offset for each in topic.partitions] for topic in topics] == [[5]]
    if version >= 8:
        assert response.groups[1].topics == []


@pytest.mark.parametrize("version", range(11))
def test_an_error_of_the_coordinator_is_told_where_the_version_has_a_place_for_it(
    broker: Any, version: int
) -> None:
    broker.groups.error = NotCoordinator()
    response = broker.call(offset_fetch, fetch_request(broker, version), version)
    if version < 2:
        assert [each.error_code for each in response.topics[0].partitions] == [16, 16]
    elif version < 8:
        assert (response.error_code, response.topics) == (16, [])
    else:
        assert [(group.error_code, group.topics) for group in response.groups] == [(16, []), (16, [])]
    response = broker.call(offset_commit, commit_request(broker, version), version)
    assert [each.error_code for each in response.topics[0].partitions] == [16]


def test_every_handler_passes_on_that_the_coordinator_is_elsewhere(broker: Any) -> None:
    broker.groups.error = NotCoordinator()
    assert join(broker, 9).error_code == 16
    assert broker.call(sync_group, SyncGroupRequest(group_id="g")).error_code == 16
    assert broker.call(heartbeat, HeartbeatRequest(group_id="g")).error_code == 16
    assert broker.call(leave_group, LeaveGroupRequest(group_id="g")).error_code == 16
    assert broker.call(offset_delete, OffsetDeleteRequest(group_id="g")).error_code == 16
    assert broker.call(list_groups, ListGroupsRequest()).error_code == 16
    response = broker.call(delete_groups, DeleteGroupsRequest(groups_names=["g", "h"]))
    assert [(each.group_id, each.error_code) for each in response.results] == [("g", 16), ("h", 16)]
    response = broker.call(describe_groups, DescribeGroupsRequest(groups=["g"]))
    assert [(each.group_id, each.error_code) for each in response.groups] == [("g", 16)]


def test_a_heartbeat_to_a_coordinator_that_loads_is_fine(broker: Any) -> None:
    broker.groups.error = CoordinatorLoadInProgress()
    assert broker.call(heartbeat, HeartbeatRequest(group_id="g")).error_code == 0
    assert broker.call(sync_group, SyncGroupRequest(group_id="g")).error_code == 14


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described_in_every_version(broker: Any, version: int) -> None:
    member_id = stable(broker)
    request = DescribeGroupsRequest(groups=["g", "missing"])
    if version >= 3:
        request.include_authorized_operations = True
    found, missing = broker.call(describe_groups, request, version).groups
    assert (found.error_code, found.group_state, found.protocol_type) == (0, "Stable", "consumer")
    [member] = found.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "test", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"m", b"all")
    assert (missing.group_id, missing.group_state) == ("missing", "Dead")
    if version >= 3:
        # read, delete, describe, describe configs, alter configs
        assert found.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    if version >= 6:
        assert (missing.error_code, missing.error_message) == (69, "Group missing not found.")
    else:
        assert missing.error_code == 0


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_in_every_version(broker: Any, version: int) -> None:
    stable(broker)
    [group] = broker.call(list_groups, ListGroupsRequest(), version).groups
    assert (group.group_id, group.protocol_type) == ("g", "consumer")
    assert group.group_state == ("Stable" if version >= 4 else "")
    assert group.group_type == ("classic" if version >= 5 else "")
    if version >= 4:
        assert broker.call(list_groups, ListGroupsRequest(states_filter=["empty"]), version).groups == []
    if version >= 5:
        assert broker.call(list_groups, ListGroupsRequest(types_filter=["share"]), version).groups == []


@pytest.mark.parametrize("version", range(3))
def test_groups_are_deleted_in_every_version(broker: Any, version: int) -> None:
    stable(broker)
    request = commit_request(broker, 9)
    request.group_id = "simple"
    broker.call(offset_commit, request, 9)
    names = ["g", "missing", "simple", "simple"]
    response = broker.call(delete_groups, DeleteGroupsRequest(groups_names=names), version)
    assert {each.group_id: each.error_code for each in response.results} == {
        "g": 68,
        "missing": 69,
        "simple": 0,
    }
    assert len(response.results) == 3


def test_positions_are_deleted(broker: Any) -> None:
    broker.call(offset_commit, commit_request(broker, 9), 9)
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (1, 9)]
    request = OffsetDeleteRequest(
        group_id="g", topics=[OffsetDeleteRequestTopic(name="t", partitions=partitions)]
    )
    response = broker.call(offset_delete, request)
    assert response.error_code == 0
    assert [each.error_code for each in response.topics[0].partitions] == [0, 3]
    assert broker.groups.shard.machine.offsets.by_group == {}
    request.group_id = "missing"
    assert broker.call(offset_delete, request).error_code == 69
