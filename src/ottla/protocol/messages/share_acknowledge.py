"""ShareAcknowledge (key 79): acknowledge the delivery of acquired records (KIP-932).

v0 was an early access version that no release keeps; v2 renewals (KIP-1222).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct


@struct
class AcknowledgementBatch:
    first_offset: i64 = 0
    last_offset: i64 = 0
    acknowledge_types: list[i8] = field(default=[])


@struct
class AcknowledgePartition:
    partition_index: i32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default=[])


@struct
class AcknowledgeTopic:
    topic_id: Uuid = ZERO_UUID
    partitions: list[AcknowledgePartition] = field(default=[])


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest:
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: i32 = 0
    is_renew_ack: bool = field("2+", default=False)
    topics: list[AcknowledgeTopic] = field(default=[])


@struct
class LeaderIdAndEpoch:
    leader_id: i32 = 0
    leader_epoch: i32 = 0


@struct
class PartitionData:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default=LeaderIdAndEpoch())


@struct
class ShareAcknowledgeTopicResponse:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default=[])


@struct
class NodeEndpoint:
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: i32 = field("2+", default=0, ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = field(default=[])
    node_endpoints: list[NodeEndpoint] = field(default=[])
