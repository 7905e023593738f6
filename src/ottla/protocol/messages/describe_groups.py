"""DescribeGroups (key 15): the state and the members of classic groups.

v1 throttle time; v3 authorized operations (KIP-430); v4 group instance ids (KIP-345); v5 flexible; v6 error
message, and GROUP_ID_NOT_FOUND for a group that does not exist (KIP-1043).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    groups: list[str] = field(default=[])
    include_authorized_operations: bool = field("3+", default=False)


@struct
class DescribedGroupMember:
    member_id: str = ""
    group_instance_id: str | None = field("4+", default=None, ignorable=True)
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@struct
class DescribedGroup:
    error_code: i16 = 0
    error_message: str | None = field("6+", default=None)
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(default=[])
    authorized_operations: i32 = field("3+", default=-2_147_483_648)


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    throttle_time_ms: i32 = field("1+", default=0, ignorable=True)
    groups: list[DescribedGroup] = field(default=[])
