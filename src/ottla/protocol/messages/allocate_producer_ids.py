"""AllocateProducerIds (key 67): a broker obtains a block of producer ids from the controller (KIP-730)."""

from __future__ import annotations

from ottla.protocol.schema import i16, i32, i64, message


@message(key=67, versions="0", flexible="0+")
class AllocateProducerIdsRequest:
    broker_id: i32 = 0
    broker_epoch: i64 = -1


@message(key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id_start: i64 = 0
    producer_id_len: i32 = 0
