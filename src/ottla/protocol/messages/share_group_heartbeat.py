"""ShareGroupHeartbeat (key 76): join, stay in or leave a share group (KIP-932).

v0 was an early access version that no release keeps.
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    group_id: str = ""
    member_id: str = ""
    member_epoch: i32 = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


@struct
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: list[i32] = field(default=[])


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = field(default=[])


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    assignment: Assignment | None = None
