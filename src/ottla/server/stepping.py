"""Running a handler by hand: up to its first wait at once, and on from there in a task."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any


@coroutine
def carry_on(steps: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """Goes on with a coroutine that was started outside a task and now waits for `waits_for`."""
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
