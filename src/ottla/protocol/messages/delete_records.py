"""DeleteRecords (key 21): delete the records of partitions that are before an offset.

v2 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class DeleteRecordsPartition:
    partition_index: i32 = 0
    offset: i64 = 0


@struct
class DeleteRecordsTopic:
    name: str = ""
    partitions: list[DeleteRecordsPartition] = field(default=[])


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic] = field(default=[])
    timeout_ms: i32 = 0


@struct
class DeleteRecordsPartitionResult:
    partition_index: i32 = 0
    low_watermark: i64 = 0
    error_code: i16 = 0


@struct
class DeleteRecordsTopicResult:
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = field(default=[])


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsTopicResult] = field(default=[])
