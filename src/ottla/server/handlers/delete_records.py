"""DeleteRecords, key 21, versions 0-2: forget what lies before an offset.

The answer's low watermark is the smallest log start offset over the replicas that are there. This broker
leads partitions that have no other replica, so it is the log's own, and nothing has to be waited for.
"""

from __future__ import annotations

from typing import Final

from ottla.core.acl import Operation
from ottla.core.types import INTERNAL_TOPICS
from ottla.protocol.errors import (
    InvalidTopic,
    KafkaError,
    OffsetOutOfRange,
    PolicyViolation,
    TopicAuthorizationFailed,
)
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ottla.server.authorization import AllowedTopics
from ottla.server.context import Context
from ottla.server.hosting import hosted, using_disk

HIGH_WATERMARK: Final = -1
NO_WATERMARK: Final = -1


async def delete_records(request: DeleteRecordsRequest, ctx: Context) -> DeleteRecordsResponse:
    deletable = AllowedTopics(ctx, Operation.DELETE)
    topics = []
    for topic in request.topics:
        # A partition that is named twice is answered once, for the last.
        last = {asked.partition_index: asked for asked in topic.partitions}
        may = deletable[topic.name]
        answers = [_result(ctx, topic.name, asked) if may else _refused(asked) for asked in last.values()]
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answers))
    return DeleteRecordsResponse(topics=topics)


def _refused(asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index,
        low_watermark=NO_WATERMARK,
        error_code=TopicAuthorizationFailed.code,
    )


def _result(ctx: Context, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    index = asked.partition_index
    try:
        low_watermark = _delete(ctx, topic, index, asked.offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=NO_WATERMARK, error_code=error.code
        )
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


def _delete(ctx: Context, topic: str, index: int, offset: int) -> int:
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
    return log.start_offset
