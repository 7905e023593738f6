"""AlterClientQuotas (key 49): set or remove quotas (KIP-546).

v1 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import f64, field, i16, i32, message, struct


@struct
class EntityData:
    entity_type: str = ""
    entity_name: str | None = ""


@struct
class OpData:
    key: str = ""
    value: f64 = 0.0
    remove: bool = False


@struct
class EntryData:
    entity: list[EntityData] = field(default=[])
    ops: list[OpData] = field(default=[])


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    entries: list[EntryData] = field(default=[])
    validate_only: bool = False


@struct
class EntityDataResponse:
    entity_type: str = ""
    entity_name: str | None = ""


@struct
class EntryDataResponse:
    error_code: i16 = 0
    error_message: str | None = ""
    entity: list[EntityDataResponse] = field(default=[])


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    throttle_time_ms: i32 = 0
    entries: list[EntryDataResponse] = field(default=[])
