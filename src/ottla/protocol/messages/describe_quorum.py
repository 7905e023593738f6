"""DescribeQuorum (key 55): the leader, voters and observers of the quorum, and how far they are (KIP-595).

v1 last fetch and last caught-up time (KIP-836); v2 error messages, nodes, directory ids (KIP-853).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct, u16


@struct
class PartitionData:
    partition_index: i32 = 0


@struct
class TopicData:
    topic_name: str = ""
    partitions: list[PartitionData] = field(default=[])


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    topics: list[TopicData] = field(default=[])


@struct
class ReplicaState:
    replica_id: i32 = 0
    replica_directory_id: Uuid = field("2+", default=ZERO_UUID)
    log_end_offset: i64 = 0
    last_fetch_timestamp: i64 = field("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: i64 = field("1+", default=-1, ignorable=True)


@struct
class PartitionDataResponse:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = field("2+", default="", ignorable=True)
    leader_id: i32 = 0
    leader_epoch: i32 = 0
    high_watermark: i64 = 0
    current_voters: list[ReplicaState] = field(default=[])
    observers: list[ReplicaState] = field(default=[])


@struct
class TopicDataResponse:
    topic_name: str = ""
    partitions: list[PartitionDataResponse] = field(default=[])


@struct
class Listener:
    name: str = ""
    host: str = ""
    port: u16 = 0


@struct
class Node:
    node_id: i32 = 0
    listeners: list[Listener] = field(default=[])


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    error_code: i16 = 0
    error_message: str | None = field("2+", default="", ignorable=True)
    topics: list[TopicDataResponse] = field(default=[])
    nodes: list[Node] = field("2+", default=[])
