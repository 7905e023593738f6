"""Running a handler by hand: up to its first wait at once, and on from there whenever that is over.

A task would do the same, and costs three turns of the loop and several objects where most requests that wait
do so once, for a sync or for new records. What a task also is, the current task, handlers do without
(`waiting`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any

Steps = Coroutine[Any, Any, Any]


class Suspended:
    """A handler that waits; `done(result, error)` is called once it has come to its end."""

    __slots__ = ("_done", "_is_cancelled", "_steps", "_waits_for")

    def __init__(
        self, steps: Steps, waits_for: Any, done: Callable[[Any, BaseException | None], None]
    ) -> None:
        self._steps = steps
        self._done = done
        self._is_cancelled = False
        self._wait_for(waits_for)

    def cancel(self) -> None:
        """As a task's: what is waited for is given up, and the handler told so with a CancelledError."""
        if self._waits_for is None or not self._waits_for.cancel():
            self._is_cancelled = True  # it is about to go on

    def _wait_for(self, waits_for: Any) -> None:
        self._waits_for = waits_for
        if waits_for is None:  # a bare yield gives others a turn
            asyncio.get_running_loop().call_soon(self._go_on, None)
        else:
            waits_for._asyncio_future_blocking = False  # what every awaiting side of a future has to do
            waits_for.add_done_callback(self._go_on)

    def _go_on(self, _: Any) -> None:
        self._waits_for = None
        try:
            if self._is_cancelled:
                self._is_cancelled = False
                waits_for = self._steps.throw(asyncio.CancelledError())
            else:
                waits_for = self._steps.send(None)  # the future itself raises what it failed with
        except StopIteration as end:
            self._done(end.value, None)
        except BaseException as error:
            self._done(None, error)
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
        else:
            self._wait_for(waits_for)


@coroutine
def carry_on(steps: Steps, waits_for: Any) -> Generator[Any, Any, Any]:
    """Goes on, in the caller's task, with a coroutine that was started outside and waits for `waits_for`."""
    try:
        while True:
            try:
                value = yield waits_for
            except BaseException as error:  # a failed future or a cancellation belongs to the handler
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(value)
    except StopIteration as done:
        return done.value
    finally:
        steps.close()
