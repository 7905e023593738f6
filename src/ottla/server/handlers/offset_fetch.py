"""OffsetFetch, key 9, versions 0-10: read the positions that groups have stored.

Up to version 7 a request is about one group, and its errors are those of the response; version 1 and
before have only those of partitions. Departs from Kafka: version 0, which read them from ZooKeeper, reads
them where all others do.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from ottla.server.caller import caller_of
from ottla.server.context import Context

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
    try:
        answer = await ctx.node.groups.call(
            asked.group_id,
            lambda machine, now, ticket: machine.offset_fetch(asked, caller, require_stable),
        )
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.code)
    return answer


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
