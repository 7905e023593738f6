"""How late the event loop is.

A request that needs no waiting is answered in the turn of the loop in which it comes in. What it waits for is
the loop getting to it, so this is measured for all of them at once, by a timer that looks how late it was
woken, and costs the requests themselves nothing. It runs while somebody scrapes `/metrics`.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from time import monotonic
from typing import Final

from ottla.server.doors import Doors

PERIOD_SECONDS: Final = 0.1
# Scrapers come every minute or more often.
UNWANTED_AFTER_SECONDS: Final = 300.0
DELAY_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class LoopDelay:
    def __init__(self, doors: Doors) -> None:
        self.counts = [0] * (len(DELAY_BUCKETS) + 1)
        self.seconds = 0.0
        self._loop = asyncio.get_running_loop()
        self._wanted_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        doors.at_close(self._close)

    def wanted(self) -> None:
        """Somebody reads the figures: keep measuring for a while."""
        self._wanted_until = monotonic() + UNWANTED_AFTER_SECONDS
        if self._timer is None:
            self._wait()

    def _wait(self) -> None:
        # Not the loop's own clock, which some loops look at only once in a turn.
        self._timer = self._loop.call_later(PERIOD_SECONDS, self._woken, monotonic() + PERIOD_SECONDS)

    def _woken(self, due: float) -> None:
        late = max(0.0, monotonic() - due)
        self.counts[bisect_left(DELAY_BUCKETS, late)] += 1
        self.seconds += late
        self._timer = None
        if due < self._wanted_until:
            self._wait()

    async def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
