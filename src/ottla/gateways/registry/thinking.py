"""Threads in which schemas are parsed and compared, which takes seconds for the largest.

They are the registry's own: the threads that the broker shares write to disks, which must not wait for
somebody's schema. And they are two, not more: what computes takes turns with the loop, and with each thread
that does, the loop waits longer for its own. Large schemas have one, so that the others do not wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from ottla.registry.errors import Busy
from ottla.server.doors import Doors

LARGE: Final = 64 << 10
# How many may wait for a thread, each with a schema in memory. Who comes then is asked to come again.
SMALL_WAITING_MAX: Final = 1_000
LARGE_WAITING_MAX: Final = 32

T = TypeVar("T")


class Lane:
    """A thread, and those who wait for it."""

    def __init__(self, name: str, waiting_max: int) -> None:
        self.thread = ThreadPoolExecutor(1, name)
        self._waiting_max = waiting_max
        self._waiting = 0

    async def do(self, work: Callable[[], T]) -> T:
        if self._waiting >= self._waiting_max:
            raise Busy("Too many schemas wait to be read: try again in a moment")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.thread, work)
        finally:
            self._waiting -= 1


class Thinking:
    def __init__(self, doors: Doors) -> None:
        self._small = Lane("ottla-registry", SMALL_WAITING_MAX)
        self._large = Lane("ottla-registry-large", LARGE_WAITING_MAX)
        doors.at_close(self.close)

    async def do(self, work: Callable[[], T], size: int) -> T:
        """Do it in a thread. `size`: the characters that it is about. Raises Busy."""
        return await (self._large if size >= LARGE else self._small).do(work)

    async def close(self) -> None:
        for lane in (self._small, self._large):
            lane.thread.shutdown(wait=False, cancel_futures=True)
