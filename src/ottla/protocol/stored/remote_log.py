"""Records of `__remote_log_metadata`, which says what is in tiered storage (KIP-405)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i32, i64, message, struct


@struct
class TopicIdPartitionEntry:
    name: str = ""
    id: Uuid = ZERO_UUID
    partition: i32 = 0


@struct
class RemoteLogSegmentIdEntry:
    topic_id_partition: TopicIdPartitionEntry = field(default=TopicIdPartitionEntry())
    id: Uuid = ZERO_UUID


@struct
class SegmentLeaderEpochEntry:
    leader_epoch: i32 = 0
    offset: i64 = 0


@message(key=0, versions="0", flexible="0+")
class RemoteLogSegmentMetadataRecord:
    """A segment is being copied."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = field(default=RemoteLogSegmentIdEntry())
    start_offset: i64 = 0
    end_offset: i64 = 0
    broker_id: i32 = 0
    max_timestamp_ms: i64 = 0
    event_timestamp_ms: i64 = 0
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = field(default=[])
    segment_size_in_bytes: i32 = 0
    custom_metadata: bytes | None = None
    remote_log_segment_state: i8 = 0
    txn_index_empty: bool = field(default=False, tag=0)


@message(key=1, versions="0", flexible="0+")
class RemoteLogSegmentMetadataUpdateRecord:
    """A segment's state changed."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = field(default=RemoteLogSegmentIdEntry())
    broker_id: i32 = 0
    event_timestamp_ms: i64 = 0
    custom_metadata: bytes | None = None
    remote_log_segment_state: i8 = 0


@message(key=2, versions="0", flexible="0+")
class RemotePartitionDeleteMetadataRecord:
    """A partition is being deleted, or is gone."""

    topic_id_partition: TopicIdPartitionEntry = field(default=TopicIdPartitionEntry())
    broker_id: i32 = 0
    event_timestamp_ms: i64 = 0
    remote_partition_delete_state: i8 = 0


@message(key=3, versions="0", flexible="0+")
class RemoteLogSegmentMetadataSnapshotRecord:
    """A segment, in a snapshot of all of a partition's."""

    segment_id: Uuid = ZERO_UUID
    start_offset: i64 = 0
    end_offset: i64 = 0
    broker_id: i32 = 0
    max_timestamp_ms: i64 = 0
    event_timestamp_ms: i64 = 0
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = field(default=[])
    segment_size_in_bytes: i32 = 0
    custom_metadata: bytes | None = None
    remote_log_segment_state: i8 = 0
    txn_index_empty: bool = field(default=False, tag=0)
