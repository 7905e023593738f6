"""OffsetDelete, key 47, version 0: forget the positions of a group in some partitions.

It takes the right to delete from the group, and to read the topics.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError, TopicAuthorizationFailed
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.server.context import Context
from ottla.server.group_authorization import check_group, split_topics


async def offset_delete(request: OffsetDeleteRequest, ctx: Context) -> OffsetDeleteResponse:
    response: OffsetDeleteResponse
    try:
        check_group(ctx, Operation.DELETE, request.group_id)
        request.topics, refused = split_topics(ctx, Operation.READ, request.topics, lambda topic: topic.name)
        response = await ctx.node.groups.call(
            request.group_id, lambda machine, now, ticket: machine.offset_delete(request)
        )
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
    if refused and not response.error_code:
        response.topics = [_refused(topic) for topic in refused] + response.topics
    return response


def _refused(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=each.partition_index, error_code=TopicAuthorizationFailed.code
            )
            for each in topic.partitions
        ],
    )
