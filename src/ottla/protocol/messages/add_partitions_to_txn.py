"""AddPartitionsToTxn (key 24): add partitions to a transaction, or check that they are part of it.

v2 PRODUCER_FENCED; v3 flexible; v4 several transactions at once and verify_only, for brokers, while clients
stay at v3; v5 TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class AddPartitionsToTxnTopic:
    name: str = ""
    partitions: list[i32] = field(default=[])


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = field(default=[])


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    transactions: list[AddPartitionsToTxnTransaction] = field("4+", default=[])
    v3_and_below_transactional_id: str = field("0-3", default="")
    v3_and_below_producer_id: i64 = field("0-3", default=0)
    v3_and_below_producer_epoch: i16 = field("0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field("0-3", default=[])


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: i32 = 0
    partition_error_code: i16 = 0


@struct
class AddPartitionsToTxnTopicResult:
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(default=[])


@struct
class AddPartitionsToTxnResult:
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = field(default=[])


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = field("4+", default=0, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field("4+", default=[])
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field("0-3", default=[])
