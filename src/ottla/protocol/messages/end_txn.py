"""EndTxn (key 26): commit or abort a transaction.

v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE (KIP-890); v5 the epoch rises with each
transaction, so the answer carries producer id and epoch (KIP-890).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message


@message(key=26, versions="0-5", flexible="3+")
class EndTxnRequest:
    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    committed: bool = False


@message(key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = field("5+", default=-1, ignorable=True)
    producer_epoch: i16 = field("5+", default=-1, ignorable=True)
