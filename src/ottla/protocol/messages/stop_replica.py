"""StopReplica (key 5): the ZooKeeper controller tells brokers to stop, and perhaps delete, replicas.

Removed in Kafka 4.0. v1 broker epoch, partitions by topic; v2 flexible; v3 leader epoch and deletion per
partition (KIP-570); v4 KRaft controller (KIP-866).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class StopReplicaPartitionV0:
    topic_name: str = ""
    partition_index: i32 = 0


@struct
class StopReplicaTopicV1:
    name: str = ""
    partition_indexes: list[i32] = field(default=[])


@struct
class StopReplicaPartitionState:
    partition_index: i32 = 0
    leader_epoch: i32 = -1
    delete_partition: bool = False


@struct
class StopReplicaTopicState:
    topic_name: str = ""
    partition_states: list[StopReplicaPartitionState] = field(default=[])


@message(key=5, versions="0-4", flexible="2+")
class StopReplicaRequest:
    controller_id: i32 = 0
    is_kraft_controller: bool = field("4+", default=False)
    controller_epoch: i32 = 0
    broker_epoch: i64 = field("1+", default=-1, ignorable=True)
    delete_partitions: bool = field("0-2", default=False)
    ungrouped_partitions: list[StopReplicaPartitionV0] = field("0", default=[])
    topics: list[StopReplicaTopicV1] = field("1-2", default=[])
    topic_states: list[StopReplicaTopicState] = field("3+", default=[])


@struct
class StopReplicaPartitionError:
    topic_name: str = ""
    partition_index: i32 = 0
    error_code: i16 = 0


@message(key=5, versions="0-4", flexible="2+")
class StopReplicaResponse:
    error_code: i16 = 0
    partition_errors: list[StopReplicaPartitionError] = field(default=[])
