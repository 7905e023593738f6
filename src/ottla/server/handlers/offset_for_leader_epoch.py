"""OffsetForLeaderEpoch, key 23, versions 0-4: where a leader epoch ends, so that a follower or consumer can
tell whether the log it read has been cut short since.
"""

from __future__ import annotations

from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ottla.server.context import Context
from ottla.server.hosting import hosted


async def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, ctx: Context
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_offset(ctx, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end_offset(ctx: Context, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = hosted(ctx.node, topic, asked.partition)
        partition.check_leader(asked.current_leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    log = partition.log
    epoch, end_offset = log.epochs.end_offset_for(asked.leader_epoch, log.end_offset)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
