"""AlterShareGroupOffsets (key 91): change the start offsets of a share group (KIP-932)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class AlterShareGroupOffsetsRequestPartition:
    partition_index: i32 = 0
    start_offset: i64 = 0


@struct
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(default=[])


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest:
    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(default=[])


@struct
class AlterShareGroupOffsetsResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@struct
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(default=[])


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(default=[])
