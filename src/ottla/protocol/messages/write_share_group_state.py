"""WriteShareGroupState (key 85): store the state of share partitions (KIP-932).

v1 count of completed deliveries (KIP-1226).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct


@struct
class StateBatch:
    first_offset: i64 = 0
    last_offset: i64 = 0
    delivery_state: i8 = 0
    delivery_count: i16 = 0


@struct
class PartitionData:
    partition: i32 = 0
    state_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0
    delivery_complete_count: i32 = field("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = field(default=[])


@struct
class WriteStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default=[])


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest:
    group_id: str = ""
    topics: list[WriteStateData] = field(default=[])


@struct
class PartitionResult:
    partition: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@struct
class WriteStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default=[])


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse:
    results: list[WriteStateResult] = field(default=[])
