"""ReadShareGroupState (key 84): read the state of share partitions (KIP-932)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct


@struct
class PartitionData:
    partition: i32 = 0
    leader_epoch: i32 = 0


@struct
class ReadStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default=[])


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateRequest:
    group_id: str = ""
    topics: list[ReadStateData] = field(default=[])


@struct
class StateBatch:
    first_offset: i64 = 0
    last_offset: i64 = 0
    delivery_state: i8 = 0
    delivery_count: i16 = 0


@struct
class PartitionResult:
    partition: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    state_epoch: i32 = 0
    start_offset: i64 = 0
    state_batches: list[StateBatch] = field(default=[])


@struct
class ReadStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default=[])


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse:
    results: list[ReadStateResult] = field(default=[])
