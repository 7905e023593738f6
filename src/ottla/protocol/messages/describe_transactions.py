"""DescribeTransactions (key 65): the state of some transactional ids (KIP-664)."""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    transactional_ids: list[str] = field(default=[])


@struct
class TopicData:
    topic: str = ""
    partitions: list[i32] = field(default=[])


@struct
class TransactionState:
    error_code: i16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: i32 = 0
    transaction_start_time_ms: i64 = 0
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    topics: list[TopicData] = field(default=[])


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState] = field(default=[])
