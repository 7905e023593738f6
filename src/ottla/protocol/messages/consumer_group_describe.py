"""ConsumerGroupDescribe (key 69): the state and the members of consumer groups (KIP-848).

v1 member type (KIP-1099).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, message, struct


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
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
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: i32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default=[])
    subscribed_topic_regex: str | None = None
    assignment: Assignment = field(default=Assignment())
    target_assignment: Assignment = field(default=Assignment())
    member_type: i8 = field("1+", default=-1, ignorable=True)


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


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = field(default=[])
