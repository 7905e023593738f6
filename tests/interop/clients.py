"""The three client libraries, each with the few lines that tests repeat. No consumer groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition

DEADLINE = 45.0


class ConfluentProducer:
    """A producer that remembers every delivery report."""

    def __init__(self, bootstrap: str, **settings: Any) -> None:
        words = {name.replace("_", "."): value for name, value in settings.items()}
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2} | words)
        self.delivered: list[Message] = []
        self.failed: list[tuple[Any, Message]] = []

    def send(self, topic: str, value: bytes | None = None, **fields: Any) -> None:
        while True:
            try:
                self.producer.produce(topic, value=value, on_delivery=self._report, **fields)
                self.producer.poll(0)
                return
            except BufferError:
                self.producer.poll(0.1)

    def flush(self) -> list[Message]:
        """Every message delivered so far; an error if one was not."""
        left = self.producer.flush(DEADLINE)
        assert left == 0, f"{left} messages are still on their way"
        if self.failed:
            raise KafkaException(self.failed[0][0])
        return self.delivered

    def _report(self, error: Any, message: Message) -> None:
        if error is None:
            self.delivered.append(message)
        else:
            self.failed.append((error, message))


@contextmanager
def confluent_consumer(bootstrap: str, **settings: Any) -> Iterator[Consumer]:
    """librdkafka wants a group id even where no group is used."""
    words = {name.replace("_", "."): value for name, value in settings.items()}
    defaults = {
        "bootstrap.servers": bootstrap,
        "group.id": "not-used",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 100,
    }
    consumer = Consumer(defaults | words)
    try:
        yield consumer
    finally:
        consumer.close()


def read_with_confluent(
    bootstrap: str,
    topic: str,
    count: int,
    *,
    partitions: Sequence[int] = (0,),
    offset: int = OFFSET_BEGINNING,
    **settings: Any,
) -> list[Message]:
    """The next `count` messages of the given partitions."""
    with confluent_consumer(bootstrap, **settings) as consumer:
        consumer.assign([TopicPartition(topic, partition, offset) for partition in partitions])
        return poll_until(consumer, lambda found: len(found) >= count)


def poll_until(consumer: Consumer, enough: Callable[[list[Message]], bool]) -> list[Message]:
    found: list[Message] = []
    deadline = time.monotonic() + DEADLINE
    while not enough(found):
        assert time.monotonic() < deadline, f"only {len(found)} messages after {DEADLINE:g} s"
        for message in consumer.consume(10_000, timeout=0.1):
            if message.error():
                raise KafkaException(message.error())
            found.append(message)
    return found


@contextmanager
def kafka_python_producer(bootstrap: str, **settings: Any) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=bootstrap, **settings)
    try:
        yield producer
    finally:
        producer.close(timeout=DEADLINE)


def read_with_kafka_python(
    bootstrap: str, topic: str, count: int, *, partitions: Iterable[int] = (0,), **settings: Any
) -> list[Any]:
    defaults = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, **(defaults | settings))
    found: list[Any] = []
    deadline = time.monotonic() + DEADLINE
    try:
        consumer.assign([KafkaPythonPartition(topic, partition) for partition in partitions])
        while len(found) < count:
            assert time.monotonic() < deadline, f"only {len(found)} of {count} messages"
            for records in consumer.poll(timeout_ms=200).values():
                found += records
    finally:
        consumer.close()
    return found
