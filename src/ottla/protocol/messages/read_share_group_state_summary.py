"""ReadShareGroupStateSummary (key 87): read the start offsets of share partitions (KIP-932).

v1 count of completed deliveries in the answer (KIP-1226).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class PartitionData:
    partition: i32 = 0
    leader_epoch: i32 = 0


@struct
class ReadStateSummaryData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default=[])


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest:
    group_id: str = ""
    topics: list[ReadStateSummaryData] = field(default=[])


@struct
class PartitionResult:
    partition: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    state_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0
    delivery_complete_count: i32 = field("1+", default=-1, ignorable=True)


@struct
class ReadStateSummaryResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default=[])


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    results: list[ReadStateSummaryResult] = field(default=[])
