"""A handler that waits goes on as it would in a task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from ottla.server.stepping import Suspended

Ends = list[tuple[Any, BaseException | None]]


def suspended(steps: Coroutine[Any, Any, Any]) -> tuple[Suspended, Ends]:
    """A handler after its first step, and where its end is noted."""
    ends: Ends = []
    return Suspended(steps, steps.send(None), lambda result, error: ends.append((result, error))), ends


def run(test: Callable[[asyncio.AbstractEventLoop], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(asyncio.get_running_loop())

    asyncio.run(main())


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_it_goes_on_through_every_wait_to_its_result() -> None:
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        first, second = loop.create_future(), loop.create_future()

        async def handler() -> int:
            found: int = await first
            await asyncio.sleep(0)
            more: int = await second
            return found + more

        _, ends = suspended(handler())
        first.set_result(1)
        await turns()
        assert ends == []
        second.set_result(2)
        await turns()
        assert ends == [(3, None)]

    run(test)


def test_what_a_future_fails_with_is_raised_in_the_handler() -> None:
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        caught, passed = loop.create_future(), loop.create_future()

        async def handler() -> None:
            with pytest.raises(KeyError):
                await caught
            await passed

        _, ends = suspended(handler())
        caught.set_exception(KeyError("first"))
        await turns()
        passed.set_exception(error := ValueError("second"))
        await turns()
        assert ends == [(None, error)]

    run(test)


def test_a_cancelled_handler_gives_up_what_it_waits_for_and_cleans_up() -> None:
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        waited_for = loop.create_future()
        cleaned = []

        async def handler() -> None:
            try:
                await waited_for
            finally:
                await asyncio.sleep(0)
                cleaned.append(True)

        waiting, ends = suspended(handler())
        waiting.cancel()
        assert waited_for.cancelled()
        await turns()
        assert cleaned == [True]
        [(result, error)] = ends
        assert result is None and isinstance(error, asyncio.CancelledError)

    run(test)


def test_a_handler_that_is_about_to_go_on_is_cancelled_too() -> None:
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        waited_for = loop.create_future()

        async def handler() -> str:
            await waited_for
            return "went on"

        waiting, ends = suspended(handler())
        waited_for.set_result(None)
        waiting.cancel()
        await turns()
        [(_, error)] = ends
        assert isinstance(error, asyncio.CancelledError)

    run(test)
