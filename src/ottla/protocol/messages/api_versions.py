"""ApiVersions (key 18): which APIs a broker serves, in which versions.

v1 throttle time; v3 flexible, client software (KIP-511), features (KIP-584); v4 features may start at
version 0 (KAFKA-17011). The response always has header version 0, so that a client can read it before it
knows anything.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    client_software_name: str = field("3+", default="", ignorable=True)
    client_software_version: str = field("3+", default="", ignorable=True)


@struct
class ApiVersion:
    api_key: i16 = 0
    min_version: i16 = 0
    max_version: i16 = 0


@struct
class SupportedFeatureKey:
    name: str = ""
    min_version: i16 = 0
    max_version: i16 = 0


@struct
class FinalizedFeatureKey:
    name: str = ""
    max_version_level: i16 = 0
    min_version_level: i16 = 0


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    error_code: i16 = 0
    api_keys: list[ApiVersion] = field(default=[])
    throttle_time_ms: i32 = field("1+", default=0, ignorable=True)
    supported_features: list[SupportedFeatureKey] = field("3+", default=[], tag=0, ignorable=True)
    finalized_features_epoch: i64 = field("3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field("3+", default=[], tag=2, ignorable=True)
    zk_migration_ready: bool = field("3+", default=False, tag=3, ignorable=True)
