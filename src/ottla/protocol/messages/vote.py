"""Vote (key 52): a replica asks for votes to become leader of the quorum (KIP-595).

v1 voter key and directory id, leader endpoints (KIP-853); v2 pre-vote, and the candidate is called replica
(KIP-996).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct, u16


@struct
class PartitionData:
    partition_index: i32 = 0
    replica_epoch: i32 = 0
    replica_id: i32 = 0
    replica_directory_id: Uuid = field("1+", default=ZERO_UUID, ignorable=True)
    voter_directory_id: Uuid = field("1+", default=ZERO_UUID, ignorable=True)
    last_offset_epoch: i32 = 0
    last_offset: i64 = 0
    pre_vote: bool = field("2+", default=False)


@struct
class TopicData:
    topic_name: str = ""
    partitions: list[PartitionData] = field(default=[])


@message(key=52, versions="0-2", flexible="0+")
class VoteRequest:
    cluster_id: str | None = None
    voter_id: i32 = field("1+", default=-1, ignorable=True)
    topics: list[TopicData] = field(default=[])


@struct
class PartitionDataResponse:
    partition_index: i32 = 0
    error_code: i16 = 0
    leader_id: i32 = 0
    leader_epoch: i32 = 0
    vote_granted: bool = False


@struct
class TopicDataResponse:
    topic_name: str = ""
    partitions: list[PartitionDataResponse] = field(default=[])


@struct
class NodeEndpoint:
    node_id: i32 = 0
    host: str = ""
    port: u16 = 0


@message(key=52, versions="0-2", flexible="0+")
class VoteResponse:
    error_code: i16 = 0
    topics: list[TopicDataResponse] = field(default=[])
    node_endpoints: list[NodeEndpoint] = field("1+", default=[], tag=0)
