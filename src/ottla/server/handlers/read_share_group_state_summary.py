"""ReadShareGroupStateSummary, key 87, versions 0-1: how far a share partition is, in short (KIP-932)."""

from __future__ import annotations

from ottla.groups.share_state import Summary
from ottla.protocol.messages.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from ottla.server.context import Context
from ottla.server.share_state_calls import call_each


async def read_share_group_state_summary(
    request: ReadShareGroupStateSummaryRequest, ctx: Context
) -> ReadShareGroupStateSummaryResponse:
    results = await call_each(
        ctx,
        request.group_id,
        request.topics,
        lambda machine, key, asked, now: machine.read_summary(key),
        PartitionResult,
        _fill,
    )
    return ReadShareGroupStateSummaryResponse(
        results=[ReadStateSummaryResult(topic_id=topic_id, partitions=each) for topic_id, each in results]
    )


def _fill(result: PartitionResult, summary: Summary) -> None:
    result.state_epoch, result.leader_epoch = summary.state_epoch, summary.leader_epoch
    result.start_offset = summary.start_offset
    result.delivery_complete_count = summary.delivery_complete_count
