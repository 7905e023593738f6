"""From fetched batches to the records that a reader should see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ottla.core.files import Buffer
from ottla.protocol.batch import Record, iter_batches, read_records
from ottla.protocol.messages.fetch import AbortedTransaction

# What is read on the loop, between two turns of others. More than that goes to a thread.
QUICK_BYTES: Final = 16 << 10
QUICK_RECORDS: Final = 500


def is_quickly_read(batches: Buffer) -> bool:
    """Whether there is little to unpack. A few bytes may be very many records, if they are compressed."""
    return (
        len(batches) <= QUICK_BYTES
        and sum(header.record_count for header, _ in iter_batches(batches)) <= QUICK_RECORDS
    )


def visible_records(batches: Buffer, aborted: Iterable[AbortedTransaction], offset: int) -> Iterator[Record]:
    """The records from `offset` on, without control records and those of transactions that were aborted.

    A broker answers whole batches, which may begin before the offset that was asked for.
    """
    waiting = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
    aborting: set[int] = set()
    for header, batch in iter_batches(batches):
        while waiting and waiting[-1].first_offset <= header.last_offset:
            aborting.add(waiting.pop().producer_id)
        if header.is_control:
            # The marker that ends a transaction. A committed one has no open abort to end.
            aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            for record in read_records(batch):
                if record.offset >= offset:
                    yield record


def offset_after(batches: Buffer, offset: int) -> int:
    """Where to read on."""
    for header, _ in iter_batches(batches):
        offset = max(offset, header.last_offset + 1)
    return offset
