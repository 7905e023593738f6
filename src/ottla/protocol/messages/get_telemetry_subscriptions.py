"""GetTelemetrySubscriptions (key 71): which metrics the broker wants a client to push (KIP-714)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, message


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest:
    client_instance_id: Uuid = ZERO_UUID


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: i32 = 0
    accepted_compression_types: list[i8] = field(default=[])
    push_interval_ms: i32 = 0
    telemetry_max_bytes: i32 = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = field(default=[])
