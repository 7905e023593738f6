"""Records of `__transaction_state`, and of the markers that end transactions in partitions."""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct


@message(key=0, versions="0")
class TransactionLogKey:
    """The key of a transaction's state."""

    transactional_id: str = ""


@struct
class PartitionsSchema:
    topic: str = ""
    partition_ids: list[i32] = field(default=[])


@message(key=0, versions="0-1", flexible="1+")
class TransactionLogValue:
    """A transaction's state."""

    producer_id: i64 = 0
    previous_producer_id: i64 = field("1+", default=-1, tag=0)
    next_producer_id: i64 = field("1+", default=-1, tag=1)
    producer_epoch: i16 = 0
    next_producer_epoch: i16 = field("1+", default=-1, tag=3)
    transaction_timeout_ms: i32 = 0
    transaction_status: i8 = 0
    transaction_partitions: list[PartitionsSchema] | None = field(default=[])
    transaction_last_update_timestamp_ms: i64 = 0
    transaction_start_timestamp_ms: i64 = 0
    client_transaction_version: i16 = field("1+", default=0, tag=2)


@message(versions="0")
class ControlRecordTypeSchema:
    """What follows the version in a control record's key."""

    type: i16 = 0


@message(versions="0")
class EndTxnMarker:
    """The value of a marker (control type 0 aborts, 1 commits)."""

    coordinator_epoch: i32 = 0
