"""LeaveGroup (key 13): members leave a classic group.

v1 throttle time; v3 several members at once, by member or instance id (KIP-345); v4 flexible; v5 reason
(KIP-800).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class MemberIdentity:
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = field("5+", default=None, ignorable=True)


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    group_id: str = ""
    member_id: str = field("0-2", default="")
    members: list[MemberIdentity] = field("3+", default=[])


@struct
class MemberResponse:
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: i16 = 0


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    throttle_time_ms: i32 = field("1+", default=0, ignorable=True)
    error_code: i16 = 0
    members: list[MemberResponse] = field("3+", default=[])
