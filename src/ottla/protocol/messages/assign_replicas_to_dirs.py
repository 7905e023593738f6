"""AssignReplicasToDirs (key 73): a broker says in which log directories its replicas are (KIP-858)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class PartitionData:
    partition_index: i32 = 0


@struct
class TopicData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default=[])


@struct
class DirectoryData:
    id: Uuid = ZERO_UUID
    topics: list[TopicData] = field(default=[])


@message(key=73, versions="0", flexible="0+")
class AssignReplicasToDirsRequest:
    broker_id: i32 = 0
    broker_epoch: i64 = -1
    directories: list[DirectoryData] = field(default=[])


@struct
class PartitionDataResponse:
    partition_index: i32 = 0
    error_code: i16 = 0


@struct
class TopicDataResponse:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionDataResponse] = field(default=[])


@struct
class DirectoryDataResponse:
    id: Uuid = ZERO_UUID
    topics: list[TopicDataResponse] = field(default=[])


@message(key=73, versions="0", flexible="0+")
class AssignReplicasToDirsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    directories: list[DirectoryDataResponse] = field(default=[])
