"""Members of a share group that accept, release and vanish while the broker is killed under them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from tests.interop.batches import batch
from tests.interop.nodes import Node
from tests.interop.requests import produce
from tests.interop.sharing import ACCEPT, RECORD_LIMIT, RELEASE, Member, configure_group, find_coordinator
from tests.interop.topics import Names, create_topic
from tests.interop.wire import Closed, Wire

RECORDS = 300
MEMBERS = 3
PATIENCE_S = 45.0


class History:
    """What was delivered to whom, and what was accepted for good."""

    def __init__(self) -> None:
        self.accepted: set[int] = set()  # the broker has said so
        self.unsure: set[int] = set()  # it was asked to, and did not get to answer
        self.delivered: dict[int, int] = {}  # offset -> deliveries

    def deliver(self, offsets: list[int]) -> None:
        again = self.accepted.intersection(offsets)
        assert not again, f"accepted, and delivered again: {sorted(again)}"
        for offset in offsets:
            self.delivered[offset] = self.delivered.get(offset, 0) + 1

    @property
    def is_complete(self) -> bool:
        return len(self.accepted | self.unsure) == RECORDS


class Worker:
    """A member that begins anew whenever its connection breaks."""

    def __init__(self, connect: Callable[[], Member], history: History, chance: random.Random) -> None:
        self._connect = connect
        self._history = history
        self._chance = chance
        self._member: Member | None = None

    def step(self) -> None:
        try:
            if self._member is None:
                self._member = self._connect()
            self._work(self._member)
        except (Closed, OSError):
            self.vanish()

    def vanish(self) -> None:
        if self._member is not None:
            self._member.wire.socket.close()
            self._member = None

    def _work(self, member: Member) -> None:
        if not member.assigned:
            answer = member.beat()
            if answer.error_code:
                member.epoch = 0
            return
        response = member.ask_fetch(
            {(member.topics[0], 0): []},
            max_records=20,
            max_wait=50,
            share_acquire_mode=RECORD_LIMIT,
        )
        if response.error_code:
            self.vanish()
            return
        for topic in response.responses:
            for data in topic.partitions:
                for each in data.acquired_records:
                    self._have(member, each.first_offset, each.last_offset)

    def _have(self, member: Member, first: int, last: int) -> None:
        offsets = list(range(first, last + 1))
        self._history.deliver(offsets)
        chance = self._chance.random()
        if chance < 0.1:
            return  # forgets them; their lock runs out
        if chance < 0.2:
            member.acknowledge((first, last, [RELEASE]))
            return
        self._history.unsure.update(offsets)
        if member.acknowledge((first, last, [ACCEPT])) == 0:
            self._history.accepted.update(offsets)
        self._history.unsure.difference_update(offsets)


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_that_was_accepted_comes_back_and_nothing_is_lost(
    quick_node: Node, unique: Names, seed: int
) -> None:
    topic, group = unique("shared"), unique("group")
    create_topic(quick_node.bootstrap, topic)
    find_coordinator(quick_node.bootstrap, group)
    configure_group(
        quick_node.bootstrap,
        group,
        share_auto_offset_reset="earliest",
        share_record_lock_duration_ms=1_000,
        share_delivery_count_limit=10,
    )
    with Wire(quick_node.bootstrap) as wire:
        for _ in range(RECORDS // 10):
            assert produce(wire, topic, batch(*[b"value"] * 10)).error_code == 0
    chance, history = random.Random(seed), History()
    workers = [
        Worker(lambda: Member(quick_node.bootstrap, group, topic), history, chance) for _ in range(MEMBERS)
    ]
    kills = {chance.randrange(5, 15), chance.randrange(20, 40)}
    deadline = time.monotonic() + PATIENCE_S
    turn = 0
    while not history.is_complete:
        assert time.monotonic() < deadline, f"{RECORDS - len(history.accepted)} records are missing"
        turn += 1
        if turn in kills:
            quick_node.kill()
            quick_node.start()
        worker = chance.choice(workers)
        if chance.random() < 0.05:
            worker.vanish()
        worker.step()
    assert set(history.delivered) == set(range(RECORDS))
    for _ in range(3 * MEMBERS):
        chance.choice(workers).step()  # what is left to deliver would be something that was accepted
    for worker in workers:
        worker.vanish()
