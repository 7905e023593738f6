from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ottla.config.broker import BrokerSettings
from ottla.core.outcome import Applied, LogRecord, Now, Outcome
from ottla.core.types import TopicPartition
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.transactions import records
from ottla.transactions.effects import WriteMarkers
from ottla.transactions.machine import PRODUCER_ID_NEEDED, TransactionMachine
from ottla.transactions.transaction import VERSION_1, VERSION_2, Transaction

ID = "orders"
START_MS = 1_700_000_000_000


class Coordinator:
    """Does what the shell does with decisions: writes, applies, keeps effects for when they are asked for."""

    def __init__(
        self, *, transaction_version: int = 2, log: Iterable[LogRecord] = (), **settings: Any
    ) -> None:
        self.now = Now(START_MS, 1_000)
        self.next_producer_id = 1000
        self.log: list[LogRecord] = []
        self.effects: list[WriteMarkers] = []
        self.settings = BrokerSettings(**settings)
        self.transaction_version = transaction_version
        self.machine = self._machine()
        for record in log:
            self._write(record)
        self.take(self.machine.loaded(self.now))

    def _machine(self) -> TransactionMachine:
        return TransactionMachine(7, lambda: self.settings, lambda: self.transaction_version)

    def _write(self, record: LogRecord) -> None:
        self.machine.apply(record, Applied(len(self.log), self.now.wall_ms))
        self.log.append(record)

    def take(self, outcome: Outcome) -> Any:
        for record in outcome.records:
            self._write(record)
        self.effects += outcome.effects
        return outcome.reply

    def restart(self, records: int | None = None) -> None:
        """A new machine from the first so many records of the log; timers and markers are lost."""
        log, self.log, self.effects = self.log[:records], [], []
        self.machine = self._machine()
        for record in log:
            self._write(record)
        self.take(self.machine.loaded(self.now))

    def fresh_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def init(self, producer_id: int = -1, epoch: int = -1, **fields: Any) -> InitProducerIdResponse:
        fields = {"transactional_id": ID, "transaction_timeout_ms": 60_000} | fields
        request = InitProducerIdRequest(producer_id=producer_id, producer_epoch=epoch, **fields)
        reply = self.take(self.machine.init_producer_id(request, self.now))
        if reply is PRODUCER_ID_NEEDED:
            reply = self.take(self.machine.init_producer_id(request, self.now, self.fresh_id()))
        assert isinstance(reply, InitProducerIdResponse)
        return reply

    def add(
        self, producer_id: int, epoch: int, *partitions: TopicPartition, version: int = VERSION_2
    ) -> dict[TopicPartition, int]:
        outcome = self.machine.add_partitions(ID, producer_id, epoch, partitions, self.now, version)
        reply: dict[TopicPartition, int] = self.take(outcome)
        return reply

    def end(self, producer_id: int, epoch: int, *, commit: bool, version: int = 5) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=ID, producer_id=producer_id, producer_epoch=epoch, committed=commit
        )
        reply = self.take(self.machine.end_txn(request, version, self.now))
        if reply is PRODUCER_ID_NEEDED:
            reply = self.take(self.machine.end_txn(request, version, self.now, self.fresh_id()))
        assert isinstance(reply, EndTxnResponse)
        return reply

    def write_markers(self) -> list[WriteMarkers]:
        """Every marker that was asked for gets written."""
        written, self.effects = self.effects, []
        for markers in written:
            assert self.take(self.machine.markers_written(markers, self.now))
        return written

    def put(self, transaction: Transaction) -> None:
        self._write(records.record_of(transaction, self.transaction_version))

    def pass_time(self, ms: int) -> None:
        self.now = Now(self.now.wall_ms + ms, self.now.monotonic_ms + ms)
        while (at := self.machine.deadline()) is not None and at <= self.now.monotonic_ms:
            self.take(self.machine.expire(self.now))

    @property
    def transaction(self) -> Transaction:
        return self.machine.transactions[ID]

    @property
    def states(self) -> list[str]:
        """The states that the log went through."""
        entries = filter(None, map(records.read, self.log))
        return [entry.transaction.state.title if entry.transaction else "-" for entry in entries]


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def old_coordinator() -> Coordinator:
    """Of a cluster that has not been told to use version 2."""
    return Coordinator(transaction_version=VERSION_1)
