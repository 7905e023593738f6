"""ListConfigResources (key 74): the resources that have configs (KIP-1142).

v0 lists client metrics resources only (KIP-714); v1 any type (KIP-1142).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, message, struct


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    resource_types: list[i8] = field("1+", default=[])


@struct
class ConfigResource:
    resource_name: str = ""
    resource_type: i8 = field("1+", default=16, ignorable=True)


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    config_resources: list[ConfigResource] = field(default=[])
