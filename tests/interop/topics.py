"""Topics for tests: created and ready before the test goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.admin import NewTopic as Description

DEADLINE = 30.0


class Names(Protocol):
    def __call__(self, stem: str) -> str: ...


class NewTopic(Protocol):
    def __call__(self, stem: str = "topic", partitions: int = 1, **config: object) -> str: ...


def create_topic(admin: AdminClient, name: str, partitions: int, config: Mapping[str, object]) -> None:
    """Returns when every partition has a leader, so that a test need not retry its first request."""
    words = {key.replace("_", "."): str(value) for key, value in config.items()}
    description = Description(name, num_partitions=partitions, replication_factor=1, config=words)
    admin.create_topics([description], operation_timeout=DEADLINE)[name].result(DEADLINE)
    eventually(lambda: has_leaders(admin, name, partitions))


def has_leaders(admin: AdminClient, name: str, partitions: int) -> bool:
    """Metadata names a leader a moment before Apache Kafka's leader answers, so the leader is asked."""
    earliest = {TopicPartition(name, partition): OffsetSpec.earliest() for partition in range(partitions)}
    try:
        for answer in admin.list_offsets(earliest).values():
            answer.result(DEADLINE)
    except KafkaException:
        return False
    return True


def eventually(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    """Asks again and again until the answer is true, for as long as `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not true after {seconds:g} s"
        time.sleep(0.01)
