"""FindCoordinator (key 10): which broker coordinates a group, a transactional id or a share partition.

v1 key type, throttle time, error message; v3 flexible; v4 several keys at once (KIP-699); v5
TRANSACTION_ABORTABLE (KIP-890); v6 share groups, with keys of the form group:topic-id:partition (KIP-932).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, message, struct


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    key: str = field("0-3", default="")
    key_type: i8 = field("1+", default=0)
    coordinator_keys: list[str] = field("4+", default=[])


@struct
class Coordinator:
    key: str = ""
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    throttle_time_ms: i32 = field("1+", default=0, ignorable=True)
    error_code: i16 = field("0-3", default=0)
    error_message: str | None = field("1-3", default="", ignorable=True)
    node_id: i32 = field("0-3", default=0)
    host: str = field("0-3", default="")
    port: i32 = field("0-3", default=0)
    coordinators: list[Coordinator] = field("4+", default=[])
