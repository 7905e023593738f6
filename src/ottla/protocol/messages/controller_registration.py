"""ControllerRegistration (key 70): a controller registers with the active controller (KIP-919)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, message, struct, u16


@struct
class Listener:
    name: str = ""
    host: str = ""
    port: u16 = 0
    security_protocol: i16 = 0


@struct
class Feature:
    name: str = ""
    min_supported_version: i16 = 0
    max_supported_version: i16 = 0


@message(key=70, versions="0", flexible="0+")
class ControllerRegistrationRequest:
    controller_id: i32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    listeners: list[Listener] = field(default=[])
    features: list[Feature] = field(default=[])


@message(key=70, versions="0", flexible="0+")
class ControllerRegistrationResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
