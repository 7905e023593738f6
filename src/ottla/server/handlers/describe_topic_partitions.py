"""DescribeTopicPartitions, key 75, version 0 (KIP-966): topics in the order of their names, a page at a time.

A page ends after as many partitions as the client or `max.request.partition.size.limit` allows; the cursor
that comes with it says where the next one starts. Topics that the client may not describe take no room on it:
they are refused by name on every page, and do not show where all topics are asked for.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.core.types import INTERNAL_TOPICS
from ottla.metadata.image import Topic
from ottla.protocol.errors import InvalidRequest, TopicAuthorizationFailed
from ottla.protocol.messages.describe_topic_partitions import (
    CursorResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.server import authorized_operations
from ottla.server.authorization import AllowedTopics
from ottla.server.brokers import NO_BROKER, Brokers
from ottla.server.context import Context
from ottla.server.hosting import why_missing


async def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, ctx: Context
) -> DescribeTopicPartitionsResponse:
    image = ctx.node.image
    brokers = Brokers(image, ctx.connection.listener_name)
    names = {topic.name for topic in request.topics} or set(image.topics)
    cursor = request.cursor
    if cursor is not None:
        if cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names):
            return _refused(request)
        names = {name for name in names if name >= cursor.topic_name}
    refused: list[str] = []
    if ctx.node.authorizer is not None:
        describable = AllowedTopics(ctx, Operation.DESCRIBE)
        if request.topics:
            refused = sorted(name for name in names if not describable[name])
        names = {name for name in names if describable[name]}
    response = DescribeTopicPartitionsResponse()
    # Never less than one, or a client that follows the cursor would follow it for ever.
    limit = ctx.node.settings.max_request_partition_size_limit
    room = max(1, min(request.response_partition_limit, limit))
    for name in sorted(names):
        start = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        if not room:
            response.next_cursor = CursorResponse(topic_name=name, partition_index=start)
            break
        topic = image.topics.get(name)
        if topic is None:
            if request.topics:
                response.topics.append(_unknown(name))
            continue
        end = min(len(topic.partitions), start + room)
        described = _topic(topic, start, end, brokers)
        response.topics.append(described)
        room -= len(described.partitions)
        if end < len(topic.partitions):
            response.next_cursor = CursorResponse(topic_name=name, partition_index=end)
            break
    for described in response.topics:
        described.topic_authorized_operations = authorized_operations.on_topic(ctx, described.name or "")
    response.topics += [
        DescribeTopicPartitionsResponseTopic(error_code=TopicAuthorizationFailed.code, name=name)
        for name in refused
    ]
    return response


def _refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """The cursor is none of ours. The response can say so only topic by topic."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=InvalidRequest.code, name=topic.name)
            for topic in request.topics
        ]
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=why_missing(name).code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
    )


def _topic(topic: Topic, start: int, end: int, brokers: Brokers) -> DescribeTopicPartitionsResponseTopic:
    partitions = []
    for index in range(start, end):
        state = topic.partitions.get(index)
        if state is None:
            continue
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=state.leader if state.leader in brokers.reachable else NO_BROKER,
                leader_epoch=state.leader_epoch,
                replica_nodes=brokers.listed(state.replicas),
                isr_nodes=brokers.listed(state.isr),
                eligible_leader_replicas=brokers.listed(state.elr),
                last_known_elr=brokers.listed(state.last_known_elr),
                offline_replicas=brokers.offline(state),
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
    )
