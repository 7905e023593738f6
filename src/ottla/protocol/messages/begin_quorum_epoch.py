"""BeginQuorumEpoch (key 53): a new leader of the quorum tells the voters (KIP-595).

v1 flexible, voter key and leader endpoints (KIP-853).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct, u16


@struct
class PartitionData:
    partition_index: i32 = 0
    voter_directory_id: Uuid = field("1+", default=ZERO_UUID, ignorable=True)
    leader_id: i32 = 0
    leader_epoch: i32 = 0


@struct
class TopicData:
    topic_name: str = ""
    partitions: list[PartitionData] = field(default=[])


@struct
class LeaderEndpoint:
    name: str = ""
    host: str = ""
    port: u16 = 0


@message(key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochRequest:
    cluster_id: str | None = None
    voter_id: i32 = field("1+", default=-1, ignorable=True)
    topics: list[TopicData] = field(default=[])
    leader_endpoints: list[LeaderEndpoint] = field("1+", default=[], ignorable=True)


@struct
class PartitionDataResponse:
    partition_index: i32 = 0
    error_code: i16 = 0
    leader_id: i32 = 0
    leader_epoch: i32 = 0


@struct
class TopicDataResponse:
    topic_name: str = ""
    partitions: list[PartitionDataResponse] = field(default=[])


@struct
class NodeEndpoint:
    node_id: i32 = 0
    host: str = ""
    port: u16 = 0


@message(key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse:
    error_code: i16 = 0
    topics: list[TopicDataResponse] = field(default=[])
    node_endpoints: list[NodeEndpoint] = field("1+", default=[], tag=0)
