"""CreateAcls (key 30): add access rules.

v1 pattern type (KIP-290); v2 flexible; v3 user resources (KIP-373).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, message, struct


@struct
class AclCreation:
    resource_type: i8 = 0
    resource_name: str = ""
    resource_pattern_type: i8 = field("1+", default=3)
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsRequest:
    creations: list[AclCreation] = field(default=[])


@struct
class AclCreationResult:
    error_code: i16 = 0
    error_message: str | None = ""


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsResponse:
    throttle_time_ms: i32 = 0
    results: list[AclCreationResult] = field(default=[])
