"""ShareGroupDescribe (key 77): the state and the members of share groups (KIP-932).

v0 was an early access version that no release keeps.
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeRequest:
    group_ids: list[str] = field(default=[])
    include_authorized_operations: bool = False


@struct
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[i32] = field(default=[])


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = field(default=[])


@struct
class Member:
    member_id: str = ""
    rack_id: str | None = None
    member_epoch: i32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default=[])
    assignment: Assignment = field(default=Assignment())


@struct
class DescribedGroup:
    error_code: i16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: i32 = 0
    assignment_epoch: i32 = 0
    assignor_name: str = ""
    members: list[Member] = field(default=[])
    authorized_operations: i32 = -2_147_483_648


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = field(default=[])
