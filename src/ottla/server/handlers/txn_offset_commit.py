"""TxnOffsetCommit, key 28, versions 0-5: store positions of a group as a part of a transaction."""

from __future__ import annotations

from typing import Final

from ottla.protocol.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable, KafkaError
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.server.caller import caller_of
from ottla.server.context import Context

LOADING_SINCE: Final = 2  # older producers do not know that a coordinator may be loading


async def txn_offset_commit(request: TxnOffsetCommitRequest, ctx: Context) -> TxnOffsetCommitResponse:
    caller = caller_of(ctx)
    response: TxnOffsetCommitResponse
    try:
        response = await ctx.node.groups.call(
            request.group_id,
            lambda machine, now, ticket: machine.txn_offset_commit(request, caller, now),
            transaction=(request.producer_id, request.producer_epoch),
        )
    except CoordinatorLoadInProgress as error:
        return _refused(request, error if ctx.version >= LOADING_SINCE else CoordinatorNotAvailable())
    except KafkaError as error:
        return _refused(request, error)
    return response


def _refused(request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error.code
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
