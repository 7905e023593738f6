"""Coordinators whose log has followers: an answer rests on what they have, and on our leading them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.protocol.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator
from tests.unit.runtime.counting import LONG_S, CountingNode, add, get, turns, wait

OURSELVES, FOLLOWER, OTHER = 1, 2, 3


class Replicated(CountingNode):
    """The counters of "g" have two followers, of whom a test says how far they are."""

    @property
    def led(self) -> Any:
        return self.partition("g")

    async def replicate(self, min_insync_replicas: int = 2) -> None:
        await self.counters.call("g", add(("a", 1)))
        self.in_sync(OURSELVES, FOLLOWER, OTHER, min_insync_replicas=min_insync_replicas)
        self.lead()
        await self.loaded("g")

    def in_sync(self, *members: int, min_insync_replicas: int = 2) -> None:
        partition = self.led
        partition.isr.reset((OURSELVES, FOLLOWER, OTHER), members, min_insync_replicas)
        if partition.is_leader:
            partition.become_leader(partition.leader_epoch, partition.partition_epoch + 1)

    def lead(self) -> None:
        partition = self.led
        partition.become_leader(partition.leader_epoch + 1, partition.partition_epoch + 1)
        self.counters.follow(partition)

    def lose(self) -> None:
        partition = self.led
        partition.stop_leading(FOLLOWER, partition.leader_epoch + 1, partition.partition_epoch + 1)
        self.counters.follow(partition)

    def caught_up(self, *followers: int) -> None:
        partition = self.led
        end_offset = partition.log.end_offset
        for follower in followers or (FOLLOWER, OTHER):
            partition.isr.fetched(follower, end_offset, 0, -1, end_offset, 0)
        partition._advance(0)


def run(node: Replicated, story: Callable[[Replicated], Awaitable[None]]) -> None:
    async def tell() -> None:
        async with node:
            await asyncio.wait_for(story(node), LONG_S)

    asyncio.run(tell())


def test_an_answer_waits_for_every_replica_that_is_in_sync(tmp_path: Path) -> None:
    async def story(node: Replicated) -> None:
        await node.replicate()
        asked = node.call("g", add(("a", 1), effects=["done"]))
        await turns()
        node.caught_up(FOLLOWER)
        await turns()
        assert not asked.done() and not node.effects
        node.caught_up(OTHER)
        assert await asked == (2,)
        assert node.effects == ["done"]

    run(Replicated(tmp_path), story)


def test_what_was_only_read_waits_for_what_it_saw(tmp_path: Path) -> None:
    async def story(node: Replicated) -> None:
        await node.replicate()
        node.call("g", add(("a", 1)))
        asked = node.call("g", get("a"))
        await turns()
        assert not asked.done()
        node.caught_up()
        assert await asked == 2
        assert await node.counters.call("g", get("a")) == 2  # at once: there is nothing to wait for

    run(Replicated(tmp_path), story)


def test_a_new_leader_answers_when_what_it_has_loaded_is_committed(tmp_path: Path) -> None:
    async def story(node: Replicated) -> None:
        await node.replicate()
        node.caught_up()
        lost = node.call("g", add(("a", 1)))
        await turns()
        node.lose()
        node.lead()  # with a record of which nobody knows who else has it
        with pytest.raises(NotCoordinator):
            await lost
        assert (await node.loaded("g")).totals == {"a": 2}
        asked = node.call("g", get("a"))
        await turns()
        assert not asked.done()
        node.caught_up()
        assert await asked == 2

    run(Replicated(tmp_path), story)


def test_whoever_waits_is_sent_to_the_new_leader(tmp_path: Path) -> None:
    async def story(node: Replicated) -> None:
        await node.replicate()
        node.caught_up()
        waiting = [node.call("g", wait), node.call("g", add(("a", 1), effects=["lost"]))]
        await turns()
        machine = await node.loaded("g")
        machine.due = 0
        node.lose()
        for each in waiting:
            with pytest.raises(NotCoordinator):
                await each
        with pytest.raises(NotCoordinator):
            await node.counters.call("g", get("a"))
        await asyncio.sleep(0.01)
        assert not node.effects
        assert machine.expiries == 0

    run(Replicated(tmp_path), story)


def test_too_few_in_sync_and_nobody_waits_for_more(tmp_path: Path) -> None:
    async def story(node: Replicated) -> None:
        await node.replicate()
        node.caught_up()
        asked = node.call("g", add(("a", 1), effects=["done"]))
        joining = node.call("g", wait)
        await turns()
        node.in_sync(OURSELVES)
        with pytest.raises(CoordinatorNotAvailable):
            await asked
        with pytest.raises(CoordinatorNotAvailable):
            await node.counters.call("g", get("a"))
        await turns()
        assert len(node.made) == 2  # before and after it was replicated: it did not begin again from its log
        assert not node.effects and not joining.done()
        node.in_sync(OURSELVES, FOLLOWER)
        node.caught_up(FOLLOWER)
        while not node.effects:  # noqa: ASYNC110 (our own disk may not have it yet)
            await asyncio.sleep(0.001)
        assert node.effects == ["done"]  # what was decided counts all the same
        assert await node.counters.call("g", get("a")) == 2
        joining.cancel()

    run(Replicated(tmp_path), story)


def test_a_coordinator_loads_when_enough_are_in_sync_to_write(tmp_path: Path) -> None:
    async def story(node: Replicated) -> None:
        await node.replicate()
        node.lose()
        node.in_sync(OURSELVES)
        node.lead()
        await turns()
        with pytest.raises((CoordinatorLoadInProgress, CoordinatorNotAvailable)):
            await node.counters.call("g", get("a"))
        node.in_sync(OURSELVES, OTHER)
        node.caught_up(OTHER)
        await node.loaded("g")
        assert await node.counters.call("g", get("a")) == 1

    run(Replicated(tmp_path), story)
