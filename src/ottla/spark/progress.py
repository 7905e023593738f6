"""Where the sink of a stream asks the broker what of a batch is committed, and tells it: see
`exactly_once`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    UnstableOffsetCommit,
)
from ottla.spark.exactly_once import Marker, Open, Progress, group_of, slot_of, transactional_id
from ottla.spark.sink import abort_open, lost, wait_until_visible

SETTLE_SECONDS: Final = 3.0
"""How long a position may stay between two states before its transaction is taken for abandoned. A
transaction that is being committed needs milliseconds."""

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


def read_progress(cluster: BlockingCluster, query_id: str, batch_id: int) -> Progress:
    """What of a batch is committed. What is just being committed may be missing: a task that waited for that
    could wait for its own transaction."""
    positions = cluster.committed(group_of(query_id), require_stable=False)
    progress = Progress.of(batch_id, positions.items())
    return _read_slots(cluster, query_id, progress, stable=False) if progress.shelves > 1 else progress


def finish(cluster: BlockingCluster, query_id: str, progress: Progress) -> Progress:
    """End the transactions that a decided batch has left open; what of it is committed then."""
    for transaction in progress.unfinished():
        commit(cluster, handle_of(query_id, transaction))
    return _read_slots(cluster, query_id, progress, stable=True)


def settle(
    cluster: BlockingCluster,
    query_id: str,
    batch_id: int,
    *,
    topic: str,
    keep: Collection[str],
    timeout_ms: int,
) -> Progress:
    """What of a batch is committed, once an earlier run of it has no part in that any more: what that one has
    decided is finished. The transactions of this run, with the ids `keep`, stay as they are."""
    progress = read_progress(cluster, query_id, batch_id)
    if not progress.is_decided and _is_being_decided(cluster, query_id, topic):
        # An earlier driver stored markers and ended nothing, and its first task has no rows now.
        abort_open(cluster, f"ottla-{query_id}-", timeout_ms, but=keep)
    if not progress.is_decided:
        progress = read_progress(cluster, query_id, batch_id)
    if progress.is_decided and not progress.is_complete:
        progress = finish(cluster, query_id, progress)
    return progress


def _is_being_decided(cluster: BlockingCluster, query_id: str, topic: str) -> bool:
    """Whether the first marker is in a transaction that is open, and not just being ended."""
    patience, cluster.timeout = cluster.timeout, SETTLE_SECONDS
    try:
        cluster.committed(group_of(query_id), [TopicPartition(topic, 0)])
    except UnstableOffsetCommit:
        return True
    finally:
        cluster.timeout = patience
    return False


def _read_slots(cluster: BlockingCluster, query_id: str, progress: Progress, *, stable: bool) -> Progress:
    """The markers of a decided batch, each asked for by name: only then is one waited for that has no
    position in force before it."""
    first, topic = progress.first, progress.topic
    assert first is not None and topic is not None, "a batch that is not decided has no slots yet"
    shelves: dict[int, list[TopicPartition]] = {}
    for ordinal in range(first.writers):
        shelf, slot = slot_of(ordinal, first.slots)
        shelves.setdefault(shelf, []).append(TopicPartition(topic, slot))
    found: list[tuple[TopicPartition, tuple[int, str]]] = []
    for shelf, wanted in shelves.items():
        found += cluster.committed(group_of(query_id, shelf), wanted, require_stable=stable).items()
    return Progress.of(progress.batch_id, found)


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
    handles = [handle_of(query_id, transaction) for _, transaction in ends]
    for handle in handles:
        if not commit(cluster, handle):
            raise lost(handle, timeout_ms)
    wait_until_visible(cluster, handles)


def _producer(cluster: BlockingCluster, handle: TransactionHandle) -> TransactionalProducer:
    """The producer of a transaction that was begun elsewhere."""
    connection = cluster.coordinator(handle.transactional_id, TRANSACTION)
    return TransactionalProducer(
        cluster, handle, implicit=connection.features.get(TRANSACTION_VERSION, 0) >= 2
    )
