"""JoinGroup (key 11): become, or remain, a member of a classic group.

v1 rebalance timeout; v2 throttle time; v4 a new member is given an id and joins again with it (KIP-394); v5
group instance id (KIP-345); v6 flexible; v7 protocol type in the answer (KIP-559); v8 reason (KIP-800); v9
the leader may skip its assignment (KIP-814).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class JoinGroupRequestProtocol:
    name: str = ""
    metadata: bytes = b""


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    group_id: str = ""
    session_timeout_ms: i32 = 0
    rebalance_timeout_ms: i32 = field("1+", default=-1, ignorable=True)
    member_id: str = ""
    group_instance_id: str | None = field("5+", default=None)
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = field(default=[])
    reason: str | None = field("8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember:
    member_id: str = ""
    group_instance_id: str | None = field("5+", default=None, ignorable=True)
    metadata: bytes = b""


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    throttle_time_ms: i32 = field("2+", default=0, ignorable=True)
    error_code: i16 = 0
    generation_id: i32 = -1
    protocol_type: str | None = field("7+", default=None, ignorable=True)
    protocol_name: str | None = field(default="", nullable="7+")
    leader: str = ""
    skip_assignment: bool = field("9+", default=False)
    member_id: str = ""
    members: list[JoinGroupResponseMember] = field(default=[])
