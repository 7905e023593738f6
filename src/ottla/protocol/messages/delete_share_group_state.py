"""DeleteShareGroupState (key 86): forget the state of share partitions (KIP-932)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class PartitionData:
    partition: i32 = 0


@struct
class DeleteStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default=[])


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateRequest:
    group_id: str = ""
    topics: list[DeleteStateData] = field(default=[])


@struct
class PartitionResult:
    partition: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@struct
class DeleteStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default=[])


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    results: list[DeleteStateResult] = field(default=[])
