"""Folding a stored batch into the state of producers: what a follower and a recovery do with every batch."""

from __future__ import annotations

from collections.abc import Callable

from ottla.core.files import Buffer
from ottla.protocol.batch import CONTROL, TRANSACTIONAL
from ottla.protocol.control import read_end_transaction
from ottla.storage.batch_file import FileBatch
from ottla.storage.producer_state import CompletedTransaction, Producers, sequence_after


def replay(producers: Producers, batch: FileBatch, read: Callable[[], Buffer]) -> CompletedTransaction | None:
    """Fold in a batch that is in the log already, so that nothing is checked any more.

    `read` gives its bytes, which only the marker of a transaction needs. If it ends one with records, that
    is the answer, and the caller completes it.
    """
    if batch.producer_id < 0:
        return None
    if not batch.attributes & CONTROL:
        producers.apply(
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            last_sequence(batch),
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp,
            bool(batch.attributes & TRANSACTIONAL),
        )
        return None
    # Compaction leaves a control batch without records when it has removed the whole transaction.
    marker = read_end_transaction(read()) if batch.record_count else None
    if marker is None:
        return None
    return producers.apply_marker(
        batch.producer_id,
        batch.producer_epoch,
        marker.coordinator_epoch,
        batch.base_offset,
        batch.max_timestamp,
        aborted=not marker.commit,
    )


def last_sequence(batch: FileBatch) -> int:
    if batch.base_sequence < 0:
        return batch.base_sequence
    return sequence_after(batch.base_sequence, batch.last_offset - batch.base_offset)
