"""What groups and positions need: each API without a rule, with a part of it, with the least that does."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ottla.core.ids import Uuid
from ottla.protocol import errors
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
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
from ottla.protocol.messages.sync_group import SyncGroupRequest
from ottla.server.handlers.consumer_group_describe import consumer_group_describe
from ottla.server.handlers.consumer_group_heartbeat import consumer_group_heartbeat
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
from tests.unit.server.authorization.rules import (
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_T,
    DESCRIBE_U,
    READ_GROUP,
    READ_T,
    allow,
    allow_all,
    written,
)
from tests.unit.server.transactions.serving import Handler, ServingNode, run

GROUP = errors.GroupAuthorizationFailed.code
TOPIC = errors.TopicAuthorizationFailed.code
NO_ID = Uuid(b"\x77" * 16)


class GroupNode(ServingNode):
    """With topics `t` and `u`, and few partitions to coordinate groups in."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, offsets_topic_num_partitions="2", group_initial_rebalance_delay_ms="0")

    async def __aenter__(self) -> GroupNode:
        await super().__aenter__()
        await self.create("t")
        await self.create("u")
        return self

    def topic_id(self, name: str) -> Uuid:
        return self.node.image.topics[name].id

    async def commit(self, *topics: str, version: int = 9, group_id: str = "g", offset: int = 5) -> list[Any]:
        """The answers' topics, partition 0 and error, as somebody commits who is in no group."""
        request = OffsetCommitRequest(
            group_id=group_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    topic_id=self.node.image.topics[name].id if name in self.node.image.topics else NO_ID,
                    partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)],
                )
                for name in topics
            ],
        )
        response = await self.call(offset_commit, request, version)
        return [
            (topic.topic_id if version >= 10 else topic.name, [each.error_code for each in topic.partitions])
            for topic in response.topics
        ]

    async def committed(self, *topics: str) -> list[int]:
        """The positions as one who may do everything reads them."""
        authorizer, self.node.authorizer = self.node.authorizer, None
        asked = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in topics]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=asked)])
        (group,) = (await self.call(offset_fetch, request, 9)).groups
        self.node.authorizer = authorizer
        return [each.committed_offset for topic in group.topics for each in topic.partitions]

    async def join(self, **fields: Any) -> Any:
        usual: dict[str, Any] = {"group_id": "g", "session_timeout_ms": 10_000, "protocol_type": "consumer"}
        usual |= {"rebalance_timeout_ms": 60_000}
        usual["protocols"] = [JoinGroupRequestProtocol(name="range", metadata=b"m")]
        return await self.call(join_group, JoinGroupRequest(**usual | fields), 3)

    async def beat(self, **fields: Any) -> Any:
        """The heartbeat of a consumer."""
        usual: dict[str, Any] = {"group_id": "g", "member_id": "m"}
        return await self.call(consumer_group_heartbeat, ConsumerGroupHeartbeatRequest(**usual | fields), 1)

    async def join_consumers(self, **subscription: Any) -> Any:
        return await self.beat(rebalance_timeout_ms=60_000, topic_partitions=[], **subscription)


def tell(path: Path, story: Callable[[GroupNode], Coroutine[Any, Any, None]]) -> None:
    serving = GroupNode(path)
    run(serving, lambda _: story(serving))


# Handler, request of a member in generation 1, versions to ask in.
MEMBERS_SAY: list[tuple[Handler, Callable[[str], Any], tuple[int, ...]]] = [
    (
        sync_group,
        lambda member_id: SyncGroupRequest(
            group_id="g",
            generation_id=1,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
        ),
        (0, 5),
    ),
    (
        heartbeat,
        lambda member_id: HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id),
        (0, 4),
    ),
    (leave_group, lambda member_id: LeaveGroupRequest(group_id="g", member_id=member_id), (0, 2)),
    (
        leave_group,
        lambda member_id: LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)]),
        (3, 5),
    ),
]


def test_joining_takes_the_right_to_read_the_group(tmp_path: Path) -> None:
    async def story(serving: GroupNode) -> None:
        await serving.join(group_id="another")
        before = written(serving.node)
        allow(serving.node, DESCRIBE_GROUP)
        refused = await serving.join()
        assert (refused.error_code, refused.generation_id, refused.member_id) == (GROUP, -1, "")
        assert (written(serving.node), serving.node.authorizer is not None) == (before, True)
        allow(serving.node, READ_GROUP)
        assert (await serving.join()).error_code == 0
        assert (await serving.join(group_id="other")).error_code == GROUP

    tell(tmp_path, story)


@pytest.mark.parametrize(
    ("handler", "request_of", "version"),
    [
        pytest.param(handler, request_of, version, id=f"{handler.__name__}-{version}")
        for handler, request_of, versions in MEMBERS_SAY
        for version in versions
    ],
)
def test_being_a_member_takes_the_right_to_read_the_group(
    tmp_path: Path, handler: Handler, request_of: Callable[[str], Any], version: int
) -> None:
    async def story(serving: GroupNode) -> None:
        request = request_of((await serving.join()).member_id)
        before = written(serving.node)
        allow(serving.node, DESCRIBE_GROUP)
        assert (await serving.call(handler, request, version)).error_code == GROUP
        assert written(serving.node) == before
        allow(serving.node, READ_GROUP)
        assert (await serving.call(handler, request, version)).error_code == 0

    tell(tmp_path, story)


@pytest.mark.parametrize("version", [2, 9, 10])
def test_positions_are_committed_in_topics_that_may_be_read(tmp_path: Path, version: int) -> None:
    async def story(serving: GroupNode) -> None:
        t, u = [serving.topic_id(name) if version >= 10 else name for name in ("t", "u")]
        await serving.commit("t", group_id="another")
        before = written(serving.node)
        allow(serving.node, DESCRIBE_GROUP, READ_T)
        assert await serving.commit("t", "u", version=version) == [(t, [GROUP]), (u, [GROUP])]
        allow(serving.node, READ_GROUP, DESCRIBE_T)
        assert await serving.commit("t", "u", version=version) == [(t, [TOPIC]), (u, [TOPIC])]
        assert written(serving.node) == before
        allow(serving.node, READ_GROUP, READ_T)
        assert await serving.commit("u", "t", version=version) == [(u, [TOPIC]), (t, [0])]
        assert await serving.committed("t", "u") == [5, -1]

    tell(tmp_path, story)


def test_a_commit_does_not_tell_whether_a_topic_exists(tmp_path: Path) -> None:
    async def story(serving: GroupNode) -> None:
        allow(serving.node, READ_GROUP)
        assert await serving.commit("u", "missing") == [("u", [TOPIC]), ("missing", [TOPIC])]
        # Nobody has a rule for an id that is not that of any topic.
        unknown = errors.UnknownTopicId.code
        assert await serving.commit("missing", version=10) == [(NO_ID, [unknown])]

    tell(tmp_path, story)


@pytest.mark.parametrize("version", [1, 7, 9, 10])
def test_positions_are_read_in_topics_that_may_be_described(tmp_path: Path, version: int) -> None:
    async def story(serving: GroupNode) -> None:
        await serving.commit("t", "u")

        async def fetched() -> dict[str, tuple[int, int]]:
            topics = ("t", "u")
            if version >= 8:
                asked = [
                    OffsetFetchRequestTopics(
                        name=name, topic_id=serving.topic_id(name), partition_indexes=[0]
                    )
                    for name in topics
                ]
                request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=asked)])
            else:
                older = [OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in topics]
                request = OffsetFetchRequest(group_id="g", topics=older)
            response = await serving.call(offset_fetch, request, version)
            answer = response.groups[0] if version >= 8 else response
            if version >= 2 and answer.error_code:
                return {"g": (answer.error_code, len(answer.topics))}
            name_of = serving.node.image.topic_by_id
            return {
                name_of[topic.topic_id].name if version >= 10 else topic.name: (
                    each.error_code,
                    each.committed_offset,
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        allow(serving.node, DESCRIBE_T)
        if version < 2:  # there is no other place for the error
            assert await fetched() == {"t": (GROUP, -1), "u": (GROUP, -1)}
        else:
            assert await fetched() == {"g": (GROUP, 0)}
        allow(serving.node, DESCRIBE_GROUP)
        assert await fetched() == {"t": (TOPIC, -1), "u": (TOPIC, -1)}
        allow(serving.node, DESCRIBE_GROUP, DESCRIBE_T)
        assert await fetched() == {"t": (0, 5), "u": (TOPIC, -1)}

    tell(tmp_path, story)


@pytest.mark.parametrize("version", [2, 8, 10])
def test_all_positions_are_those_in_topics_that_may_be_described(tmp_path: Path, version: int) -> None:
    async def story(serving: GroupNode) -> None:
        await serving.commit("t", "u")
        allow(serving.node, DESCRIBE_GROUP, DESCRIBE_U)
        if version >= 8:
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
            (answer,) = (await serving.call(offset_fetch, request, version)).groups
        else:
            answer = await serving.call(offset_fetch, OffsetFetchRequest(group_id="g", topics=None), version)
        assert answer.error_code == 0
        known_as = [topic.topic_id if version >= 10 else topic.name for topic in answer.topics]
        assert known_as == [serving.topic_id("u") if version >= 10 else "u"]

    tell(tmp_path, story)


def test_positions_are_deleted_in_topics_that_may_be_read(tmp_path: Path) -> None:
    async def story(serving: GroupNode) -> None:
        await serving.commit("t", "u")
        request = OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequestTopic(
                    name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
                for name in ("t", "u", "missing")
            ],
        )

        async def deleted() -> Any:
            response = await serving.call(offset_delete, request, 0)
            answers = {topic.name: topic.partitions[0].error_code for topic in response.topics}
            return response.error_code or answers

        allow(serving.node, READ_GROUP, READ_T)
        assert await deleted() == GROUP
        allow(serving.node, DELETE_GROUP, DESCRIBE_T)
        assert await deleted() == {"t": TOPIC, "u": TOPIC, "missing": TOPIC}
        assert await serving.committed("t", "u") == [5, 5]
        allow(serving.node, DELETE_GROUP, READ_T)
        assert await deleted() == {"t": 0, "u": TOPIC, "missing": TOPIC}
        assert await serving.committed("t", "u") == [-1, 5]

    tell(tmp_path, story)


def test_a_classic_group_is_described_to_those_who_may(tmp_path: Path) -> None:
    async def story(serving: GroupNode) -> None:
        await serving.join()
        request = DescribeGroupsRequest(groups=["g", "missing"], include_authorized_operations=True)
        allow(serving.node)
        hidden, missing = (await serving.call(describe_groups, request, 6)).groups
        assert (hidden.error_code, hidden.group_state, hidden.members) == (GROUP, "", [])
        assert (missing.error_code, missing.group_state) == (GROUP, "")
        allow(serving.node, READ_GROUP)
        found, missing = (await serving.call(describe_groups, request, 6)).groups
        assert (found.error_code, len(found.members), missing.error_code) == (0, 1, GROUP)
        assert found.authorized_operations == 1 << 3 | 1 << 8  # READ, and so DESCRIBE

    tell(tmp_path, story)


def test_groups_are_listed_to_those_who_may_describe_them_or_the_cluster(tmp_path: Path) -> None:
    async def story(serving: GroupNode) -> None:
        await serving.commit("t")
        await serving.commit("t", group_id="h")

        async def listed() -> list[str]:
            response = await serving.call(list_groups, ListGroupsRequest(), 5)
            assert response.error_code == 0
            return sorted(group.group_id for group in response.groups)

        allow(serving.node)
        assert await listed() == []
        allow(serving.node, DESCRIBE_GROUP)
        assert await listed() == ["g"]
        allow(serving.node, DESCRIBE_CLUSTER)
        assert await listed() == ["g", "h"]

    tell(tmp_path, story)


def test_groups_are_deleted_by_those_who_may(tmp_path: Path) -> None:
    async def story(serving: GroupNode) -> None:
        await serving.commit("t")
        await serving.commit("t", group_id="h")
        request = DeleteGroupsRequest(groups_names=["g", "h"])

        async def deleted() -> dict[str, int]:
            response = await serving.call(delete_groups, request, 2)
            return {each.group_id: each.error_code for each in response.results}

        allow(serving.node, READ_GROUP)
        assert await deleted() == {"g": GROUP, "h": GROUP}
        assert await serving.committed("t") == [5]
        allow(serving.node, DELETE_GROUP)
        assert await deleted() == {"g": 0, "h": GROUP}
        allow_all(serving.node)
        assert await deleted() == {"g": errors.GroupIdNotFound.code, "h": 0}

    tell(tmp_path, story)


def test_consumers_read_the_group_and_may_describe_what_they_subscribe_to(tmp_path: Path) -> None:
    async def story(serving: GroupNode) -> None:
        await serving.commit("t", group_id="another")
        before = written(serving.node)
        allow(serving.node, DESCRIBE_GROUP, DESCRIBE_T)
        assert (await serving.join_consumers(subscribed_topic_names=["t"])).error_code == GROUP
        allow(serving.node, READ_GROUP)
        assert (await serving.join_consumers(subscribed_topic_names=["t"])).error_code == TOPIC
        allow(serving.node, READ_GROUP, DESCRIBE_T)
        assert (await serving.join_consumers(subscribed_topic_names=["t", "missing"])).error_code == TOPIC
        assert written(serving.node) == before
        joined = await serving.join_consumers(subscribed_topic_names=["t"])
        assert (joined.error_code, len(joined.assignment.topic_partitions)) == (0, 1)
        # A heartbeat that names no topics needs no right to any.
        allow(serving.node, READ_GROUP)
        assert (await serving.beat(member_epoch=joined.member_epoch)).error_code == 0

    tell(tmp_path, story)


def test_an_expression_finds_the_topics_that_may_be_described(tmp_path: Path) -> None:
    async def story(serving: GroupNode) -> None:
        allow(serving.node, READ_GROUP, DESCRIBE_U)
        joined = await serving.join_consumers(subscribed_topic_regex="t|u")
        assert [each.topic_id for each in joined.assignment.topic_partitions] == [serving.topic_id("u")]

    tell(tmp_path, story)


def test_a_consumer_group_is_described_to_those_who_may_describe_its_topics(tmp_path: Path) -> None:
    async def story(serving: GroupNode) -> None:
        await serving.join_consumers(subscribed_topic_names=["t", "u", "missing"])
        request = ConsumerGroupDescribeRequest(group_ids=["g", ""], include_authorized_operations=True)

        async def described() -> list[Any]:
            return list((await serving.call(consumer_group_describe, request, 1)).groups)

        allow(serving.node, DESCRIBE_T, DESCRIBE_U)
        assert [each.error_code for each in await described()] == [GROUP, GROUP]
        allow(serving.node, DESCRIBE_GROUP, DESCRIBE_T)
        hidden, _ = await described()
        assert (hidden.error_code, hidden.group_id, hidden.group_state) == (TOPIC, "g", "")
        assert (hidden.members, hidden.authorized_operations) == ([], -(1 << 31))
        assert hidden.error_message == (
            "The group has described topic(s) that the client is not authorized to describe."
        )
        allow(serving.node, DESCRIBE_GROUP, DESCRIBE_T, DESCRIBE_U)
        found, _ = await described()
        assert (found.error_code, len(found.members), found.authorized_operations) == (0, 1, 1 << 8)

    tell(tmp_path, story)
