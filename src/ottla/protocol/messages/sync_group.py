"""SyncGroup (key 14): the leader of a classic group hands in assignments; every member is handed its own.

v1 throttle time; v3 group instance id (KIP-345); v4 flexible; v5 protocol type and name (KIP-559).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@struct
class SyncGroupRequestAssignment:
    member_id: str = ""
    assignment: bytes = b""


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    group_instance_id: str | None = field("3+", default=None)
    protocol_type: str | None = field("5+", default=None, ignorable=True)
    protocol_name: str | None = field("5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field(default=[])


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    throttle_time_ms: i32 = field("1+", default=0, ignorable=True)
    error_code: i16 = 0
    protocol_type: str | None = field("5+", default=None, ignorable=True)
    protocol_name: str | None = field("5+", default=None, ignorable=True)
    assignment: bytes = b""
