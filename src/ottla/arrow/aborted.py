"""Which batches belong to aborted transactions, found out as Kafka's consumer does it.

A fetch response lists every aborted transaction that it may hold records of, by producer and first offset.
From that offset on the producer's transactional batches are dropped, until its abort marker.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from ottla.core.files import Buffer
from ottla.protocol.batch import BatchHeader
from ottla.protocol.control import ControlRecordType, read_control_records


class AbortedTransactions:
    """Told of a response's list by `begin`, and then of every batch, in order, until it `is_over`."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int]] = []
        self._producers: set[int] = set()
        self._ended: dict[int, int] = {}

    def begin(self, aborted: Sequence[tuple[int, int]], *, continues: bool) -> None:
        """A response, or a piece of one, with its (producer id, first offset).

        One response may come in pieces, each with the whole list. If this one `continues` where the last
        ended, a transaction whose marker was in an earlier piece is over and does not begin again.
        """
        if not continues:
            self._ended.clear()
        self._waiting = [
            (first_offset, producer_id)
            for producer_id, first_offset in aborted
            if first_offset > self._ended.get(producer_id, -1)
        ]
        heapq.heapify(self._waiting)
        self._producers.clear()

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be dropped, so that `drops` need not be asked."""
        return not self._waiting and not self._producers

    def drops(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether the records of this batch were aborted."""
        if header.producer_id < 0:
            return False
        while self._waiting and self._waiting[0][0] <= header.last_offset:
            self._producers.add(heapq.heappop(self._waiting)[1])
        if header.is_control:
            if _is_abort_marker(batch):
                self._producers.discard(header.producer_id)
                self._ended[header.producer_id] = header.last_offset
            return False
        return header.is_transactional and header.producer_id in self._producers


def _is_abort_marker(batch: Buffer) -> bool:
    # Compaction leaves a control batch without records when it has removed a marker.
    records = read_control_records(batch)
    return bool(records) and records[0].type is ControlRecordType.ABORT
