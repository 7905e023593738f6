"""Kafka clients as tests want them: confluent-kafka or aiokafka, if they are installed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

CONFLUENT: Final = "confluent"
AIOKAFKA: Final = "aiokafka"
MODULES: Final = {CONFLUENT: "confluent_kafka", AIOKAFKA: "aiokafka"}
POLL_SECONDS: Final = 0.1


class NoClient(Exception):
    """No client library is installed, or not the one that was asked for."""


def producer(bootstrap: str, client: str | None, config: Mapping[str, Any]) -> Any:
    if _chosen(client) == AIOKAFKA:
        aiokafka: Any = import_module(AIOKAFKA)
        return aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, **config)
    return _ConfluentProducer({"bootstrap.servers": bootstrap, **_dotted(config)})


def consumer(
    bootstrap: str, client: str | None, topics: Sequence[str], group: str, config: Mapping[str, Any]
) -> Any:
    if _chosen(client) == AIOKAFKA:
        aiokafka: Any = import_module(AIOKAFKA)
        wanted = {"auto_offset_reset": "earliest", "group_id": group, **config}
        return aiokafka.AIOKafkaConsumer(*topics, bootstrap_servers=bootstrap, **wanted)
    import confluent_kafka

    wanted = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        **_dotted(config),
    }
    made = confluent_kafka.Consumer(wanted)
    if topics:
        made.subscribe(list(topics))
    return made


def wait_for_assignment(consumer: Any, timeout: float) -> Any:
    if _is_aiokafka(consumer):
        return _aiokafka_assignment(consumer, timeout)
    import confluent_kafka

    deadline = time.monotonic() + timeout
    while not (assigned := consumer.assignment()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no partitions were assigned within {timeout:g} s")
        message = consumer.poll(POLL_SECONDS)
        if message is not None and not message.error():
            # It arrived together with the assignment and is the test's to read.
            position = confluent_kafka.TopicPartition(message.topic(), message.partition(), message.offset())
            consumer.seek(position)
    return assigned


async def _aiokafka_assignment(consumer: Any, seconds: float) -> Any:
    async with asyncio.timeout(seconds):
        while not consumer.assignment():  # noqa: ASYNC110 - aiokafka tells it to listeners, which are the test's
            await asyncio.sleep(POLL_SECONDS / 10)
    return consumer.assignment()


def take(consumer: Any, count: int, timeout: float) -> Any:
    if _is_aiokafka(consumer):
        return _aiokafka_take(consumer, count, timeout)
    deadline = time.monotonic() + timeout
    taken: list[Any] = []
    while len(taken) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(taken)} of {count} messages came within {timeout:g} s")
        taken += [each for each in consumer.consume(count - len(taken), POLL_SECONDS) if not each.error()]
    return taken


async def _aiokafka_take(consumer: Any, count: int, seconds: float) -> list[Any]:
    async with asyncio.timeout(seconds):
        return [await consumer.getone() for _ in range(count)]


def _is_aiokafka(client: Any) -> bool:
    return type(client).__module__.startswith(AIOKAFKA)


def _chosen(client: str | None) -> str:
    if client is not None and client not in MODULES:
        raise NoClient(f"there is no client {client!r}: it is {' or '.join(map(repr, MODULES))}")
    for name in [client] if client is not None else MODULES:
        if find_spec(MODULES[name]) is not None:
            return name
    wanted = "confluent-kafka or aiokafka" if client is None else MODULES[client].replace("_", "-")
    raise NoClient(f"install {wanted} to have producers and consumers here")


def _dotted(config: Mapping[str, Any]) -> dict[str, Any]:
    """`linger_ms=5` as confluent-kafka writes it: `linger.ms`."""
    return {name.replace("_", "."): value for name, value in config.items()}


class _ConfluentProducer:
    """confluent-kafka's producer, which the fixture can close.

    Closing gives messages that were never flushed a moment, and then gives them up: a broker that a test has
    stopped will not take them.
    """

    CLOSE_SECONDS: Final = 1.0

    def __init__(self, config: Mapping[str, Any]) -> None:
        import confluent_kafka

        self._producer = confluent_kafka.Producer(dict(config))

    def __getattr__(self, name: str) -> Any:
        if name == "_producer":
            raise RuntimeError("this producer is closed")
        return getattr(self._producer, name)

    def __len__(self) -> int:
        return len(self._producer)

    def close(self) -> None:
        if len(self._producer):
            self._producer.flush(self.CLOSE_SECONDS)
            self._producer.purge()
            self._producer.flush(self.CLOSE_SECONDS)
        # Its threads end with it; they would go on looking for the broker, and say so on stderr.
        del self._producer
