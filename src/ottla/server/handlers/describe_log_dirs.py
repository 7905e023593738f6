"""DescribeLogDirs, key 35, versions 0-5 (disk space from 4, cordoned directories from 5).

Versions 0-2 have no error for the whole request, so that who is refused sees no directory; one that has
failed carries its own.
"""

from __future__ import annotations

from collections import defaultdict

from ottla.core.acl import Operation
from ottla.core.types import TopicPartition
from ottla.protocol.errors import ClusterAuthorizationFailed, KafkaStorageError
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ottla.server.context import Context
from ottla.storage.log_directory import LogDirectory


async def describe_log_dirs(request: DescribeLogDirsRequest, ctx: Context) -> DescribeLogDirsResponse:
    if not ctx.allows_on_cluster(Operation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ClusterAuthorizationFailed.code)
    wanted = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions
        }
    registration = ctx.node.image.brokers.get(ctx.node.node_id)
    cordoned = (registration.cordoned if registration is not None else None) or ()
    results = []
    for directory in ctx.node.log_directories:
        result = _describe(directory, wanted)
        result.is_cordoned = directory.id in cordoned
        results.append(result)
    return DescribeLogDirsResponse(results=results)


def _describe(directory: LogDirectory, wanted: set[TopicPartition] | None) -> DescribeLogDirsResult:
    if directory.error is not None:
        return DescribeLogDirsResult(error_code=KafkaStorageError.code, log_dir=directory.path)
    try:
        total_bytes, usable_bytes = directory.total_bytes(), directory.usable_bytes()
    except OSError:
        return DescribeLogDirsResult(error_code=KafkaStorageError.code, log_dir=directory.path)
    topics: defaultdict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for partition, log in directory.logs.items():
        if wanted is None or partition in wanted:
            topics[partition.topic].append(
                DescribeLogDirsPartition(
                    partition_index=partition.partition,
                    partition_size=log.size,
                    # What a follower still has to fetch; a leader's log reaches past its high watermark.
                    offset_lag=max(log.high_watermark - log.end_offset, 0),
                )
            )
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=topics[name]) for name in topics],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
