"""WriteShareGroupState, key 85, versions 0-1: the leader of a share partition stores its state (KIP-932)."""

from __future__ import annotations

from ottla.core.outcome import Now, Outcome
from ottla.core.share import SharePartitionKey, StateBatch
from ottla.groups.share_state import ShareStateMachine
from ottla.protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from ottla.server.context import Context
from ottla.server.share_state_calls import call_each


async def write_share_group_state(
    request: WriteShareGroupStateRequest, ctx: Context
) -> WriteShareGroupStateResponse:
    results = await call_each(ctx, request.group_id, request.topics, _write, PartitionResult)
    return WriteShareGroupStateResponse(
        results=[WriteStateResult(topic_id=topic_id, partitions=each) for topic_id, each in results]
    )


def _write(machine: ShareStateMachine, key: SharePartitionKey, asked: PartitionData, now: Now) -> Outcome:
    return machine.write(
        key,
        state_epoch=asked.state_epoch,
        leader_epoch=asked.leader_epoch,
        start_offset=asked.start_offset,
        delivery_complete_count=asked.delivery_complete_count,
        batches=[
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in asked.state_batches
        ],
        now=now,
    )
