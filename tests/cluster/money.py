"""Money that is moved between accounts, a transaction at a time: whatever happens, none is made or lost."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ottla.testing.history import Operation, Recorder, check
from tests.interop.transactional import split

SECONDS = 90.0


class Money:
    """Moves amounts between partitions until the block ends; some transactions are aborted on purpose."""

    def __init__(self, bootstrap: str, accounts: Iterable[str], transactional_id: str, seed: int = 1) -> None:
        self.bootstrap, self.accounts = bootstrap, list(accounts)
        self.transactional_id = transactional_id
        self.recorder = Recorder(transactional_id)
        self.committed = 0
        self.errors: list[str] = []
        self._chance = random.Random(seed)
        self._count = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None

    def more(self, count: int, seconds: float = SECONDS) -> None:
        """Waits until so many more transactions are committed."""
        wanted, deadline = self.committed + count, time.monotonic() + seconds
        while self.committed < wanted:
            assert time.monotonic() < deadline, f"no transaction is committed any more: {self.errors[-3:]}"
            if self._error is not None:
                raise self._error
            time.sleep(0.01)

    def check(self, *others: Recorder) -> None:
        events = [event for recorder in (self.recorder, *others) for event in recorder.events]
        anomalies = check(events, drained=True)
        assert not anomalies, "\n".join(map(str, anomalies[:10]))

    def _run(self) -> None:
        try:
            producer = self._new_producer()
            while not self._done.is_set():
                try:
                    self._move(producer)
                except KafkaException as error:
                    self.errors.append(str(error))
                    if error.args[0].txn_requires_abort():
                        self._end(producer, commit=False)
                    else:
                        # Nothing more can be had from this one; whoever comes next fences it.
                        producer = self._new_producer()
        except BaseException as error:
            self._error = error

    def _new_producer(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.transactional_id,
                "transaction.timeout.ms": 20_000,
                "linger.ms": 2,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
                "log_level": 2,
            }
        )
        self._insist(lambda: producer.init_transactions(10))
        return producer

    def _move(self, producer: Producer) -> None:
        self._count += 1
        name = f"{self.transactional_id}/{self._count}"
        giver, taker = self._chance.sample(self.accounts, 2)
        amount = self._chance.randint(1, 100)
        producer.begin_transaction()
        for account, change in ((giver, -amount), (taker, amount)):
            value = f"{name}/{account}/{change}"
            operation = self.recorder.send(account, value, name)
            topic, partition = split(account)
            producer.produce(topic, value, partition=partition, on_delivery=_reporter(operation))
        self._end(producer, commit=self._chance.random() > 0.2)

    def _end(self, producer: Producer, *, commit: bool) -> None:
        name = f"{self.transactional_id}/{self._count}"
        operation = self.recorder.end_transaction(name, commit=commit)
        try:
            self._insist(lambda: (producer.commit_transaction if commit else producer.abort_transaction)(10))
        except KafkaException as error:
            operation.info(error=str(error))
            raise
        operation.ok()
        self.committed += commit

    def _insist(self, call: object) -> None:
        """What may be tried again is tried again."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                call()  # type: ignore[operator]
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join(2 * SECONDS)
        if kind is None and self._error is not None:
            raise self._error


def _reporter(operation: Operation):  # type: ignore[no-untyped-def]
    def report(error: KafkaError | None, message: Message) -> None:
        if error is None:
            operation.ok(offset=message.offset())
        else:
            operation.info(error=error.name())

    return report


def balance(values: Iterable[str]) -> int:
    """What the accounts hold together, which is what they began with: nothing."""
    return sum(int(value.rpartition("/")[2]) for value in values)
