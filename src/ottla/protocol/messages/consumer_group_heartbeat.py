"""ConsumerGroupHeartbeat (key 68): join, stay in or leave a consumer group (KIP-848).

v1 subscription by regular expression, and members make their own id (KIP-1082).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: list[i32] = field(default=[])


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    group_id: str = ""
    member_id: str = ""
    member_epoch: i32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: i32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = field("1+", default=None)
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None


@struct
class TopicPartitionsResponse:
    topic_id: Uuid = ZERO_UUID
    partitions: list[i32] = field(default=[])


@struct
class Assignment:
    topic_partitions: list[TopicPartitionsResponse] = field(default=[])


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    assignment: Assignment | None = None
