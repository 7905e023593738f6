"""Which transactions compaction meets on its way through a log, and what of them may go. Pure.

The records of an aborted transaction go at once. A marker stays as long as a batch of its transaction is
there: without it an aborted record would be taken for a committed one. Batches are told in the order of the
log.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.storage.transaction_index import AbortedEntry


class CleanedTransactions:
    __slots__ = ("_aborted", "_committed", "_open", "_seen")

    def __init__(self, aborted: Iterable[AbortedEntry]) -> None:
        # Those that are still to come, the first last.
        self._aborted = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        # Aborted transactions that have begun and not ended, by producer, and which have a batch left.
        self._open: dict[int, AbortedEntry] = {}
        self._seen: set[int] = set()
        self._committed: set[int] = set()

    def on_batch(self, producer_id: int, last_offset: int) -> bool:
        """A batch of a transaction; whether that was aborted."""
        self._begin_up_to(last_offset)
        if producer_id in self._open:
            self._seen.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def on_commit(self, producer_id: int, offset: int) -> bool:
        """A marker; whether no batch of its transaction is left."""
        self._begin_up_to(offset)
        left = producer_id in self._committed
        self._committed.discard(producer_id)
        return not left

    def on_abort(self, producer_id: int, offset: int) -> AbortedEntry | None:
        """A marker; its transaction, unless no batch of that is left."""
        self._begin_up_to(offset)
        entry = self._open.pop(producer_id, None)
        left = producer_id in self._seen
        self._seen.discard(producer_id)
        return entry if left else None

    def _begin_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[-1].first_offset <= offset:
            entry = self._aborted.pop()
            # One that is over by now was before the part that is read: its marker will not come.
            if entry.last_offset >= offset:
                self._open.setdefault(entry.producer_id, entry)
