"""FetchSnapshot (key 59): read a part of a snapshot of the metadata log (KIP-630).

v1 directory id, leader endpoints (KIP-853).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import Records, field, i16, i32, i64, message, struct, u16


@struct
class SnapshotId:
    end_offset: i64 = 0
    epoch: i32 = 0


@struct
class PartitionSnapshot:
    partition: i32 = 0
    current_leader_epoch: i32 = 0
    snapshot_id: SnapshotId = field(default=SnapshotId())
    position: i64 = 0
    replica_directory_id: Uuid = field("1+", default=ZERO_UUID, tag=0, ignorable=True)


@struct
class TopicSnapshot:
    name: str = ""
    partitions: list[PartitionSnapshot] = field(default=[])


@message(key=59, versions="0-1", flexible="0+")
class FetchSnapshotRequest:
    cluster_id: str | None = field(default=None, tag=0)
    replica_id: i32 = -1
    max_bytes: i32 = 0x7FFFFFFF
    topics: list[TopicSnapshot] = field(default=[])


@struct
class SnapshotIdResponse:
    end_offset: i64 = 0
    epoch: i32 = 0


@struct
class LeaderIdAndEpoch:
    leader_id: i32 = 0
    leader_epoch: i32 = 0


@struct
class PartitionSnapshotResponse:
    index: i32 = 0
    error_code: i16 = 0
    snapshot_id: SnapshotIdResponse = field(default=SnapshotIdResponse())
    current_leader: LeaderIdAndEpoch = field(default=LeaderIdAndEpoch(), tag=0)
    size: i64 = 0
    position: i64 = 0
    unaligned_records: Records = b""


@struct
class TopicSnapshotResponse:
    name: str = ""
    partitions: list[PartitionSnapshotResponse] = field(default=[])


@struct
class NodeEndpoint:
    node_id: i32 = 0
    host: str = ""
    port: u16 = 0


@message(key=59, versions="0-1", flexible="0+")
class FetchSnapshotResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    topics: list[TopicSnapshotResponse] = field(default=[])
    node_endpoints: list[NodeEndpoint] = field("1+", default=[], tag=0)
