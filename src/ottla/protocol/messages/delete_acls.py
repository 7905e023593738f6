"""DeleteAcls (key 31): remove the access rules that match filters.

v1 pattern type (KIP-290); v2 flexible; v3 user resources (KIP-373).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, message, struct


@struct
class DeleteAclsFilter:
    resource_type_filter: i8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: i8 = field("1+", default=3)
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: i8 = 0
    permission_type: i8 = 0


@message(key=31, versions="0-3", flexible="2+")
class DeleteAclsRequest:
    filters: list[DeleteAclsFilter] = field(default=[])


@struct
class DeleteAclsMatchingAcl:
    error_code: i16 = 0
    error_message: str | None = ""
    resource_type: i8 = 0
    resource_name: str = ""
    pattern_type: i8 = field("1+", default=3)
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


@struct
class DeleteAclsFilterResult:
    error_code: i16 = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = field(default=[])


@message(key=31, versions="0-3", flexible="2+")
class DeleteAclsResponse:
    throttle_time_ms: i32 = 0
    filter_results: list[DeleteAclsFilterResult] = field(default=[])
