"""What share groups need: each API without a rule, with a part of it, with the least that does.

The state of share partitions is kept by APIs that only brokers may call. A member that is served by them does
not call them itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.core.ids import ZERO_UUID
from ottla.protocol import errors
from ottla.protocol.messages import share_fetch
from ottla.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from ottla.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.server.handlers.alter_share_group_offsets import alter_share_group_offsets
from ottla.server.handlers.delete_groups import delete_groups
from ottla.server.handlers.delete_share_group_offsets import delete_share_group_offsets
from ottla.server.handlers.describe_share_group_offsets import describe_share_group_offsets
from ottla.server.handlers.share_acknowledge import share_acknowledge
from ottla.server.handlers.share_group_describe import share_group_describe
from tests.unit.server.authorization.rules import (
    CLUSTER_ACTION,
    DELETE_GROUP,
    DESCRIBE_GROUP,
    DESCRIBE_T,
    READ_GROUP,
    READ_T,
    allow,
    allow_all,
    written,
)
from tests.unit.server.share.sharing import Member, SharingNode, offsets, run
from tests.unit.server.share.test_share_apis import STATE_APIS

CLUSTER = errors.ClusterAuthorizationFailed.code
GROUP = errors.GroupAuthorizationFailed.code
TOPIC = errors.TopicAuthorizationFailed.code
ACCEPT = 1


@pytest.mark.parametrize("api", STATE_APIS, ids=lambda api: api[0].__name__)
def test_the_state_of_share_partitions_is_for_brokers(tmp_path: Path, api: Any) -> None:
    handler, request, topic, partition, last = api

    async def story(serving: SharingNode) -> None:
        topic_id = await serving.create("t")
        await (await Member(serving).join()).fetch(wait_ms=0)
        asked = request(
            group_id="g",
            topics=[topic(topic_id=topic_id, partitions=[partition(partition=0), partition(partition=1)])],
        )
        for version in range(last + 1):
            before = written(serving.node)
            allow(serving.node, READ_GROUP, READ_T, DELETE_GROUP)
            (refused,) = (await serving.call(handler, asked, version)).results
            assert refused.topic_id == topic_id
            assert [(each.partition, each.error_code) for each in refused.partitions] == [
                (0, CLUSTER),
                (1, CLUSTER),
            ]
            assert written(serving.node) == before
            allow(serving.node, CLUSTER_ACTION)
            (done,) = (await serving.call(handler, asked, version)).results
            assert CLUSTER not in [each.error_code for each in done.partitions]

    run(SharingNode(tmp_path), story)


def test_a_member_needs_the_group_and_to_describe_its_topics(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await serving.create("t")
        await Member(serving, topic="t").join()
        before = written(serving.node)
        member = Member(serving, "another")
        allow(serving.node, DESCRIBE_GROUP, DESCRIBE_T)
        assert (await member.beat()).error_code == GROUP
        allow(serving.node, READ_GROUP)
        assert (await member.beat()).error_code == TOPIC
        assert written(serving.node) == before
        allow(serving.node, READ_GROUP, DESCRIBE_T)
        assert (await member.beat()).error_code == 0
        # A heartbeat that names no topics needs no right to any.
        allow(serving.node, READ_GROUP)
        assert (await member.beat()).error_code == 0

    run(SharingNode(tmp_path), story)


def test_a_member_needs_nothing_but_to_read_the_group_and_the_topic(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await serving.create("t")
        await serving.configure("g", share_auto_offset_reset="earliest")
        serving.produce("t", 3)
        allow(serving.node, READ_GROUP, READ_T)
        member = await Member(serving).join()
        assert offsets(await member.fetch()) == [0, 1, 2]
        assert await member.acknowledge(0, 2, ACCEPT) == 0

    run(SharingNode(tmp_path), story)


def test_records_are_of_topics_that_may_be_read(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        t, u = await serving.create("t"), await serving.create("u")
        await serving.configure("g", share_auto_offset_reset="earliest")
        serving.produce("t", 3)
        serving.produce("u", 3)
        for topic in ("t", "u"):
            await Member(serving, f"member of {topic}", topic).join()
        both = [
            share_fetch.FetchTopic(
                topic_id=topic_id, partitions=[share_fetch.FetchPartition(partition_index=0)]
            )
            for topic_id in (t, u)
        ]
        member = Member(serving, "member of t")

        allow(serving.node, DESCRIBE_GROUP, READ_T)
        assert (await member.start_fetch(topics=both)).error_code == GROUP
        allow(serving.node, READ_GROUP, DESCRIBE_T)
        # There is nothing to wait for, and so it does not.
        refused = await member.start_fetch(topics=both, wait_ms=600_000)
        assert {
            topic.topic_id: [(each.error_code, each.acquired_records) for each in topic.partitions]
            for topic in refused.responses
        } == {t: [(TOPIC, [])], u: [(TOPIC, [])]}
        member.session_epoch = 1
        allow(serving.node, READ_GROUP, READ_T)
        partly = await member.start_fetch(topics=[], wait_ms=5_000)
        answers = {topic.topic_id: topic.partitions[0] for topic in partly.responses}
        assert (answers[u].error_code, answers[u].acquired_records) == (TOPIC, [])
        assert (answers[t].error_code, offsets(answers[t])) == (0, [0, 1, 2])

    run(SharingNode(tmp_path), story)


def test_records_are_acknowledged_of_topics_that_may_be_read(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        topic_id = await serving.create("t")
        await serving.configure("g", share_auto_offset_reset="earliest")
        serving.produce("t", 3)
        member = await Member(serving).join()
        assert offsets(await member.fetch()) == [0, 1, 2]
        before = written(serving.node)

        allow(serving.node, DESCRIBE_GROUP, READ_T)
        request = ShareAcknowledgeRequest(
            group_id="g",
            member_id=member.name,
            share_session_epoch=1,
            topics=[
                AcknowledgeTopic(
                    topic_id=topic_id,
                    partitions=[
                        AcknowledgePartition(
                            partition_index=index,
                            acknowledgement_batches=[
                                AcknowledgementBatch(
                                    first_offset=0, last_offset=2, acknowledge_types=[ACCEPT]
                                )
                            ],
                        )
                        for index in (0, 9)
                    ],
                )
            ],
        )
        refused = await serving.call(share_acknowledge, request, 2, member.connection)
        assert (refused.error_code, refused.responses) == (GROUP, [])
        allow(serving.node, READ_GROUP, DESCRIBE_T)
        answer = await serving.call(share_acknowledge, request, 2, member.connection)
        assert [each.error_code for each in answer.responses[0].partitions] == [TOPIC, TOPIC]
        # With a fetch as well, and there it is not the error of the fetch.
        member.session_epoch = 2
        asked = share_fetch.FetchTopic(
            topic_id=topic_id,
            partitions=[
                share_fetch.FetchPartition(
                    partition_index=0,
                    acknowledgement_batches=[
                        share_fetch.AcknowledgementBatch(
                            first_offset=0, last_offset=2, acknowledge_types=[ACCEPT]
                        )
                    ],
                )
            ],
        )
        fetched = await member.start_fetch(topics=[asked])
        (data,) = fetched.responses[0].partitions
        assert (data.error_code, data.acknowledge_error_code) == (TOPIC, TOPIC)
        assert written(serving.node) == before

        member.session_epoch = 3
        allow(serving.node, READ_GROUP, READ_T)
        assert await member.acknowledge(0, 2, ACCEPT) == 0
        assert written(serving.node) > before

    run(SharingNode(tmp_path), story)


def test_a_share_group_is_described_to_those_who_may_describe_its_topics(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await serving.create("t")
        await Member(serving).join()
        request = ShareGroupDescribeRequest(group_ids=["g", ""], include_authorized_operations=True)

        async def described() -> list[Any]:
            return list((await serving.call(share_group_describe, request, 1)).groups)

        allow(serving.node, DESCRIBE_T)
        assert [each.error_code for each in await described()] == [GROUP, GROUP]
        allow(serving.node, DESCRIBE_GROUP)
        hidden, _ = await described()
        assert (hidden.error_code, hidden.group_id, hidden.group_state) == (TOPIC, "g", "")
        assert (hidden.members, hidden.authorized_operations) == ([], -(1 << 31))
        allow(serving.node, DESCRIBE_GROUP, DESCRIBE_T)
        found, _ = await described()
        assert (found.error_code, len(found.members), found.authorized_operations) == (0, 1, 1 << 8)

    run(SharingNode(tmp_path), story)


async def with_positions(serving: SharingNode) -> None:
    """A share group without members that has begun at offset 2 of topics `t` and `u`."""
    await serving.create("t")
    await serving.create("u")
    assert await altered(serving) == {"t": 0, "u": 0}


async def altered(serving: SharingNode, offset: int = 2) -> Any:
    request = AlterShareGroupOffsetsRequest(
        group_id="g",
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=offset)],
            )
            for name in ("t", "u")
        ],
    )
    response = await serving.call(alter_share_group_offsets, request, 0)
    hidden = [topic for topic in response.responses if topic.partitions[0].error_code]
    assert all(topic.topic_id == ZERO_UUID for topic in hidden)
    answers = {topic.topic_name: topic.partitions[0].error_code for topic in response.responses}
    return response.error_code or answers


async def positions(serving: SharingNode, *topics: str) -> Any:
    named = [DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0]) for name in topics]
    request = DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=named or None)]
    )
    (group,) = (await serving.call(describe_share_group_offsets, request, 1)).groups
    return group.error_code or {
        topic.topic_name: topic.partitions[0].error_code or topic.partitions[0].start_offset
        for topic in group.topics
    }


def test_positions_are_described_in_topics_that_may_be(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await with_positions(serving)
        allow(serving.node, DESCRIBE_T)
        assert [await positions(serving, "t", "u"), await positions(serving)] == [GROUP, GROUP]
        allow(serving.node, DESCRIBE_GROUP, DESCRIBE_T)
        assert await positions(serving, "u", "missing", "t") == {"t": 2, "u": TOPIC, "missing": TOPIC}
        assert await positions(serving) == {"t": 2}

    run(SharingNode(tmp_path), story)


def test_positions_are_altered_in_topics_that_may_be_read(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await with_positions(serving)
        before = written(serving.node)
        allow(serving.node, DELETE_GROUP, READ_T)
        assert await altered(serving, 3) == GROUP
        allow(serving.node, READ_GROUP, DESCRIBE_T)
        assert await altered(serving, 3) == {"t": TOPIC, "u": TOPIC}
        assert written(serving.node) == before
        allow(serving.node, READ_GROUP, READ_T)
        assert await altered(serving, 3) == {"t": 0, "u": TOPIC}
        allow_all(serving.node)
        assert await positions(serving) == {"t": 3, "u": 2}

    run(SharingNode(tmp_path), story)


def test_positions_are_deleted_in_topics_that_may_be_read(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await with_positions(serving)
        request = DeleteShareGroupOffsetsRequest(
            group_id="g",
            topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in ("t", "u", "missing")],
        )

        async def deleted() -> Any:
            response = await serving.call(delete_share_group_offsets, request, 0)
            answers = {topic.topic_name: topic.error_code for topic in response.responses}
            return response.error_code or answers

        before = written(serving.node)
        allow(serving.node, READ_GROUP, READ_T)
        assert await deleted() == GROUP
        allow(serving.node, DELETE_GROUP, DESCRIBE_T)
        assert await deleted() == {"t": TOPIC, "u": TOPIC, "missing": TOPIC}
        assert written(serving.node) == before
        allow(serving.node, DELETE_GROUP, READ_T)
        assert await deleted() == {"t": 0, "u": TOPIC, "missing": TOPIC}
        allow_all(serving.node)
        assert await positions(serving) == {"u": 2}

    run(SharingNode(tmp_path), story)


def test_a_share_group_is_deleted_with_its_state_by_those_who_may(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await with_positions(serving)
        request = DeleteGroupsRequest(groups_names=["g"])
        allow(serving.node, READ_GROUP, READ_T)
        assert (await serving.call(delete_groups, request, 2)).results[0].error_code == GROUP
        allow(serving.node, DELETE_GROUP)
        assert (await serving.call(delete_groups, request, 2)).results[0].error_code == 0
        allow_all(serving.node)
        assert await positions(serving) == {}

    run(SharingNode(tmp_path), story)
