"""OffsetCommit, key 8, versions 0-10: store the positions of a group.

A topic that may not be read concerns its partitions alone. Departs from Kafka: version 0, which stored them
in ZooKeeper, stores them where all others do.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError, TopicAuthorizationFailed
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.server.caller import caller_of
from ottla.server.context import Context
from ottla.server.group_authorization import check_group, name_of_group_topic, split_topics


async def offset_commit(request: OffsetCommitRequest, ctx: Context) -> OffsetCommitResponse:
    caller = caller_of(ctx)
    refused: list[OffsetCommitRequestTopic] = []
    response: OffsetCommitResponse
    try:
        check_group(ctx, Operation.READ, request.group_id)
        request.topics, refused = split_topics(
            ctx, Operation.READ, request.topics, lambda topic: name_of_group_topic(ctx, topic)
        )
        if refused and not request.topics:
            raise TopicAuthorizationFailed
        response = await ctx.node.groups.call(
            request.group_id, lambda machine, now, ticket: machine.offset_commit(request, caller, now)
        )
    except KafkaError as error:
        response = OffsetCommitResponse(topics=_refused(request.topics, error))
    if refused:
        response.topics = _refused(refused, TopicAuthorizationFailed()) + response.topics
    return response


def _refused(topics: list[OffsetCommitRequestTopic], error: KafkaError) -> list[OffsetCommitResponseTopic]:
    return [
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error.code)
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]
