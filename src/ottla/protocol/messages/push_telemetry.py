"""PushTelemetry (key 72): a client pushes its metrics (KIP-714)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import i8, i16, i32, message


@message(key=72, versions="0", flexible="0+")
class PushTelemetryRequest:
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: i32 = 0
    terminating: bool = False
    compression_type: i8 = 0
    metrics: bytes = b""


@message(key=72, versions="0", flexible="0+")
class PushTelemetryResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
