"""OffsetCommit, key 8, versions 0-10: store the positions of a group.

Departs from Kafka: version 0, which stored them in ZooKeeper, stores them where all others do.
"""

from __future__ import annotations

from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.server.caller import caller_of
from ottla.server.context import Context


async def offset_commit(request: OffsetCommitRequest, ctx: Context) -> OffsetCommitResponse:
    caller = caller_of(ctx)
    response: OffsetCommitResponse
    try:
        response = await ctx.node.groups.call(
            request.group_id, lambda machine, now, ticket: machine.offset_commit(request, caller, now)
        )
    except KafkaError as error:
        return _refused(request, error)
    return response


def _refused(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error.code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
