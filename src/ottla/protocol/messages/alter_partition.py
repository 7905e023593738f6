"""AlterPartition (key 56): a leader asks the controller to change its in-sync replicas (KIP-497).

v1 leader recovery state (KIP-704); v2 topic ids instead of names (KIP-841); v3 broker epochs beside the new
in-sync replicas (KIP-903).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct


@struct
class BrokerState:
    broker_id: i32 = 0
    broker_epoch: i64 = -1


@struct
class PartitionData:
    partition_index: i32 = 0
    leader_epoch: i32 = 0
    new_isr: list[i32] = field("0-2", default=[])
    new_isr_with_epochs: list[BrokerState] = field("3+", default=[])
    leader_recovery_state: i8 = field("1+", default=0)
    partition_epoch: i32 = 0


@struct
class TopicData:
    topic_name: str = field("0-1", default="", ignorable=True)
    topic_id: Uuid = field("2+", default=ZERO_UUID, ignorable=True)
    partitions: list[PartitionData] = field(default=[])


@message(key=56, versions="0-3", flexible="0+")
class AlterPartitionRequest:
    broker_id: i32 = 0
    broker_epoch: i64 = -1
    topics: list[TopicData] = field(default=[])


@struct
class PartitionDataResponse:
    partition_index: i32 = 0
    error_code: i16 = 0
    leader_id: i32 = 0
    leader_epoch: i32 = 0
    isr: list[i32] = field(default=[])
    leader_recovery_state: i8 = field("1+", default=0, ignorable=True)
    partition_epoch: i32 = 0


@struct
class TopicDataResponse:
    topic_name: str = field("0-1", default="", ignorable=True)
    topic_id: Uuid = field("2+", default=ZERO_UUID, ignorable=True)
    partitions: list[PartitionDataResponse] = field(default=[])


@message(key=56, versions="0-3", flexible="0+")
class AlterPartitionResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    topics: list[TopicDataResponse] = field(default=[])
