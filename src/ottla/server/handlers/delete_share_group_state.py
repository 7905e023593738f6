"""DeleteShareGroupState, key 86, version 0: a share partition is done with (KIP-932)."""

from __future__ import annotations

from ottla.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)
from ottla.server.context import Context
from ottla.server.share_state_calls import call_each


async def delete_share_group_state(
    request: DeleteShareGroupStateRequest, ctx: Context
) -> DeleteShareGroupStateResponse:
    results = await call_each(
        ctx,
        request.group_id,
        request.topics,
        lambda machine, key, asked, now: machine.delete(key, now),
        PartitionResult,
    )
    return DeleteShareGroupStateResponse(
        results=[DeleteStateResult(topic_id=topic_id, partitions=each) for topic_id, each in results]
    )
