"""ListOffsets, key 2, versions 0-11: the offset that belongs to a time, or to a place in the log.

Version 0 is the protocol of Kafka before 0.10.1: it knows no times of records, only when segment files were
last written, and answers with up to as many offsets as the client wants. It is kept for very old clients.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from ottla.core.acl import Operation
from ottla.protocol.errors import (
    InvalidRequest,
    KafkaError,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    TopicAuthorizationFailed,
    UnsupportedVersion,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.replication.partition import Partition
from ottla.server.authorization import AllowedTopics
from ottla.server.context import Context
from ottla.server.hosting import hosted, using_disk
from ottla.storage.log import Log
from ottla.storage.segment import LOG

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

# The version that brought each special timestamp.
SINCE: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

CONSUMER: Final = -1
DEBUGGING_CONSUMER: Final = -2
READ_COMMITTED: Final = 1
NO_TIMESTAMP: Final = -1


class Found(NamedTuple):
    offset: int = -1
    timestamp: int = NO_TIMESTAMP
    leader_epoch: int = -1


NOTHING: Final = Found()


async def list_offsets(request: ListOffsetsRequest, ctx: Context) -> ListOffsetsResponse:
    asked_for = Counter(
        (topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions
    )
    describable = AllowedTopics(ctx, Operation.DESCRIBE)
    topics = []
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            times = asked_for.pop((topic.name, asked.partition_index), 0)
            if not times:
                continue  # named again; it has its answer
            answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            try:
                if not describable[topic.name]:
                    raise TopicAuthorizationFailed
                if times > 1:
                    raise InvalidRequest("The partition is in the request more than once.")
                _fill(answer, request, topic.name, asked, ctx)
            except OffsetNotAvailable as error:
                answer.error_code = error.code if ctx.version >= 5 else LeaderNotAvailable.code
            except KafkaError as error:
                answer.error_code = error.code
            answers.append(answer)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _fill(
    answer: ListOffsetsPartitionResponse,
    request: ListOffsetsRequest,
    topic: str,
    asked: ListOffsetsPartition,
    ctx: Context,
) -> None:
    if asked.timestamp < 0 and SINCE.get(asked.timestamp, ctx.version + 1) > ctx.version:
        raise UnsupportedVersion
    partition = hosted(ctx.node, topic, asked.partition_index)
    try:
        partition.check_leader(asked.current_leader_epoch)
    except NotLeaderOrFollower:
        if request.replica_id != DEBUGGING_CONSUMER:
            raise
    with using_disk(partition):
        if ctx.version == 0:
            answer.old_style_offsets = _old_style(partition.log, request.replica_id, asked, ctx)
            return
        found = _find(partition, request, asked.timestamp)
    answer.offset, answer.timestamp = found.offset, found.timestamp
    if ctx.version >= 4:
        answer.leader_epoch = found.leader_epoch


def _find(partition: Partition, request: ListOffsetsRequest, timestamp: int) -> Found:
    log = partition.log
    if request.replica_id != CONSUMER:
        end_offset = log.end_offset
    elif request.isolation_level == READ_COMMITTED:
        end_offset = log.last_stable_offset
    else:
        end_offset = log.high_watermark
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return Found(log.start_offset, leader_epoch=log.epochs.epoch_for(log.start_offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING  # no record of this log is kept anywhere else
    if timestamp == LATEST:
        if request.replica_id == CONSUMER:
            _check_watermark(partition)
        return Found(end_offset, leader_epoch=partition.leader_epoch)
    if timestamp == MAX_TIMESTAMP:
        found = log.max_timestamp()
    else:
        found = log.offset_for_timestamp(timestamp, log.end_offset)
    if found is None or found.offset >= end_offset:
        # There may be a record that the client may not see yet, or not yet know to be committed.
        if request.replica_id == CONSUMER:
            _check_watermark(partition)
        return NOTHING
    return Found(found.offset, found.timestamp, found.leader_epoch)


def _check_watermark(partition: Partition) -> None:
    """A new leader does not know the end of the log until its high watermark has reached its own epoch.

    Before that it may be behind what the last leader had told its consumers, and they would jump back.
    """
    log = partition.log
    if log.high_watermark == log.end_offset or log.epochs.latest != partition.leader_epoch:
        return
    epoch_start_offset = log.epochs.entries[-1][1]
    if epoch_start_offset > log.high_watermark:
        raise OffsetNotAvailable(
            f"The high watermark of {partition.partition} ({log.high_watermark}) has not reached the start "
            f"of leader epoch {partition.leader_epoch} ({epoch_start_offset})."
        )


def _old_style(log: Log, replica_id: int, asked: ListOffsetsPartition, ctx: Context) -> list[int]:
    """Offsets at which segments begin, newest first, from the last one written by the time asked for."""
    places = [
        (max(segment.base_offset, log.start_offset), int(Path(segment.path(LOG)).stat().st_mtime * 1000))
        for segment in log.segments
    ]
    if places[-1][0] < log.end_offset:
        places.append((log.end_offset, ctx.node.clock.wall_ms()))
    if asked.timestamp == EARLIEST:
        del places[1:]
    elif asked.timestamp != LATEST:
        while places and places[-1][1] > asked.timestamp:
            places.pop()
    offsets = sorted((offset for offset, _ in places), reverse=True)[: max(asked.max_num_offsets, 0)]
    if replica_id == CONSUMER and offsets and offsets[0] > log.high_watermark:
        offsets = [log.high_watermark, *(offset for offset in offsets if offset <= log.high_watermark)]
    return offsets
