"""ListTransactions (key 66): the transactional ids that a coordinator knows (KIP-664).

v1 filter by duration (KIP-994); v2 filter by pattern (KIP-1152).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    state_filters: list[str] = field(default=[])
    producer_id_filters: list[i64] = field(default=[])
    duration_filter: i64 = field("1+", default=-1)
    transactional_id_pattern: str | None = field("2+", default=None)


@struct
class TransactionState:
    transactional_id: str = ""
    producer_id: i64 = 0
    transaction_state: str = ""


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    unknown_state_filters: list[str] = field(default=[])
    transaction_states: list[TransactionState] = field(default=[])
