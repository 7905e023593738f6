"""Where the sink of a stream asks the broker what of a batch is committed, and tells it: see
`exactly_once`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.client.blocking.cluster import TRANSACTION, BlockingCluster
from ottla.client.blocking.transaction import TransactionalProducer, TransactionHandle, end_transaction
from ottla.client.exchange import TRANSACTION_VERSION
from ottla.core.types import TopicPartition
from ottla.protocol.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    TransactionalIdNotFound,
)
from ottla.spark.exactly_once import Marker, Open, Progress, group_of, slot_of, transactional_id
from ottla.spark.sink import lost

GONE: Final = (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    TransactionalIdNotFound,
)
"""What a broker says of a transaction that is not open any more, or never was."""


def handle_of(query_id: str, transaction: Open) -> TransactionHandle:
    return TransactionHandle(
        transactional_id(query_id, transaction.task), transaction.producer_id, transaction.producer_epoch
    )


def read_progress(cluster: BlockingCluster, query_id: str, batch_id: int, *, stable: bool) -> Progress:
    """What of a batch is committed. Unless `stable`, what is just being committed may be missing: this is for
    a task, whose own transaction could be the one to wait for."""
    positions = dict(cluster.committed(group_of(query_id), require_stable=stable))
    progress = Progress.of(batch_id, positions.items())
    if progress.shelves == 1:
        return progress
    found = list(positions.items())
    for shelf in range(1, progress.shelves):
        found += cluster.committed(group_of(query_id, shelf), require_stable=stable).items()
    return Progress.of(batch_id, found)


def finish(cluster: BlockingCluster, query_id: str, progress: Progress) -> Progress:
    """End the transactions that a decided batch has left open; what of it is committed then."""
    for transaction in progress.unfinished():
        commit(cluster, handle_of(query_id, transaction))
    return read_progress(cluster, query_id, progress.batch_id, stable=True)


def commit(cluster: BlockingCluster, handle: TransactionHandle) -> bool:
    """Commit a transaction; False if it is not open, which can also mean that it is committed."""
    try:
        end_transaction(cluster, handle, True)
    except GONE:
        return False
    return True


def commit_in_order(
    cluster: BlockingCluster,
    query_id: str,
    topic: str,
    ends: Sequence[tuple[Marker, Open]],
    timeout_ms: int,
) -> None:
    """Store all markers, then end the transactions, the first one alone. Raises `TransactionLost` while
    nothing is decided yet, or when a transaction was lost after that, for the next run to write again."""
    for marker, transaction in ends:
        handle = handle_of(query_id, transaction)
        shelf, slot = slot_of(marker.ordinal, marker.slots)
        position = {TopicPartition(topic, slot): (marker.offset, marker.metadata())}
        try:
            _producer(cluster, handle).commit_offsets(group_of(query_id, shelf), position)
        except GONE:
            raise lost(handle, timeout_ms) from None
    for _, transaction in ends:
        handle = handle_of(query_id, transaction)
        if not commit(cluster, handle):
            raise lost(handle, timeout_ms)


def _producer(cluster: BlockingCluster, handle: TransactionHandle) -> TransactionalProducer:
    """The producer of a transaction that was begun elsewhere."""
    connection = cluster.coordinator(handle.transactional_id, TRANSACTION)
    return TransactionalProducer(
        cluster, handle, implicit=connection.features.get(TRANSACTION_VERSION, 0) >= 2
    )
