"""The APIs around share groups, every version: state, positions, descriptions, deletion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol import errors
from ottla.protocol.messages import (
    delete_share_group_state as deleting,
)
from ottla.protocol.messages import (
    initialize_share_group_state as initializing,
)
from ottla.protocol.messages import (
    read_share_group_state as reading,
)
from ottla.protocol.messages import (
    read_share_group_state_summary as summing,
)
from ottla.protocol.messages import (
    write_share_group_state as writing,
)
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
from ottla.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.server.handlers.alter_share_group_offsets import alter_share_group_offsets
from ottla.server.handlers.delete_groups import delete_groups
from ottla.server.handlers.delete_share_group_offsets import delete_share_group_offsets
from ottla.server.handlers.delete_share_group_state import delete_share_group_state
from ottla.server.handlers.describe_share_group_offsets import describe_share_group_offsets
from ottla.server.handlers.initialize_share_group_state import initialize_share_group_state
from ottla.server.handlers.read_share_group_state import read_share_group_state
from ottla.server.handlers.read_share_group_state_summary import read_share_group_state_summary
from ottla.server.handlers.share_group_describe import share_group_describe
from ottla.server.handlers.write_share_group_state import write_share_group_state
from tests.unit.server.share.sharing import Handler, Member, SharingNode, offsets, run

# Handler, request, topic, partition and the last version of each API of the share coordinator.
STATE_APIS: list[tuple[Handler, Any, Any, Any, int]] = [
    (
        initialize_share_group_state,
        initializing.InitializeShareGroupStateRequest,
        initializing.InitializeStateData,
        initializing.PartitionData,
        0,
    ),
    (
        read_share_group_state,
        reading.ReadShareGroupStateRequest,
        reading.ReadStateData,
        reading.PartitionData,
        0,
    ),
    (
        write_share_group_state,
        writing.WriteShareGroupStateRequest,
        writing.WriteStateData,
        writing.PartitionData,
        1,
    ),
    (
        delete_share_group_state,
        deleting.DeleteShareGroupStateRequest,
        deleting.DeleteStateData,
        deleting.PartitionData,
        0,
    ),
    (
        read_share_group_state_summary,
        summing.ReadShareGroupStateSummaryRequest,
        summing.ReadStateSummaryData,
        summing.PartitionData,
        1,
    ),
]


@pytest.mark.parametrize("api", STATE_APIS, ids=lambda api: api[0].__name__)
def test_a_request_for_state_that_names_nothing_is_answered_with_nothing(tmp_path: Path, api: Any) -> None:
    handler, request, topic, partition, last = api

    async def story(serving: SharingNode) -> None:
        topic_id = await serving.create("t")
        full = topic(topic_id=topic_id, partitions=[partition(partition=0)])
        for version in range(last + 1):
            for nothing in (
                request(group_id="g", topics=[]),
                request(group_id="", topics=[full]),
                request(group_id="g", topics=[full, topic(topic_id=topic_id, partitions=[])]),
            ):
                assert (await serving.call(handler, nothing, version)).results == []

    run(SharingNode(tmp_path), story)


@pytest.mark.parametrize("api", STATE_APIS, ids=lambda api: api[0].__name__)
def test_state_is_refused_partition_by_partition(tmp_path: Path, api: Any) -> None:
    handler, request, topic, partition, last = api

    async def story(serving: SharingNode) -> None:
        topic_id = await serving.create("t")
        asked = request(
            group_id="g",
            topics=[
                topic(topic_id=topic_id, partitions=[partition(partition=-1), partition(partition=7)]),
                topic(topic_id=Uuid(b"x" * 16), partitions=[partition(partition=0)]),
            ],
        )
        for version in range(last + 1):
            known, unknown = (await serving.call(handler, asked, version)).results
            codes = [each.error_code for each in (*known.partitions, *unknown.partitions)]
            assert codes[0] == errors.InvalidRequest.code
            assert set(codes[1:]) <= {errors.UnknownTopicOrPartition.code, errors.InvalidRequest.code}
            assert [each.partition for each in known.partitions] == [-1, 7]
            assert all(each.error_message for each in known.partitions)

    run(SharingNode(tmp_path), story)


async def _read_half(serving: SharingNode) -> Member:
    """A group that has accepted two of four records, and has gone."""
    await serving.create("t")
    await serving.configure("g", share_auto_offset_reset="earliest")
    serving.produce("t", 2, 2)
    member = await Member(serving).join()
    assert offsets(await member.fetch(most=2)) == [0, 1]
    assert await member.acknowledge(0, 1, 1) == 0
    return member


async def _leave(member: Member) -> None:
    member.connection.lose()
    member.epoch = -1
    assert (await member.beat()).error_code == 0


def test_positions_are_described_in_every_version(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await _read_half(serving)
        topics = [
            DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0, 7]),
            DescribeShareGroupOffsetsRequestTopic(topic_name="unheard-of", partitions=[0]),
        ]
        request = DescribeShareGroupOffsetsRequest(
            groups=[
                DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=topics),
                DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None),
                DescribeShareGroupOffsetsRequestGroup(group_id="nobody", topics=None),
            ]
        )
        for version in (0, 1):
            named, every, none = (await serving.call(describe_share_group_offsets, request, version)).groups
            known, unknown = named.topics
            lag = 2 if version else -1
            assert [(one.start_offset, one.lag) for one in known.partitions] == [(0, lag), (-1, -1)]
            assert (unknown.topic_id, unknown.partitions[0].start_offset) == (ZERO_UUID, -1)
            assert [(one.start_offset, one.lag) for one in every.topics[0].partitions] == [(0, lag)]
            assert (none.error_code, none.topics) == (0, [])

    run(SharingNode(tmp_path), story)


def _altering(group: str, *topics: tuple[str, int, int]) -> AlterShareGroupOffsetsRequest:
    return AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                ],
            )
            for name, index, offset in topics
        ],
    )


def test_positions_are_altered_of_a_group_nobody_is_in(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _read_half(serving)
        response = await serving.call(alter_share_group_offsets, _altering("g", ("t", 0, 1)), 0)
        assert response.error_code == errors.NonEmptyGroup.code
        response = await serving.call(alter_share_group_offsets, _altering("", ("t", 0, 1)), 0)
        assert response.error_code == errors.InvalidGroupId.code
        await _leave(member)
        request = _altering("g", ("t", 0, 1), ("t", 7, 1), ("unheard-of", 0, 1))
        response = await serving.call(alter_share_group_offsets, request, 0)
        codes = [one.error_code for topic in response.responses for one in topic.partitions]
        assert (response.error_code, codes) == (0, [0, 3, 3])
        back = await Member(serving, "back").join()
        assert offsets(await back.fetch()) == [1, 2, 3]

    run(SharingNode(tmp_path), story)


def test_a_group_may_be_given_positions_before_it_exists(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await serving.create("t")
        serving.produce("t", 2, 2)
        response = await serving.call(alter_share_group_offsets, _altering("g", ("t", 0, 3)), 0)
        assert [one.error_code for topic in response.responses for one in topic.partitions] == [0]
        member = await Member(serving).join()
        assert offsets(await member.fetch()) == [3]

    run(SharingNode(tmp_path), story)


def test_positions_and_groups_are_deleted(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        member = await _read_half(serving)

        async def delete_offsets(group: str, *names: str) -> Any:
            topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
            request = DeleteShareGroupOffsetsRequest(group_id=group, topics=topics)
            return await serving.call(delete_share_group_offsets, request, 0)

        async def delete_group() -> int:
            request = DeleteGroupsRequest(groups_names=["g"])
            (result,) = (await serving.call(delete_groups, request, 2)).results
            return int(result.error_code)

        assert (await delete_offsets("g", "t")).error_code == errors.NonEmptyGroup.code
        assert (await delete_offsets("nobody", "t")).error_code == errors.GroupIdNotFound.code
        assert (await delete_offsets("", "t")).error_code == errors.InvalidGroupId.code
        assert await delete_group() == errors.NonEmptyGroup.code
        await _leave(member)
        response = await delete_offsets("g", "t", "unheard-of")
        answers = {one.topic_name: one.error_code for one in response.responses}
        assert answers == {"t": 0, "unheard-of": 3}
        back = await Member(serving, "back").join()
        assert offsets(await back.fetch()) == [0, 1, 2, 3]
        await _leave(back)
        assert await delete_group() == 0
        assert await delete_group() == errors.GroupIdNotFound.code
        for _, machine in serving.node.share_state.partitions():
            assert not machine._states

    run(SharingNode(tmp_path), story)


def test_groups_are_described_one_by_one(tmp_path: Path) -> None:
    async def story(serving: SharingNode) -> None:
        await _read_half(serving)
        request = ShareGroupDescribeRequest(group_ids=["g", "nobody", ""])
        known, unknown, unnamed = (await serving.call(share_group_describe, request, 1)).groups
        assert (known.error_code, known.group_state, len(known.members)) == (0, "Stable", 1)
        assert unknown.error_code == errors.GroupIdNotFound.code
        assert unnamed.error_code == errors.InvalidGroupId.code

    run(SharingNode(tmp_path), story)
