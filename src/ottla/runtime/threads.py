"""Work in a thread that must not be left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def to_the_end(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`, except that who is cancelled goes on only when the thread is done.

    A thread cannot be stopped. One that repairs logs has to be over before their directory is unlocked.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # nobody is left to hear of it
        raise
