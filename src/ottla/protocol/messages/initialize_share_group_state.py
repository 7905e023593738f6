"""InitializeShareGroupState (key 83): start keeping the state of share partitions (KIP-932)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class PartitionData:
    partition: i32 = 0
    state_epoch: i32 = 0
    start_offset: i64 = 0


@struct
class InitializeStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default=[])


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateRequest:
    group_id: str = ""
    topics: list[InitializeStateData] = field(default=[])


@struct
class PartitionResult:
    partition: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@struct
class InitializeStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default=[])


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    results: list[InitializeStateResult] = field(default=[])
