"""A coordinator that dies at any moment: every transaction is finished or aborted by the next one.

Here are a machine with its log, partitions that keep track of producers as real ones do, and clients that
follow the protocol. The coordinator is killed between any two steps, with any number of the last, not yet
answered records lost, and with markers in some of the partitions only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from ottla.config.broker import BrokerSettings
from ottla.core.outcome import Applied, LogRecord, Now, Outcome
from ottla.core.types import TopicPartition
from ottla.protocol.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
)
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.storage.producer_state import Producers
from ottla.transactions import records
from ottla.transactions.effects import WriteMarkers
from ottla.transactions.machine import PRODUCER_ID_NEEDED, TransactionMachine
from ottla.transactions.states import State
from ottla.transactions.transaction import LAST_CLIENT_EPOCH, VERSION_1, VERSION_2, Transaction

PARTITIONS: Final = [TopicPartition("t", number) for number in range(3)]
TIMEOUT_MS: Final = 60_000
IDLE: Final = {State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}


class Killed(Exception):
    """The coordinator died before it could answer."""


class Partition:
    """What its leader does with batches and markers."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.end_offset = 0
        self.open: dict[int, list[str]] = {}
        self.visible: set[str] = set()
        self.aborted: set[str] = set()

    def write(self, producer_id: int, epoch: int, sequence: int, value: str) -> None:
        self.producers.check(producer_id, epoch, sequence, sequence, True)
        offset = self.end_offset
        self.producers.apply(producer_id, epoch, sequence, sequence, offset, offset, 0, True)
        self.open.setdefault(producer_id, []).append(value)
        self.end_offset += 1

    def mark(self, markers: WriteMarkers) -> None:
        producer_id, epoch = markers.producer_id, markers.producer_epoch
        self.producers.check_marker(
            producer_id, epoch, markers.coordinator_epoch, markers.transaction_version
        )
        done = self.producers.apply_marker(
            producer_id, epoch, markers.coordinator_epoch, self.end_offset, 0, not markers.committed
        )
        self.end_offset += 1
        if done is not None:
            self.producers.complete(done)
        (self.visible if markers.committed else self.aborted).update(self.open.pop(producer_id, ()))

    @property
    def last_stable_offset(self) -> int:
        self.producers.replicated(self.end_offset)
        first = self.producers.first_unstable_offset()
        return self.end_offset if first is None else first


class Coordinator:
    """The machine and its log. `killer` may say at any step that it dies there."""

    def __init__(self, killer: Callable[[str], bool], transaction_version: int) -> None:
        self.now = Now(1_700_000_000_000, 0)
        self.log: list[LogRecord] = []
        self.answered = 0  # records up to here rest under an answer and cannot be lost
        self.epoch = 0
        self.killer = killer
        self.transaction_version = transaction_version
        self.next_id = 100
        self.partitions = {name: Partition() for name in PARTITIONS}
        self.markers: list[tuple[WriteMarkers, set[TopicPartition]]] = []
        self.start()

    def start(self, lost: int = 0) -> None:
        """Begin from the log, without its last `lost` records."""
        self.log = self.log[: len(self.log) - lost]
        self.epoch += 1
        self.markers = []
        self.machine = TransactionMachine(self.epoch, BrokerSettings, lambda: self.transaction_version)
        for offset, record in enumerate(self.log):
            self.machine.apply(record, Applied(offset, 0))
        self._take(self.machine.loaded(self.now), "loaded")

    def _take(self, outcome: Outcome, step: str) -> Any:
        for record in outcome.records:
            self.machine.apply(record, Applied(len(self.log), 0))
            self.log.append(record)
        if outcome.records and self.killer(f"{step}, before it is committed"):
            raise Killed
        self.answered = len(self.log)
        self.markers += [(effect, set(effect.partitions)) for effect in outcome.effects]
        if self.killer(f"{step}, before the answer"):
            raise Killed
        return outcome.reply

    def run(self, step: str, command: Callable[[int | None], Outcome]) -> Any:
        reply = self._take(command(None), step)
        if reply is PRODUCER_ID_NEEDED:
            self.next_id += 1
            reply = self._take(command(self.next_id), step)
        return reply

    def write_markers(self, choose: Callable[[int], int]) -> None:
        """One marker into one partition; the machine hears of it when it was the last."""
        if not self.markers:
            return
        number = choose(len(self.markers))
        markers, left = self.markers[number]
        if left:
            name = sorted(left)[choose(len(left))]
            self.partitions[name].mark(markers)
            left.discard(name)
            if self.killer("a marker is written"):
                raise Killed
        if not left:
            del self.markers[number]
            self._take(self.machine.markers_written(markers, self.now), "complete")

    def pass_time(self, ms: int) -> None:
        self.now = Now(self.now.wall_ms + ms, self.now.monotonic_ms + ms)
        while (at := self.machine.deadline()) is not None and at <= self.now.monotonic_ms:
            self._take(self.machine.expire(self.now), "expire")


@dataclass
class Client:
    """A producer that follows the protocol; when it gets no answer it asks again."""

    name: str
    version: int
    coordinator: Coordinator
    producer_id: int = -1
    epoch: int = -1
    transactions: int = 0
    written: dict[TopicPartition, int] = field(default_factory=dict)
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    values: dict[str, set[TopicPartition]] = field(default_factory=dict)
    outcomes: dict[str, bool | None] = field(default_factory=dict)  # None: it was not told
    wants: bool | None = None  # to commit or to abort, once it has asked to

    @property
    def value(self) -> str:
        return f"{self.name}/{self.transactions}"

    def step(self, chance: random.Random) -> None:
        try:
            if self.producer_id < 0:
                self._init()
            elif self.wants is not None:
                self._end(self.wants)
            elif self.written and chance.random() < 0.4:
                self.wants = chance.random() < 0.6
                self._end(self.wants)
            else:
                self._write(chance.choice(PARTITIONS))
        except ConcurrentTransactions:
            pass  # and again
        except (ProducerFenced, InvalidProducerEpoch, InvalidProducerIdMapping, InvalidTxnState):
            self._over(None)
            self.producer_id = -1

    def _init(self) -> None:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=TIMEOUT_MS)
        machine, now = self.coordinator.machine, self.coordinator.now
        reply = self.coordinator.run(
            "InitProducerId", lambda fresh_id: machine.init_producer_id(request, now, fresh_id)
        )
        if not reply.error_code:
            self._is_now(reply.producer_id, reply.producer_epoch)

    def _is_now(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    def _write(self, name: TopicPartition) -> None:
        machine, now = self.coordinator.machine, self.coordinator.now
        self.coordinator.run(
            "AddPartitions",
            lambda _: machine.add_partitions(
                self.name, self.producer_id, self.epoch, [name], now, self.version
            ),
        )
        sequence = self.sequences.get(name, 0)
        self.coordinator.partitions[name].write(self.producer_id, self.epoch, sequence, self.value)
        self.sequences[name] = sequence + 1
        self.written[name] = sequence
        self.values.setdefault(self.value, set()).add(name)

    def _end(self, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        machine, now = self.coordinator.machine, self.coordinator.now
        api_version = 5 if self.version == VERSION_2 else 4
        reply = self.coordinator.run(
            "EndTxn", lambda fresh_id: machine.end_txn(request, api_version, now, fresh_id)
        )
        self._over(commit)
        if self.version == VERSION_2:
            self._is_now(reply.producer_id, reply.producer_epoch)

    def _over(self, outcome: bool | None) -> None:
        if self.value in self.values:
            self.outcomes[self.value] = outcome
        self.transactions += 1
        self.written = {}
        self.wants = None


def settle(coordinator: Coordinator) -> None:
    """Nobody dies any more, and nobody asks for anything: what is left ends by itself."""
    coordinator.killer = lambda step: False
    for _ in range(2):
        while coordinator.markers:
            coordinator.write_markers(lambda count: 0)
        coordinator.pass_time(TIMEOUT_MS)
    while coordinator.markers:
        coordinator.write_markers(lambda count: 0)


def check(coordinator: Coordinator, clients: list[Client]) -> None:
    for transaction in coordinator.machine.transactions.values():
        assert transaction.state in IDLE, transaction
    for partition in coordinator.partitions.values():
        assert partition.last_stable_offset == partition.end_offset
        assert not partition.visible & partition.aborted
    for client in clients:
        for value, names in client.values.items():
            seen = {name for name in names if value in coordinator.partitions[name].visible}
            assert seen in (set(), names), f"{value} is torn: seen in {seen} of {names}"
            outcome = client.outcomes.get(value)
            if outcome is not None:
                assert bool(seen) == outcome, f"{value} was answered {outcome}"


def recover(coordinator: Coordinator, chance: random.Random) -> None:
    """The next coordinator may die as well, while it is starting."""
    while True:
        lost = chance.randint(0, len(coordinator.log) - coordinator.answered)
        try:
            coordinator.start(lost)
        except Killed:
            continue
        return


def run(seed: int, steps: int = 150) -> tuple[Coordinator, list[Client]]:
    chance = random.Random(seed)
    deadliness = chance.choice([0.02, 0.1, 0.3])
    coordinator = Coordinator(lambda step: False, chance.choice([0, 1, 2]))
    coordinator.killer = lambda step: chance.random() < deadliness
    version = VERSION_2 if chance.random() < 0.6 else VERSION_1
    clients = [Client(name, version, coordinator) for name in ("a", "b")]
    if chance.random() < 0.3:
        _near_the_last_epoch(coordinator, "a")
    for _ in range(steps):
        try:
            act = chance.random()
            if act < 0.6:
                chance.choice(clients).step(chance)
            elif act < 0.95:
                coordinator.write_markers(chance.randrange)
            else:
                coordinator.pass_time(chance.randrange(TIMEOUT_MS))
        except Killed:
            recover(coordinator, chance)
    settle(coordinator)
    return coordinator, clients


def _near_the_last_epoch(coordinator: Coordinator, name: str) -> None:
    """A long life has gone before: the epochs of the producer id are about to run out."""
    transaction = Transaction(name, 7, LAST_CLIENT_EPOCH - 2, TIMEOUT_MS)
    record = records.record_of(transaction, 2)
    coordinator.machine.apply(record, Applied(len(coordinator.log), 0))
    coordinator.log.append(record)


@pytest.mark.parametrize("first_seed", range(0, 300, 25))
def test_no_transaction_is_torn_or_left_open(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 25):
        coordinator, clients = run(seed)
        try:
            check(coordinator, clients)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_the_runs_meet_what_they_are_for() -> None:
    """Deaths everywhere, and transactions of every outcome: otherwise the test above says little."""
    deaths: set[str] = set()
    outcomes: set[bool | None] = set()
    states: set[State] = set()
    new_ids = 0
    for seed in range(30):
        coordinator, clients = run(seed)
        outcomes |= {outcome for client in clients for outcome in client.outcomes.values()}
        entries = [entry for record in coordinator.log if (entry := records.read(record))]
        states |= {entry.transaction.state for entry in entries if entry.transaction}
        new_ids += sum(client.producer_id > 7 and client.name == "a" for client in clients)
        deaths |= set(_deaths(seed))
    assert outcomes == {True, False, None}
    assert states == IDLE | {State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT}
    assert new_ids
    assert {
        f"{api}, before it is committed" for api in ("InitProducerId", "AddPartitions", "EndTxn")
    } <= deaths
    assert {"complete, before it is committed", "a marker is written", "EndTxn, before the answer"} <= deaths


def _deaths(seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    coordinator = Coordinator(lambda step: False, 2)
    met: list[str] = []

    def killer(step: str) -> bool:
        dies = chance.random() < 0.1
        if dies:
            met.append(step)
        return dies

    coordinator.killer = killer
    client = Client("a", VERSION_2, coordinator)
    for _ in range(100):
        try:
            client.step(chance)
            coordinator.write_markers(chance.randrange)
        except Killed:
            recover(coordinator, chance)
    yield from met


@pytest.mark.parametrize("version", [VERSION_1, VERSION_2])
@pytest.mark.parametrize("commit", [True, False])
def test_every_prefix_of_a_log_ends_well(version: int, commit: bool) -> None:
    """All that a run wrote, cut off after each record: what had been decided is done, all else aborted."""
    length = len(_straight(version, commit, None).log)
    for cut in range(1, length + 1):
        for written in range(len(PARTITIONS) + 1):
            coordinator = _straight(version, commit, cut)
            prepared = any(
                transaction.is_prepared for transaction in coordinator.machine.transactions.values()
            )
            for _ in range(written if prepared else 0):
                coordinator.write_markers(lambda count: 0)
            coordinator.start()
            settle(coordinator)
            for partition in coordinator.partitions.values():
                assert partition.last_stable_offset == partition.end_offset
            seen = [bool(partition.visible) for partition in coordinator.partitions.values()]
            decided = cut >= length - 1
            assert seen == [commit and decided] * len(PARTITIONS), f"after {cut} records"
            (transaction,) = coordinator.machine.transactions.values()
            assert transaction.state in IDLE


def _straight(version: int, commit: bool, cut: int | None) -> Coordinator:
    """One transaction over all partitions, up to a number of records; then the coordinator is gone."""
    coordinator = Coordinator(lambda step: False, 2)
    client = Client("a", version, coordinator)
    client._init()

    def goes_on() -> bool:
        return cut is None or len(coordinator.log) < cut

    for name in PARTITIONS:
        if goes_on():
            client._write(name)
    if goes_on():
        client._end(commit)
    while goes_on() and coordinator.markers:
        coordinator.write_markers(lambda count: 0)
    return coordinator
