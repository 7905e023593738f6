"""OffsetFetch, key 9, versions 0-10: read the positions that groups have stored.

Up to version 7 a request is about one group, and its errors are those of the response; version 1 and
before have only those of partitions. Positions in topics that may not be described are refused, or not in the
answer where no topics were named. Departs from Kafka: version 0, which read them from ZooKeeper, reads
them where all others do.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError, TopicAuthorizationFailed
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.server.caller import caller_of
from ottla.server.context import Context
from ottla.server.group_authorization import check_group, name_of_group_topic, split_topics

ERROR_SINCE: Final = 2
SEVERAL_SINCE: Final = 8


async def offset_fetch(request: OffsetFetchRequest, ctx: Context) -> OffsetFetchResponse:
    if ctx.version < SEVERAL_SINCE:
        return await _fetch_one(request, ctx)
    fetches = [_fetch(group, request.require_stable, ctx) for group in request.groups]
    groups = [await fetches[0]] if len(fetches) == 1 else list(await asyncio.gather(*fetches))
    return OffsetFetchResponse(groups=groups)


async def _fetch(
    asked: OffsetFetchRequestGroup, require_stable: bool, ctx: Context
) -> OffsetFetchResponseGroup:
    caller = caller_of(ctx)
    answer: OffsetFetchResponseGroup
    refused: list[OffsetFetchRequestTopics] = []
    try:
        check_group(ctx, Operation.DESCRIBE, asked.group_id)
        if asked.topics is not None:
            asked.topics, refused = split_topics(
                ctx, Operation.DESCRIBE, asked.topics, lambda topic: name_of_group_topic(ctx, topic)
            )
        answer = await ctx.node.groups.call(
            asked.group_id,
            lambda machine, now, ticket: machine.offset_fetch(asked, caller, require_stable),
        )
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.code)
    if asked.topics is None:
        answer.topics, _ = split_topics(ctx, Operation.DESCRIBE, answer.topics, lambda topic: topic.name)
    elif refused and not answer.error_code:
        answer.topics += [_not_described(topic) for topic in refused]
    return answer


def _not_described(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, error_code=TopicAuthorizationFailed.code
            )
            for index in topic.partition_indexes
        ],
    )


async def _fetch_one(request: OffsetFetchRequest, ctx: Context) -> OffsetFetchResponse:
    asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    if request.topics is not None:
        asked.topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    answer = await _fetch(asked, request.require_stable, ctx)
    if answer.error_code and ctx.version < ERROR_SINCE:
        return _each_refused(request, answer.error_code)
    return OffsetFetchResponse(
        error_code=answer.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in answer.topics
        ],
    )


def _each_refused(request: OffsetFetchRequest, error_code: int) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, error_code=error_code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )
