"""BrokerRegistration (key 62): a starting broker registers with the controller (KIP-631).

v1 migration from ZooKeeper (KIP-866); v2 log directories (KIP-858); v3 previous broker epoch (KIP-966); v4
features may start at version 0 (KAFKA-17011).
"""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i16, i32, i64, message, struct, u16


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


@message(key=62, versions="0-4", flexible="0+")
class BrokerRegistrationRequest:
    broker_id: i32 = 0
    cluster_id: str = ""
    incarnation_id: Uuid = ZERO_UUID
    listeners: list[Listener] = field(default=[])
    features: list[Feature] = field(default=[])
    rack: str | None = ""
    is_migrating_zk_broker: bool = field("1+", default=False)
    log_dirs: list[Uuid] = field("2+", default=[], ignorable=True)
    previous_broker_epoch: i64 = field("3+", default=-1, ignorable=True)


@message(key=62, versions="0-4", flexible="0+")
class BrokerRegistrationResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    broker_epoch: i64 = -1
