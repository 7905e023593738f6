"""LeaderAndIsr (key 4): the ZooKeeper controller tells brokers which partitions to lead or follow.

Removed in Kafka 4.0. v1 is_new; v2 broker epoch, partitions by topic; v3 adding and removing replicas; v4
flexible; v5 topic ids (KIP-516); v6 leader recovery state (KIP-704); v7 KRaft controller (KIP-866).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct


@struct
class LeaderAndIsrPartitionState:
    topic_name: str = field("0-1", default="", ignorable=True)
    partition_index: i32 = 0
    controller_epoch: i32 = 0
    leader: i32 = 0
    leader_epoch: i32 = 0
    isr: list[i32] = field(default=[])
    partition_epoch: i32 = 0
    replicas: list[i32] = field(default=[])
    adding_replicas: list[i32] = field("3+", default=[], ignorable=True)
    removing_replicas: list[i32] = field("3+", default=[], ignorable=True)
    is_new: bool = field("1+", default=False, ignorable=True)
    leader_recovery_state: i8 = field("6+", default=0)


@struct
class LeaderAndIsrTopicState:
    topic_name: str = ""
    topic_id: Uuid = field("5+", default=ZERO_UUID, ignorable=True)
    partition_states: list[LeaderAndIsrPartitionState] = field(default=[])


@struct
class LeaderAndIsrLiveLeader:
    broker_id: i32 = 0
    host_name: str = ""
    port: i32 = 0


@message(key=4, versions="0-7", flexible="4+")
class LeaderAndIsrRequest:
    controller_id: i32 = 0
    is_kraft_controller: bool = field("7+", default=False)
    controller_epoch: i32 = 0
    broker_epoch: i64 = field("2+", default=-1, ignorable=True)
    type: i8 = field("5+", default=0)
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = field("0-1", default=[])
    topic_states: list[LeaderAndIsrTopicState] = field("2+", default=[])
    live_leaders: list[LeaderAndIsrLiveLeader] = field(default=[])


@struct
class LeaderAndIsrPartitionError:
    topic_name: str = field("0-4", default="", ignorable=True)
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class LeaderAndIsrTopicError:
    topic_id: Uuid = ZERO_UUID
    partition_errors: list[LeaderAndIsrPartitionError] = field(default=[])


@message(key=4, versions="0-7", flexible="4+")
class LeaderAndIsrResponse:
    error_code: i16 = 0
    partition_errors: list[LeaderAndIsrPartitionError] = field("0-4", default=[])
    topics: list[LeaderAndIsrTopicError] = field("5+", default=[])
