"""DeleteRecords, key 21, versions 0-2: forget what lies before an offset.

The answer's low watermark is the smallest log start offset over the replicas whose brokers are there. It is
waited for until it has reached what was asked for: a follower hears of the leader's new start in the answer
to a fetch, and says with its next one that it has followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.core.acl import Operation
from ottla.core.types import INTERNAL_TOPICS
from ottla.protocol.errors import (
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
    TopicAuthorizationFailed,
)
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ottla.replication.partition import Partition
from ottla.server.authorization import AllowedTopics
from ottla.server.context import Context
from ottla.server.hosting import hosted, using_disk

HIGH_WATERMARK: Final = -1
NO_WATERMARK: Final = -1
LOOK_AGAIN_MS: Final = 20


class Deleted(NamedTuple):
    """What is waited for: the replicas of a partition to have forgotten what lies before an offset."""

    partition: Partition
    leader_epoch: int
    offset: int
    result: DeleteRecordsPartitionResult


async def delete_records(request: DeleteRecordsRequest, ctx: Context) -> DeleteRecordsResponse:
    deletable = AllowedTopics(ctx, Operation.DELETE)
    topics = []
    waiting: list[Deleted] = []
    for topic in request.topics:
        # A partition that is named twice is answered once, for the last.
        last = {asked.partition_index: asked for asked in topic.partitions}
        may = deletable[topic.name]
        answers = [
            _result(ctx, topic.name, asked, waiting) if may else _refused(asked) for asked in last.values()
        ]
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answers))
    if waiting:
        await _wait(waiting, ctx, request.timeout_ms)
    return DeleteRecordsResponse(topics=topics)


async def _wait(waiting: list[Deleted], ctx: Context, timeout_ms: int) -> None:
    clock = ctx.node.clock
    deadline_ms = clock.monotonic_ms() + timeout_ms
    while True:
        waiting = [each for each in waiting if not _is_settled(each, ctx)]
        left_ms = deadline_ms - clock.monotonic_ms()
        if not waiting or left_ms <= 0:
            break
        await asyncio.sleep(min(LOOK_AGAIN_MS, left_ms) / 1000)
    for each in waiting:
        each.result.error_code = RequestTimedOut.code


def _is_settled(deleted: Deleted, ctx: Context) -> bool:
    partition, result = deleted.partition, deleted.result
    try:
        partition.check_leader(deleted.leader_epoch)
    except KafkaError as error:
        result.error_code = error.code if isinstance(error, KafkaStorageError) else NotLeaderOrFollower.code
        return True
    low_watermark = min(_start_offsets(partition, ctx))
    if low_watermark < deleted.offset:
        return False
    result.low_watermark = low_watermark
    return True


def _start_offsets(partition: Partition, ctx: Context) -> Iterator[int]:
    """Where the logs of the replicas begin; without those of brokers that are not there."""
    yield partition.log.start_offset
    brokers = ctx.node.image.brokers
    for replica, follower in partition.isr.followers.items():
        if replica in brokers and not brokers[replica].fenced:
            yield max(follower.start_offset, 0)


def _refused(asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index,
        low_watermark=NO_WATERMARK,
        error_code=TopicAuthorizationFailed.code,
    )


def _result(
    ctx: Context, topic: str, asked: DeleteRecordsPartition, waiting: list[Deleted]
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=NO_WATERMARK)
    try:
        partition, offset = _delete(ctx, topic, asked.partition_index, asked.offset)
    except KafkaError as error:
        result.error_code = error.code
        return result
    deleted = Deleted(partition, partition.leader_epoch, offset, result)
    if not _is_settled(deleted, ctx):
        waiting.append(deleted)
    return result


def _delete(ctx: Context, topic: str, index: int, offset: int) -> tuple[Partition, int]:
    """The partition, and the offset at which it begins now, unless it did so later already."""
    partition = hosted(ctx.node, topic, index)
    if topic in INTERNAL_TOPICS:
        raise InvalidTopic(f"Cannot delete records of internal topic {topic}")
    partition.check_leader()
    log = partition.log
    if "delete" not in log.settings.cleanup_policy:
        raise PolicyViolation(f"Records of partition {partition.partition} are kept by key, not by offset")
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        raise OffsetOutOfRange(
            f"Cannot delete records of {partition.partition} before offset {offset}: "
            f"its high watermark is {log.high_watermark}"
        )
    if offset > log.start_offset:
        with using_disk(partition):
            log.delete_records(offset)
    return partition, offset
