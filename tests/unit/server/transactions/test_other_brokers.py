"""A transaction whose coordinator and whose partitions are on different brokers.

Two nodes, each with metadata of its own, that are told that the other one leads what it does not have: all
that a cluster does here, but for the way over a socket and the elections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.client.errors import Unreachable
from ottla.core.types import TRANSACTION_STATE
from ottla.metadata.partition import NO_LEADER
from ottla.protocol import errors
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from ottla.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from ottla.server.handlers.add_partitions_to_txn import add_partitions_to_txn
from ottla.server.handlers.write_txn_markers import write_txn_markers
from tests.unit.server.transactions.serving import LONG_S, Producer, ServingNode, until

HANDLERS: dict[type, tuple[Any, int]] = {
    AddPartitionsToTxnRequest: (add_partitions_to_txn, 5),
    WriteTxnMarkersRequest: (write_txn_markers, 2),
}
COORDINATOR, LEADER = 1, 2


class Wire:
    """The way from one broker to the other, which may be cut or held up."""

    def __init__(self, brokers: dict[int, ServingNode]) -> None:
        self._brokers = brokers
        self.sent: list[tuple[int, str, Any]] = []
        self.is_cut = False
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def ask_broker(self, broker_id: int, request: Any, response: type, **how: Any) -> Any:
        self.sent.append((broker_id, how["purpose"], request))
        await self.is_open.wait()
        if self.is_cut:
            raise Unreachable("there is no way")
        handler, version = HANDLERS[type(request)]
        answer = await self._brokers[broker_id].call(handler, request, version)
        assert isinstance(answer, response)
        return answer

    async def close(self) -> None:
        pass


class Pair:
    """`coordinator` leads `__transaction_state`, `leader` leads the topic t."""

    def __init__(self, path: Path) -> None:
        self.coordinator = ServingNode(path / "1", node_id="1")
        self.leader = ServingNode(path / "2", node_id="2")
        self.wire = Wire({COORDINATOR: self.coordinator, LEADER: self.leader})
        for broker in (self.coordinator, self.leader):
            broker.node.channels = self.wire  # type: ignore[assignment]

    async def begin(self) -> Producer:
        """A producer whose batches go to the leader, and whose other requests to the coordinator."""
        await self.coordinator.node.transactions.prepare()
        await self.leader.node.transactions.prepare()
        for broker in (self.coordinator, self.leader):
            await broker.create("t", 2)
        self.led_by(self.leader, TRANSACTION_STATE, COORDINATOR)
        self.led_by(self.coordinator, "t", LEADER)
        return await Producer(self.coordinator).init()

    def led_by(self, told: ServingNode, name: str, leader: int) -> None:
        topic = told.node.image.topics[name]
        for index, state in topic.partitions.items():
            topic.partitions[index] = state._replace(leader=leader)

    async def send(self, producer: Producer, index: int = 0, *values: bytes) -> int:
        """The code that the leader answers."""
        producer.serving = self.leader
        try:
            answer = await producer.send("t", *(values or (b"a",)), index=index)
        finally:
            producer.serving = self.coordinator
        return answer.error_code


def run(path: Path, story: Callable[[Pair], Awaitable[None]]) -> None:
    async def tell() -> None:
        pair = Pair(path)
        async with pair.coordinator, pair.leader:
            await asyncio.wait_for(story(pair), LONG_S)

    asyncio.run(tell())


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_begins_and_ends_on_another_broker(tmp_path: Path, commit: bool) -> None:
    async def story(pair: Pair) -> None:
        producer = await pair.begin()
        assert await pair.send(producer) == 0
        assert await pair.send(producer) == 0  # which is open there, so that nobody is asked
        assert await pair.send(producer, 1) == 0
        await producer.finish(commit=commit)
        assert await pair.leader.values("t") == ([b"a", b"a"] if commit else [])
        assert pair.leader.partition("t", 1).log.last_stable_offset == 2
        purposes = [(broker, purpose) for broker, purpose, _ in pair.wire.sent]
        assert purposes == [
            (COORDINATOR, "verification"),
            (COORDINATOR, "verification"),
            (LEADER, "markers"),
        ]

    run(tmp_path, story)


def test_an_older_producer_is_verified_by_the_coordinator(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        producer = await pair.begin()
        producer.version = 11
        assert await pair.send(producer) == errors.TransactionAbortable.code
        (question,) = pair.wire.sent[0][2].transactions
        assert question.verify_only
        assert pair.leader.partition("t").log.end_offset == 0

    run(tmp_path, story)


def test_questions_of_a_turn_share_a_request(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        await pair.begin()
        producers = [await Producer(pair.coordinator, f"tx-{number}").init() for number in range(3)]
        sent = []
        for producer in (*producers, producers[0]):
            producer.serving = pair.leader
            sent.append(producer.start("t", b"a", index=len(sent) // 3))
        for each in sent:
            (answer,) = (await each).responses[0].partition_responses
            assert answer.error_code == 0
        asked = [[each.transactional_id for each in request.transactions] for _, _, request in pair.wire.sent]
        assert asked == [["tx-0", "tx-1", "tx-2"], ["tx-0"]]

    run(tmp_path, story)


def test_a_coordinator_that_cannot_be_reached_is_asked_again_by_the_client(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        producer = await pair.begin()
        pair.wire.is_cut = True
        assert await pair.send(producer) == errors.NotEnoughReplicas.code
        pair.wire.is_cut = False
        producer.sequences.clear()
        assert await pair.send(producer) == 0

    run(tmp_path, story)


def test_a_coordinator_that_refuses_this_broker_is_not_the_fault_of_the_client(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        producer = await pair.begin()

        async def refuse(*asked: Any, **how: Any) -> AddPartitionsToTxnResponse:
            return AddPartitionsToTxnResponse(error_code=errors.ClusterAuthorizationFailed.code)

        pair.wire.ask_broker = refuse  # type: ignore[method-assign]
        assert await pair.send(producer) == errors.InvalidTxnState.code

    run(tmp_path, story)


def test_whoever_waits_for_a_coordinator_that_has_moved_is_told_to_try_again(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        producer = await pair.begin()
        pair.wire.is_open.clear()
        sending = asyncio.ensure_future(pair.send(producer))
        await until(lambda: bool(pair.wire.sent))
        pair.leader.node.coordinators.elsewhere.leaders_changed()  # which is not about this one
        await asyncio.sleep(0)
        assert not sending.done()
        pair.led_by(pair.leader, TRANSACTION_STATE, NO_LEADER)
        pair.leader.node.coordinators.elsewhere.leaders_changed()
        assert await sending == errors.NotEnoughReplicas.code

    run(tmp_path, story)


def test_markers_are_sent_until_their_leader_can_be_reached(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        producer = await pair.begin()
        assert await pair.send(producer) == 0
        pair.wire.is_cut = True
        assert (await producer.end(commit=True)).error_code == 0
        await until(lambda: len(pair.wire.sent) >= 3)
        assert await pair.leader.values("t") == []
        pair.wire.is_cut = False
        await pair.coordinator.reaches("tx", "CompleteCommit")
        assert await pair.leader.values("t") == [b"a"]

    run(tmp_path, story)


def test_markers_follow_the_leader(tmp_path: Path) -> None:
    async def story(pair: Pair) -> None:
        producer = await pair.begin()
        assert await pair.send(producer) == 0
        pair.wire.is_open.clear()
        assert (await producer.end(commit=False)).error_code == 0
        await until(lambda: len(pair.wire.sent) == 2)
        pair.led_by(pair.coordinator, "t", COORDINATOR)  # the paused leader was replaced
        pair.coordinator.node.coordinators.elsewhere.leaders_changed()
        await pair.coordinator.reaches("tx", "CompleteAbort")
        assert pair.coordinator.partition("t").log.end_offset == 1
        assert len(pair.wire.sent) == 2

    run(tmp_path, story)
