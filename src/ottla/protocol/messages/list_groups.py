"""ListGroups (key 16): the groups that a broker coordinates.

v1 throttle time; v3 flexible; v4 filter by state (KIP-518); v5 filter by type (KIP-848).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, message, struct


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    states_filter: list[str] = field("4+", default=[])
    types_filter: list[str] = field("5+", default=[])


@struct
class ListedGroup:
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = field("4+", default="", ignorable=True)
    group_type: str = field("5+", default="", ignorable=True)


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    throttle_time_ms: i32 = field("1+", default=0, ignorable=True)
    error_code: i16 = 0
    groups: list[ListedGroup] = field(default=[])
