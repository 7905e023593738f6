"""DeleteGroups (key 42): delete groups that have no members.

v2 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    groups_names: list[str] = field(default=[])


@struct
class DeletableGroupResult:
    group_id: str = ""
    error_code: i16 = 0


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    throttle_time_ms: i32 = 0
    results: list[DeletableGroupResult] = field(default=[])
