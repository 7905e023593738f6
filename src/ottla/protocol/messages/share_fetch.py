"""ShareFetch (key 78): acquire records of share partitions, and acknowledge earlier ones (KIP-932).

v0 was an early access version that no release keeps; v2 acquire mode (KIP-1206), renewals (KIP-1222).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import Records, field, i8, i16, i32, i64, message, struct


@struct
class AcknowledgementBatch:
    first_offset: i64 = 0
    last_offset: i64 = 0
    acknowledge_types: list[i8] = field(default=[])


@struct
class FetchPartition:
    partition_index: i32 = 0
    partition_max_bytes: i32 = field("0", default=0)
    acknowledgement_batches: list[AcknowledgementBatch] = field(default=[])


@struct
class FetchTopic:
    topic_id: Uuid = ZERO_UUID
    partitions: list[FetchPartition] = field(default=[])


@struct
class ForgottenTopic:
    topic_id: Uuid = ZERO_UUID
    partitions: list[i32] = field(default=[])


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchRequest:
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: i32 = 0
    max_wait_ms: i32 = 0
    min_bytes: i32 = 0
    max_bytes: i32 = 0x7FFFFFFF
    max_records: i32 = 0
    batch_size: i32 = 0
    share_acquire_mode: i8 = field("2+", default=0, ignorable=True)
    is_renew_ack: bool = field("2+", default=False)
    topics: list[FetchTopic] = field(default=[])
    forgotten_topics_data: list[ForgottenTopic] = field(default=[])


@struct
class LeaderIdAndEpoch:
    leader_id: i32 = 0
    leader_epoch: i32 = 0


@struct
class AcquiredRecords:
    first_offset: i64 = 0
    last_offset: i64 = 0
    delivery_count: i16 = 0


@struct
class PartitionData:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    acknowledge_error_code: i16 = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default=LeaderIdAndEpoch())
    records: Records = b""
    acquired_records: list[AcquiredRecords] = field(default=[])


@struct
class ShareFetchableTopicResponse:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default=[])


@struct
class NodeEndpoint:
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: i32 = 0
    responses: list[ShareFetchableTopicResponse] = field(default=[])
    node_endpoints: list[NodeEndpoint] = field(default=[])
