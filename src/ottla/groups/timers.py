"""Deadlines of one shard, in a heap.

Putting a deadline off is the common case (each heartbeat does it), so it costs two assignments: the timer
keeps its old place in the heap, and when it comes up early it is queued again.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

from ottla.core.outcome import Now, Outcome

Action = Callable[[Now, Outcome], None]

NEVER: Final = -1
_FEW: Final = 64  # dead entries below this are not worth a rebuild


class Timer:
    """Something to do at a time (monotonic ms)."""

    __slots__ = ("action", "at", "queued_at")

    def __init__(self, at: int, action: Action) -> None:
        self.at = at
        self.queued_at = at  # never later than `at`
        self.action = action


class Timers:
    """The timers of a shard. None of them runs by itself: the shell asks for what is due."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._queued = 0  # gives timers of the same time an order
        self._dead = 0  # entries of timers that were cancelled or brought forward

    def start(self, at: int, action: Action) -> Timer:
        timer = Timer(at, action)
        self._queue(timer)
        return timer

    def move(self, timer: Timer, at: int) -> None:
        """Give a timer another time. One that was cancelled, or is over, stays so."""
        if timer.at == NEVER:
            return
        timer.at = at
        if at < timer.queued_at:
            self._queue(timer)
            self._bury()

    def cancel(self, timer: Timer | None) -> None:
        if timer is not None and timer.at != NEVER:
            timer.at = NEVER
            self._bury()

    def deadline(self) -> int | None:
        """When to ask for what is due; at times too early, when a deadline was put off meanwhile."""
        while self._heap:
            at, _, timer = self._heap[0]
            if timer.at != NEVER and timer.queued_at == at:
                return at
            heappop(self._heap)
            self._dead -= 1
        return None

    def due(self, now: int) -> Timer | None:
        """Take out a timer whose time has come, if there is one."""
        while (at := self.deadline()) is not None and at <= now:
            timer = heappop(self._heap)[2]
            if timer.at <= now:
                timer.at = NEVER
                return timer
            self._queue(timer)
        return None

    def _queue(self, timer: Timer) -> None:
        self._queued += 1
        timer.queued_at = timer.at
        heappush(self._heap, (timer.at, self._queued, timer))

    def _bury(self) -> None:
        """Note a dead entry, and rebuild the heap when most are."""
        self._dead += 1
        if self._dead > _FEW and self._dead * 2 > len(self._heap):
            self._heap = [
                entry for entry in self._heap if entry[2].at != NEVER and entry[2].queued_at == entry[0]
            ]
            heapify(self._heap)
            self._dead = 0
