"""Waiting with a bound, for handlers.

The connection runs a handler by hand until its first wait, outside any task, and `asyncio.timeout` needs
a task. These need none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


async def settled(futures: Iterable[asyncio.Future[Any]], timeout_ms: int) -> None:
    """Wait until every future is done; those that are not when the time is up get a `TimeoutError`.

    Raises nothing for a failed future: the caller asks each one how it went.
    """
    waiting = [future for future in futures if not future.done()]
    if not waiting:
        return
    timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / 1000, _expire, waiting)
    try:
        for future in waiting:
            if not future.done():
                await _done(future)
    finally:
        timer.cancel()
        for future in waiting:
            future.cancel()  # only reached undone when we are cancelled ourselves


async def _done(future: asyncio.Future[Any]) -> None:
    try:
        await future
    except asyncio.CancelledError:
        if not future.cancelled():
            raise
    except Exception:
        pass  # the caller reads it from the future


def _expire(waiting: list[asyncio.Future[Any]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_exception(TimeoutError())
