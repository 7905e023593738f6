"""Heartbeat (key 12): a member of a classic group says that it is alive.

v1 throttle time; v3 group instance id (KIP-345); v4 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    group_instance_id: str | None = field("3+", default=None)


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    throttle_time_ms: i32 = field("1+", default=0, ignorable=True)
    error_code: i16 = 0
