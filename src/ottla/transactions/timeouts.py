"""When open transactions are to be aborted for their age."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

# The heap is rebuilt when it has this many entries and most of them are of transactions that are over.
REBUILD_AT: Final = 64


class Timeouts:
    """A deadline for each open transaction, in monotonic milliseconds."""

    def __init__(self) -> None:
        self._deadlines: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def set(self, transactional_id: str, deadline: int) -> None:
        self._deadlines[transactional_id] = deadline
        heappush(self._heap, (deadline, transactional_id))
        if len(self._heap) > max(REBUILD_AT, 2 * len(self._deadlines)):
            self._heap = [(at, one) for one, at in self._deadlines.items()]
            heapify(self._heap)

    def cancel(self, transactional_id: str) -> None:
        self._deadlines.pop(transactional_id, None)

    def next(self) -> int | None:
        """The first deadline."""
        heap = self._heap
        while heap and self._deadlines.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now: int, limit: int) -> list[str]:
        """The ids whose deadline has come, the oldest first. They have none after this."""
        due: list[str] = []
        while len(due) < limit and (at := self.next()) is not None and at <= now:
            due.append(heappop(self._heap)[1])
            del self._deadlines[due[-1]]
        return due
