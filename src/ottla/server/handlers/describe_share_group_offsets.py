"""DescribeShareGroupOffsets, key 90, versions 0-1: where share groups are in their partitions (KIP-932)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ottla.core.acl import Operation
from ottla.core.share import UNINITIALIZED, SharePartitionKey
from ottla.groups.share import admin
from ottla.metadata.partition import NO_LEADER
from ottla.protocol.errors import KafkaError, TopicAuthorizationFailed, error_class
from ottla.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.runtime.share_states import PURPOSE
from ottla.server.context import Context
from ottla.server.group_authorization import check_group, split_topics
from ottla.server.hosting import hosted
from ottla.server.share_groups import check_share_groups

if TYPE_CHECKING:
    from ottla.runtime.node import Node

NO_LAG: Final = -1
LATEST: Final = -1


async def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, ctx: Context
) -> DescribeShareGroupOffsetsResponse:
    groups = await asyncio.gather(*(_describe(group, ctx) for group in request.groups))
    return DescribeShareGroupOffsetsResponse(groups=list(groups))


async def _describe(
    asked: DescribeShareGroupOffsetsRequestGroup, ctx: Context
) -> DescribeShareGroupOffsetsResponseGroup:
    answer = DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id)
    try:
        check_share_groups(ctx)
        check_group(ctx, Operation.DESCRIBE, asked.group_id)
        if asked.topics is None:
            named = await _all_topics(asked.group_id, ctx)
        else:
            named = [(topic.topic_name, topic.partitions) for topic in asked.topics]
        allowed, refused = split_topics(ctx, Operation.DESCRIBE, named, lambda topic: topic[0])
        topics = await asyncio.gather(
            *(_topic(asked.group_id, name, indices, ctx) for name, indices in allowed)
        )
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, str(error)
        return answer
    answer.topics = list(topics)
    if asked.topics is not None:  # else those that may not be described are not there
        answer.topics += [_refused(name, indices) for name, indices in refused]
    return answer


def _refused(name: str, indices: Iterable[int]) -> DescribeShareGroupOffsetsResponseTopic:
    error = TopicAuthorizationFailed()
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=index,
                start_offset=UNINITIALIZED,
                lag=NO_LAG,
                error_code=error.code,
                error_message=str(error),
            )
            for index in indices
        ],
    )


async def _all_topics(group_id: str, ctx: Context) -> list[tuple[str, list[int]]]:
    initialized = await ctx.node.groups.call(
        group_id, lambda machine, now, ticket: admin.initialized_partitions(machine, group_id)
    )
    known = ctx.node.image.topic_by_id
    return [
        (known[topic_id].name, sorted(indices))
        for topic_id, indices in initialized.items()
        if topic_id in known
    ]


async def _topic(
    group_id: str, name: str, indices: Iterable[int], ctx: Context
) -> DescribeShareGroupOffsetsResponseTopic:
    topic = ctx.node.image.topics.get(name)
    answer = DescribeShareGroupOffsetsResponseTopic(topic_name=name)
    if topic is None:
        # Nobody has a position in a topic that is not there. That is not an error.
        answer.partitions = [
            DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=UNINITIALIZED)
            for index in indices
        ]
        return answer
    answer.topic_id = topic.id
    keys = [SharePartitionKey(group_id, topic.id, index) for index in indices]
    answer.partitions = list(await asyncio.gather(*(_partition(key, name, ctx) for key in keys)))
    return answer


async def _partition(
    key: SharePartitionKey, name: str, ctx: Context
) -> DescribeShareGroupOffsetsResponsePartition:
    answer = DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition, start_offset=UNINITIALIZED, lag=NO_LAG
    )
    try:
        summary = await ctx.node.shares.states.summary(key)
    except KafkaError:
        return answer  # the same: there is no position
    answer.start_offset, answer.leader_epoch = summary.start_offset, summary.leader_epoch
    if UNINITIALIZED in (summary.start_offset, summary.delivery_complete_count):
        return answer
    try:
        end_offset = await _end_offset(name, key.partition, ctx.node)
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=key.partition, error_code=error.code, error_message=str(error)
        )
    answer.lag = end_offset - summary.start_offset - summary.delivery_complete_count
    return answer


async def _end_offset(topic: str, index: int, node: Node) -> int:
    """Where the partition ends for its readers, which its leader knows."""

    def leader() -> int:
        known = node.image.topics.get(topic)
        state = None if known is None else known.partitions.get(index)
        return NO_LEADER if state is None else state.leader

    elsewhere = leader()
    if elsewhere in (NO_LEADER, node.node_id):
        partition = hosted(node, topic, index)
        partition.check_leader()
        return partition.log.high_watermark
    asked = ListOffsetsPartition(partition_index=index, timestamp=LATEST)
    response = await node.coordinators.elsewhere.ask(
        elsewhere,
        ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]),
        ListOffsetsResponse,
        purpose=PURPOSE,
        within=node.settings.request_timeout_ms / 1000,
        still_leads=lambda: leader() == elsewhere,
    )
    (found,) = response.topics[0].partitions
    if found.error_code:
        raise error_class(found.error_code)
    return found.offset
