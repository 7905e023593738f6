"""Records of `__transaction_state`: Kafka's bytes to transactions, and back.

A key is the record type 0 as an int16 and the transactional id; a value is its version as an int16 and then
its fields.
"""

from __future__ import annotations

import struct
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from ottla.core.outcome import LogRecord
from ottla.core.types import TopicPartition
from ottla.protocol.codec import decode, writer
from ottla.protocol.stored.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue
from ottla.protocol.wire import MalformedFrame
from ottla.transactions.states import State
from ottla.transactions.transaction import VERSION_2, Transaction

_SHORT: Final = struct.Struct(">h")
TRANSACTION: Final = 0
# The values of before Kafka 4, without the fields that version 2 of transactions needs.
OLD_VALUE: Final = 0
NEW_VALUE: Final = 1


class Entry(NamedTuple):
    """What a record says. Without a transaction the id is forgotten."""

    transactional_id: str
    transaction: Transaction | None


def key_of(transactional_id: str) -> bytes:
    out = bytearray(_SHORT.pack(TRANSACTION))
    return bytes(writer(TransactionLogKey, 0)(TransactionLogKey(transactional_id=transactional_id), out))


def record_of(transaction: Transaction, transaction_version: int) -> LogRecord:
    """The record of a transaction's state, as a cluster of that `transaction.version` writes it.

    A client that speaks version 2 to an older cluster needs the fields of the new one all the same.
    """
    is_new = transaction_version >= 1 or transaction.version >= VERSION_2
    version = NEW_VALUE if is_new else OLD_VALUE
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_by_topic(transaction),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    if version == NEW_VALUE:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.version
    out = bytearray(_SHORT.pack(version))
    return LogRecord(
        key_of(transaction.transactional_id), bytes(writer(TransactionLogValue, version)(value, out))
    )


def tombstone(transactional_id: str) -> LogRecord:
    """The record that forgets a transactional id."""
    return LogRecord(key_of(transactional_id), None)


def read(record: LogRecord) -> Entry | None:
    """What a record says, or None when it is of a type or a version that we do not know.

    A later Kafka may have written it, or a tool that writes by hand: neither may keep the rest of the log
    from being read.
    """
    try:
        return _read(record)
    except (MalformedFrame, struct.error, ValueError):
        return None


def _read(record: LogRecord) -> Entry | None:
    (kind,) = _SHORT.unpack_from(record.key)
    if kind != TRANSACTION:
        return None
    transactional_id = decode(TransactionLogKey, 0, record.key, _SHORT.size).transactional_id
    if record.value is None:
        return Entry(transactional_id, None)
    (version,) = _SHORT.unpack_from(record.value)
    if not OLD_VALUE <= version <= NEW_VALUE:
        return None
    value = decode(TransactionLogValue, version, record.value, _SHORT.size)
    return Entry(
        transactional_id,
        Transaction(
            transactional_id=transactional_id,
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            timeout_ms=value.transaction_timeout_ms,
            state=State(value.transaction_status),
            partitions=frozenset(
                TopicPartition(topic.topic, number)
                for topic in value.transaction_partitions or ()
                for number in topic.partition_ids
            ),
            start_ms=value.transaction_start_timestamp_ms,
            last_update_ms=value.transaction_last_update_timestamp_ms,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            version=value.client_transaction_version,
        ),
    )


def _by_topic(transaction: Transaction) -> list[PartitionsSchema] | None:
    if transaction.state is State.EMPTY:
        return None
    by_topic = groupby(sorted(transaction.partitions), key=attrgetter("topic"))
    return [
        PartitionsSchema(topic=topic, partition_ids=[partition.partition for partition in partitions])
        for topic, partitions in by_topic
    ]
