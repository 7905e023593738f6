"""ReadShareGroupState, key 84, version 0: the leader of a share partition loads its state (KIP-932)."""

from __future__ import annotations

from ottla.groups.share_state import ReadState
from ottla.protocol.messages.read_share_group_state import (
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from ottla.server.context import Context
from ottla.server.share_state_calls import call_each


async def read_share_group_state(
    request: ReadShareGroupStateRequest, ctx: Context
) -> ReadShareGroupStateResponse:
    results = await call_each(
        ctx,
        request.group_id,
        request.topics,
        lambda machine, key, asked, now: machine.read(key, asked.leader_epoch, now),
        PartitionResult,
        _fill,
    )
    return ReadShareGroupStateResponse(
        results=[ReadStateResult(topic_id=topic_id, partitions=each) for topic_id, each in results]
    )


def _fill(result: PartitionResult, state: ReadState) -> None:
    result.state_epoch, result.start_offset = state.state_epoch, state.start_offset
    result.state_batches = [
        StateBatch(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.delivery_state,
            delivery_count=batch.delivery_count,
        )
        for batch in state.batches
    ]
