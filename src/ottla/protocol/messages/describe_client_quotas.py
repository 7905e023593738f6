"""DescribeClientQuotas (key 48): the quotas that match a filter (KIP-546).

v1 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import f64, field, i8, i16, i32, message, struct


@struct
class ComponentData:
    entity_type: str = ""
    match_type: i8 = 0
    match: str | None = ""


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    components: list[ComponentData] = field(default=[])
    strict: bool = False


@struct
class EntityData:
    entity_type: str = ""
    entity_name: str | None = ""


@struct
class ValueData:
    key: str = ""
    value: f64 = 0.0


@struct
class EntryData:
    entity: list[EntityData] = field(default=[])
    values: list[ValueData] = field(default=[])


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = field(default=[])
