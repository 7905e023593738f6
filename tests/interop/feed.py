"""A producer that keeps sending while a test goes on, and notes what it sent."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

from ottla.testing.history import Operation, Recorder

SECONDS = 45.0


class Feed:
    """`with Feed(bootstrap, topic, 6) as feed:` sends until the block ends, and then waits for every
    acknowledgement. Each value is unique and goes to the next partition."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, *, per_second: int = 200, name: str = "feed"
    ) -> None:
        self.topic, self.partitions = topic, partitions
        self.recorder = Recorder(name)
        self.values: list[str] = []
        self._pause = 1 / per_second
        self._done = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None

    def names(self) -> list[str]:
        """Of the partitions."""
        return [f"{self.topic}-{number}" for number in range(self.partitions)]

    def send(self, count: int) -> None:
        """So many more, at once."""
        for _ in range(count):
            self._send()
        self._flush()

    def _run(self) -> None:
        try:
            while not self._done.wait(self._pause):
                self._send()
                self._producer.poll(0)
        except BaseException as error:
            self._error = error

    def _send(self) -> None:
        number = len(self.values)
        partition = number % self.partitions
        value = f"{self.recorder.process}/{number}"
        self.values.append(value)
        operation = self.recorder.send(f"{self.topic}-{partition}", value)

        def report(error: KafkaError | None, message: Message, operation: Operation = operation) -> None:
            if error is None:
                operation.ok(offset=message.offset())
            else:
                operation.info(error=error.name())

        self._producer.produce(self.topic, value, partition=partition, on_delivery=report)

    def _flush(self) -> None:
        left = self._producer.flush(SECONDS)
        assert left == 0, f"{left} records are not acknowledged"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        if kind is None:
            if self._error is not None:
                raise self._error
            self._flush()
