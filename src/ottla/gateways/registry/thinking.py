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

from ottla.server.doors import Doors

LARGE: Final = 64 << 10

T = TypeVar("T")


class Thinking:
    def __init__(self, doors: Doors) -> None:
        self._quick = ThreadPoolExecutor(1, "ottla-registry")
        self._slow = ThreadPoolExecutor(1, "ottla-registry-large")
        doors.at_close(self.close)

    async def do(self, work: Callable[[], T], size: int) -> T:
        """Do it in a thread. `size`: the characters that it is about."""
        threads = self._slow if size >= LARGE else self._quick
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    async def close(self) -> None:
        for threads in (self._quick, self._slow):
            threads.shutdown(wait=False, cancel_futures=True)
