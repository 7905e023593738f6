"""OffsetForLeaderEpoch, key 23, versions 0-4: where a leader epoch ends, so that a follower or consumer can
tell whether the log it read has been cut short since.

Followers have a right to the whole cluster; consumers need one to the topic (KIP-320).
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError, TopicAuthorizationFailed
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ottla.server.authorization import AllowedTopics
from ottla.server.context import Context
from ottla.server.hosting import hosted


async def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, ctx: Context
) -> OffsetForLeaderEpochResponse:
    everything = ctx.allows_on_cluster(Operation.CLUSTER_ACTION)
    describable = AllowedTopics(ctx, Operation.DESCRIBE)
    topics = []
    for topic in request.topics:
        if everything or describable[topic.topic]:
            partitions = [_end_offset(ctx, topic.topic, asked) for asked in topic.partitions]
        else:
            refused = TopicAuthorizationFailed.code
            partitions = [EpochEndOffset(partition=p.partition, error_code=refused) for p in topic.partitions]
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
    return OffsetForLeaderEpochResponse(topics=topics)


def _end_offset(ctx: Context, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = hosted(ctx.node, topic, asked.partition)
        partition.check_leader(asked.current_leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    log = partition.log
    epoch, end_offset = log.epochs.end_offset_for(asked.leader_epoch, log.end_offset)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
