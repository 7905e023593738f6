"""Producers of three client libraries that keep sending while nodes come and go, and note what they sent."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import abstractmethod
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Message, Producer

from kafka import KafkaProducer
from ottla.testing.history import Operation, Recorder

SECONDS = 90.0


class Feed:
    """`with ConfluentFeed(bootstrap, topic, 3) as feed:` sends until the block ends, then waits for all
    acknowledgements. Every value is unique and goes to the next partition; all producers are idempotent."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, *, per_second: float = 100, name: str = ""
    ) -> None:
        self.bootstrap, self.topic, self.partitions = bootstrap, topic, partitions
        self.recorder = Recorder(name or type(self).__name__)
        self.values: list[str] = []
        self.failed: list[str] = []
        self.taken: set[str] = set()
        """What was acknowledged, also by a broker that had it already and did not say where."""
        self.longest_gap = 0.0
        """The longest time between two acknowledgements, in seconds."""
        self._last = time.monotonic()
        self._pause = 1 / per_second
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None

    def names(self) -> list[str]:
        return [f"{self.topic}-{number}" for number in range(self.partitions)]

    @property
    def acknowledged(self) -> int:
        return len(self.taken)

    @abstractmethod
    def open(self) -> None: ...
    @abstractmethod
    def send(self, partition: int, value: str, operation: Operation) -> None: ...
    @abstractmethod
    def serve(self) -> None: ...
    @abstractmethod
    def finish(self) -> None: ...

    def took(self, operation: Operation, value: str, offset: int | None) -> None:
        if offset is not None and offset >= 0:
            operation.ok(offset=offset)
        else:
            operation.info(error="it was there already")
        now = time.monotonic()
        self.longest_gap, self._last = max(self.longest_gap, now - self._last), now
        self.taken.add(value)

    def refused(self, operation: Operation, error: str) -> None:
        operation.info(error=error)
        self.failed.append(error)

    def more(self, count: int, seconds: float = SECONDS) -> None:
        """Waits until so many more are acknowledged."""
        wanted, deadline = self.acknowledged + count, time.monotonic() + seconds
        while self.acknowledged < wanted:
            assert time.monotonic() < deadline, f"{self.recorder.process}: nothing is acknowledged any more"
            if self._error is not None:
                raise self._error
            time.sleep(0.01)

    def _run(self) -> None:
        try:
            self.open()
            self._last = time.monotonic()
            while not self._done.wait(self._pause):
                number = len(self.values)
                partition = number % self.partitions
                value = f"{self.recorder.process}/{number}"
                self.values.append(value)
                self.send(partition, value, self.recorder.send(f"{self.topic}-{partition}", value))
                self.serve()
            self.finish()
        except BaseException as error:
            self._error = error

    def stop(self) -> None:
        self._done.set()
        self._thread.join(2 * SECONDS)
        assert not self._thread.is_alive(), f"{self.recorder.process} does not end"
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if kind is None:
            self.stop()


class ConfluentFeed(Feed):
    def open(self) -> None:
        self.producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
                "log_level": 2,
            }
        )

    def send(self, partition: int, value: str, operation: Operation) -> None:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.took(operation, value, message.offset())
            else:
                self.refused(operation, error.name())

        self.producer.produce(self.topic, value, partition=partition, on_delivery=report)

    def serve(self) -> None:
        self.producer.poll(0)

    def finish(self) -> None:
        left = self.producer.flush(SECONDS)
        assert left == 0, f"{left} records are not acknowledged"


class KafkaPythonFeed(Feed):
    def open(self) -> None:
        self.producer = KafkaProducer(
            bootstrap_servers=self.bootstrap.split(","),
            enable_idempotence=True,
            linger_ms=2,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            retry_backoff_ms=50,
            request_timeout_ms=10_000,
        )

    def send(self, partition: int, value: str, operation: Operation) -> None:
        future = self.producer.send(self.topic, value.encode(), partition=partition)
        future.add_callback(lambda found: self.took(operation, value, found.offset))
        future.add_errback(lambda error: self.refused(operation, type(error).__name__))

    def serve(self) -> None: ...

    def finish(self) -> None:
        self.producer.flush(timeout=SECONDS)
        self.producer.close(timeout=5)


class AioKafkaFeed(Feed):
    """Its loop runs in the feed's thread."""

    def _run(self) -> None:
        try:
            asyncio.run(self._run_loop())
        except BaseException as error:
            self._error = error

    async def _run_loop(self) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=True,
            retry_backoff_ms=50,
            request_timeout_ms=40_000,
        )
        await producer.start()
        self._last = time.monotonic()
        sent: set[asyncio.Task[None]] = set()
        try:
            while not self._done.is_set():
                number = len(self.values)
                partition = number % self.partitions
                value = f"{self.recorder.process}/{number}"
                self.values.append(value)
                operation = self.recorder.send(f"{self.topic}-{partition}", value)
                future = await producer.send(self.topic, value.encode(), partition=partition)
                task = asyncio.create_task(self._report(future, value, operation))
                sent.add(task)
                task.add_done_callback(sent.discard)
                await asyncio.sleep(self._pause)
            await asyncio.wait_for(producer.flush(), SECONDS)
            if sent:
                await asyncio.wait(sent, timeout=SECONDS)
        finally:
            await producer.stop()

    async def _report(self, future: Any, value: str, operation: Operation) -> None:
        try:
            found = await future
        except Exception as error:
            self.refused(operation, type(error).__name__)
        else:
            self.took(operation, value, found.offset)

    def open(self) -> None: ...
    def send(self, partition: int, value: str, operation: Operation) -> None: ...
    def serve(self) -> None: ...
    def finish(self) -> None: ...


FEEDS: dict[str, type[Feed]] = {
    "confluent": ConfluentFeed,
    "kafka-python": KafkaPythonFeed,
    "aiokafka": AioKafkaFeed,
}
