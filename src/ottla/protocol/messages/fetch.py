"""Fetch (key 1): read record batches, as a consumer or as a follower that replicates.

v1 throttle time; v2 message format 1; v3 max bytes, and the order of partitions counts; v4 isolation level
and aborted transactions; v5 log start offset; v7 fetch sessions (KIP-227); v9 current leader epoch
(KIP-320); v10 zstd (KIP-110); v11 rack and preferred read replica (KIP-392); v12 flexible, last fetched
epoch and diverging epoch (KIP-595); v13 topic ids (KIP-516); v14 tiered storage error (KIP-405); v15
replica state (KIP-903); v16 node endpoints (KIP-951); v17 directory id (KIP-853); v18 the follower's high
watermark (KIP-1166).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import Records, field, i8, i16, i32, i64, message, struct


@struct
class ReplicaState:
    replica_id: i32 = -1
    replica_epoch: i64 = -1


@struct
class FetchPartition:
    partition: i32 = 0
    current_leader_epoch: i32 = field("9+", default=-1, ignorable=True)
    fetch_offset: i64 = 0
    last_fetched_epoch: i32 = field("12+", default=-1)
    log_start_offset: i64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: i32 = 0
    replica_directory_id: Uuid = field("17+", default=ZERO_UUID, tag=0, ignorable=True)
    high_watermark: i64 = field("18+", default=0x7FFF_FFFF_FFFF_FFFF, tag=1, ignorable=True)


@struct
class FetchTopic:
    topic: str = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partitions: list[FetchPartition] = field(default=[])


@struct
class ForgottenTopic:
    topic: str = field("7-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partitions: list[i32] = field(default=[])


@message(key=1, versions="0-18", flexible="12+")
class FetchRequest:
    cluster_id: str | None = field("12+", default=None, tag=0, ignorable=True)
    replica_id: i32 = field("0-14", default=-1)
    replica_state: ReplicaState = field("15+", default=ReplicaState(), tag=1)
    max_wait_ms: i32 = 0
    min_bytes: i32 = 0
    max_bytes: i32 = field("3+", default=0x7FFFFFFF, ignorable=True)
    isolation_level: i8 = field("4+", default=0, ignorable=True)
    session_id: i32 = field("7+", default=0, ignorable=True)
    session_epoch: i32 = field("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = field(default=[])
    forgotten_topics_data: list[ForgottenTopic] = field("7+", default=[])
    rack_id: str = field("11+", default="", ignorable=True)


@struct
class EpochEndOffset:
    epoch: i32 = -1
    end_offset: i64 = -1


@struct
class LeaderIdAndEpoch:
    leader_id: i32 = -1
    leader_epoch: i32 = -1


@struct
class SnapshotId:
    end_offset: i64 = -1
    epoch: i32 = -1


@struct
class AbortedTransaction:
    producer_id: i64 = 0
    first_offset: i64 = 0


@struct
class PartitionData:
    partition_index: i32 = 0
    error_code: i16 = 0
    high_watermark: i64 = 0
    last_stable_offset: i64 = field("4+", default=-1, ignorable=True)
    log_start_offset: i64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field("12+", default=EpochEndOffset(), tag=0)
    current_leader: LeaderIdAndEpoch = field("12+", default=LeaderIdAndEpoch(), tag=1)
    snapshot_id: SnapshotId = field("12+", default=SnapshotId(), tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field("4+", default=[], ignorable=True)
    preferred_read_replica: i32 = field("11+", default=-1)
    records: Records | None = None


@struct
class FetchableTopicResponse:
    topic: str = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partitions: list[PartitionData] = field(default=[])


@struct
class NodeEndpoint:
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None


@message(key=1, versions="0-18", flexible="12+")
class FetchResponse:
    throttle_time_ms: i32 = field("1+", default=0, ignorable=True)
    error_code: i16 = field("7+", default=0, ignorable=True)
    session_id: i32 = field("7+", default=0)
    responses: list[FetchableTopicResponse] = field(default=[])
    node_endpoints: list[NodeEndpoint] = field("16+", default=[], tag=0)
