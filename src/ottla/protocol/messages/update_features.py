"""UpdateFeatures (key 57): raise or lower finalized feature levels (KIP-584).

v1 validate_only and upgrade type (KIP-778); v2 no results per feature (KIP-1022).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, message, struct


@struct
class FeatureUpdateKey:
    feature: str = ""
    max_version_level: i16 = 0
    allow_downgrade: bool = field("0", default=False)
    upgrade_type: i8 = field("1+", default=1)


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    timeout_ms: i32 = 60000
    feature_updates: list[FeatureUpdateKey] = field(default=[])
    validate_only: bool = field("1+", default=False)


@struct
class UpdatableFeatureResult:
    feature: str = ""
    error_code: i16 = 0
    error_message: str | None = ""


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = field("0-1", default=[], ignorable=True)
