from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.protocol.errors import CoordinatorLoadInProgress, NotController, StaleBrokerEpoch
from ottla.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from ottla.runtime.producer_ids import ProducerIds

BLOCK = 1000


class Blocks:
    """A controller that hands out blocks when it is let to, or fails as it is told."""

    def __init__(self) -> None:
        self.asked: list[AllocateProducerIdsRequest] = []
        self.next = 0
        self.open = asyncio.Event()
        self.open.set()
        self.error: Exception | None = None
        self.error_code = 0

    async def submit(self, request: Any, version: int) -> AllocateProducerIdsResponse:
        self.asked.append(request)
        await self.open.wait()
        if self.error is not None:
            raise self.error
        start = self.next
        self.next += BLOCK
        return AllocateProducerIdsResponse(
            error_code=self.error_code, producer_id_start=start, producer_id_len=BLOCK
        )


def ids_of(blocks: Blocks) -> ProducerIds:
    return ProducerIds(blocks, 7, lambda: 42)


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def take(ids: ProducerIds, count: int) -> list[int]:
    return [await ids.take() for _ in range(count)]


def test_ids_come_from_blocks_one_after_the_other() -> None:
    async def scene() -> None:
        blocks = Blocks()
        ids = ids_of(blocks)
        assert await take(ids, 2500) == list(range(2500))
        assert (blocks.asked[0].broker_id, blocks.asked[0].broker_epoch) == (7, 42)

    asyncio.run(scene())


def test_the_next_block_is_asked_for_before_this_one_is_used_up() -> None:
    async def scene() -> None:
        blocks = Blocks()
        ids = ids_of(blocks)
        await take(ids, 900)
        await turns()
        assert len(blocks.asked) == 1
        blocks.open.clear()
        assert await take(ids, 100) == list(range(900, 1000)), "nobody waits while there are ids left"
        await turns()
        assert len(blocks.asked) == 2, "one question at a time"
        blocks.open.set()
        assert await ids.take() == 1000

    asyncio.run(scene())


def test_all_who_wait_get_an_id_of_their_own() -> None:
    async def scene() -> None:
        blocks = Blocks()
        blocks.open.clear()
        ids = ids_of(blocks)
        waiting = [asyncio.create_task(ids.take()) for _ in range(1500)]
        await turns()
        blocks.open.set()
        taken = await asyncio.gather(*waiting)
        assert sorted(taken) == list(range(1500))
        assert len(blocks.asked) == 2

    asyncio.run(scene())


def test_one_who_gives_up_does_not_take_the_block_from_the_others() -> None:
    async def scene() -> None:
        blocks = Blocks()
        blocks.open.clear()
        ids = ids_of(blocks)
        gives_up, stays = asyncio.create_task(ids.take()), asyncio.create_task(ids.take())
        await turns()
        gives_up.cancel()
        await turns()
        blocks.open.set()
        assert await stays == 0
        assert gives_up.cancelled()

    asyncio.run(scene())


@pytest.mark.parametrize("error", [NotController("nobody leads"), StaleBrokerEpoch()])
def test_a_client_is_to_try_again_when_the_controller_gives_none(error: Exception) -> None:
    async def scene() -> None:
        blocks = Blocks()
        blocks.error = error
        ids = ids_of(blocks)
        with pytest.raises(CoordinatorLoadInProgress):
            await ids.take()
        blocks.error = None
        assert await ids.take() == 0

    asyncio.run(scene())


def test_an_error_in_the_answer_counts_as_one() -> None:
    async def scene() -> None:
        blocks = Blocks()
        blocks.error_code = StaleBrokerEpoch.code
        with pytest.raises(CoordinatorLoadInProgress):
            await ids_of(blocks).take()

    asyncio.run(scene())


def test_a_block_that_could_not_be_prefetched_is_asked_for_again() -> None:
    async def scene() -> None:
        blocks = Blocks()
        ids = ids_of(blocks)
        await take(ids, 900)
        blocks.error = NotController()
        assert await take(ids, 50) == list(range(900, 950))
        await turns()
        blocks.error = None
        assert await take(ids, 100) == list(range(950, 1050))

    asyncio.run(scene())


def test_it_can_be_used_outside_of_a_task() -> None:
    """A handler's first step runs in none."""

    async def scene() -> None:
        ids = ids_of(Blocks())
        assert await ids.take() == 0
        stepped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def step() -> None:
            try:
                ids.take().send(None)
            except StopIteration as done:
                stepped.set_result(done.value)

        asyncio.get_running_loop().call_soon(step)
        assert await stepped == 1

    asyncio.run(scene())


def test_closing_stops_the_question() -> None:
    async def scene() -> None:
        blocks = Blocks()
        blocks.open.clear()
        ids = ids_of(blocks)
        waiting = asyncio.create_task(ids.take())
        await turns()
        ids.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        ids_of(blocks).close()

    asyncio.run(scene())
