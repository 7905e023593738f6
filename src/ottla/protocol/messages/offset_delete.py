"""OffsetDelete (key 47): delete a group's positions in some partitions (KIP-496)."""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class OffsetDeleteRequestPartition:
    partition_index: i32 = 0


@struct
class OffsetDeleteRequestTopic:
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = field(default=[])


@message(key=47, versions="0")
class OffsetDeleteRequest:
    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = field(default=[])


@struct
class OffsetDeleteResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class OffsetDeleteResponseTopic:
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = field(default=[])


@message(key=47, versions="0")
class OffsetDeleteResponse:
    error_code: i16 = 0
    throttle_time_ms: i32 = 0
    topics: list[OffsetDeleteResponseTopic] = field(default=[])
