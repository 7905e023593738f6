"""DescribeShareGroupOffsets (key 90): the start offsets of a share group (KIP-932).

v1 lag (KIP-1226).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[i32] = field(default=[])


@struct
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(default=[])


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest:
    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(default=[])


@struct
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: i32 = 0
    start_offset: i64 = 0
    leader_epoch: i32 = 0
    lag: i64 = field("1+", default=-1, ignorable=True)
    error_code: i16 = 0
    error_message: str | None = None


@struct
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(default=[])


@struct
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(default=[])
    error_code: i16 = 0
    error_message: str | None = None


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    throttle_time_ms: i32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(default=[])
