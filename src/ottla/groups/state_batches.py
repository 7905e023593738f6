"""Putting together what is known of a share partition's records with what is new (KIP-932).

Of two statements about a record the one about a later delivery holds, and of two about the same delivery the
one that says more: acknowledged or archived over available. So it does not matter in which order they come.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from ottla.core.share import UNINITIALIZED, StateBatch


def combine(known: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """One list in the order of offsets, without overlaps, and without what lies before the start."""
    batches = []
    for batch in (*known, *new):
        first, last, state, count = batch
        if start_offset != UNINITIALIZED and first < start_offset:
            first = start_offset
        if first <= last:
            batches.append(StateBatch(first, last, state, count))
    if len(batches) < 2:
        return batches
    batches.sort()
    return _swept(batches)


def _swept(batches: list[StateBatch]) -> list[StateBatch]:
    """Walk over the offsets, with those batches in a heap that hold where we are, the strongest on top."""
    swept: list[StateBatch] = []
    heap: list[tuple[int, int, int]] = []  # by delivery count and state, the highest first; last offset
    coming = 0
    offset = batches[0].first_offset
    while coming < len(batches) or heap:
        while heap and -heap[0][2] < offset:
            heappop(heap)
        if not heap:
            if coming == len(batches):
                break
            offset = max(offset, batches[coming].first_offset)
        while coming < len(batches) and batches[coming].first_offset <= offset:
            _, last, state, count = batches[coming]
            heappush(heap, (-count, -state, -last))
            coming += 1
        if -heap[0][2] < offset:
            continue
        count, state, last = (-number for number in heap[0])
        if coming < len(batches):
            # What begins inside of this one may be stronger, from where it begins.
            last = min(last, batches[coming].first_offset - 1)
        _add(swept, StateBatch(offset, last, state, count))
        offset = last + 1
    return swept


def _add(swept: list[StateBatch], batch: StateBatch) -> None:
    if swept:
        before = swept[-1]
        if before.last_offset + 1 == batch.first_offset and before[2:] == batch[2:]:
            swept[-1] = before._replace(last_offset=batch.last_offset)
            return
    swept.append(batch)
