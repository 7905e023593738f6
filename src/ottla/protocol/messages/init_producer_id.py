"""InitProducerId (key 22): obtain a producer id and epoch, and fence whoever had them before.

v2 flexible; v3 the producer's present id and epoch, to go on after an error (KIP-360); v4 PRODUCER_FENCED;
v5 TRANSACTION_ABORTABLE (KIP-890); v6 two-phase commit, not yet stable (KIP-939).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message


@message(key=22, versions="0-6", flexible="2+", unstable_latest=True)
class InitProducerIdRequest:
    transactional_id: str | None = ""
    transaction_timeout_ms: i32 = 0
    producer_id: i64 = field("3+", default=-1)
    producer_epoch: i16 = field("3+", default=-1)
    enable_2pc: bool = field("6+", default=False)
    keep_prepared_txn: bool = field("6+", default=False)


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16 = 0
    ongoing_txn_producer_id: i64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: i16 = field("6+", default=-1)
