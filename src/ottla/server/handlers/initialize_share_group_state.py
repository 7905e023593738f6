"""InitializeShareGroupState, key 83, version 0: begin with a share partition (KIP-932)."""

from __future__ import annotations

from ottla.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)
from ottla.server.context import Context
from ottla.server.share_state_calls import call_each


async def initialize_share_group_state(
    request: InitializeShareGroupStateRequest, ctx: Context
) -> InitializeShareGroupStateResponse:
    results = await call_each(
        ctx,
        request.group_id,
        request.topics,
        lambda machine, key, asked, now: machine.initialize(key, asked.state_epoch, asked.start_offset, now),
        PartitionResult,
    )
    return InitializeShareGroupStateResponse(
        results=[InitializeStateResult(topic_id=topic_id, partitions=each) for topic_id, each in results]
    )
