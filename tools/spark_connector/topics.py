"""The topics that jobs read: the same on every broker, down to offsets and times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from ottla.testing.asking import create_topic

BEGIN_MS = 1_700_000_000_000
STEP_MS = 1000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SECONDS = 60

Written = tuple[Any, ...]
"""Partition, key, value and headers."""


class Broker:
    """What jobs do to a broker other than through Spark."""

    def __init__(self, name: str, bootstrap: str) -> None:
        self.name, self.bootstrap = name, bootstrap

    def producer(self, **config: Any) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, "log_level": 0, **config})

    def create(self, name: str, *, partitions: int = 1, **config: str) -> str:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        create_topic(self.bootstrap, name, partitions, {"retention.ms": "-1", **settings})
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        (done,) = admin.create_partitions([NewPartitions(topic, total)]).values()
        done.result(SECONDS)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        (done,) = admin.delete_records([TopicPartition(topic, partition, offset)]).values()
        done.result(SECONDS)

    def send(self, topic: str, numbers: Iterable[int], *, partitions: int = 1, codec: str = "none") -> None:
        """Record N of each partition: a key, a value and a time that follow from N."""
        producer = self.producer(**{"compression.type": codec})
        for number in numbers:
            for partition in range(partitions):
                produce(producer, topic, partition, number)
        assert producer.flush(SECONDS) == 0

    def read(self, topic: str) -> list[Written]:
        """What is committed in a topic, with neither of the two formats."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "comparison",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        try:
            partitions = sorted(consumer.list_topics(topic, SECONDS).topics[topic].partitions)
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            ended: set[int | None] = set()
            found: list[Written] = []
            while len(ended) < len(partitions):
                message = consumer.poll(SECONDS)
                if message is None:
                    raise TimeoutError(f"topic {topic} could not be read to its end")
                if message.error():
                    ended.add(message.partition())
                    continue
                headers = message.headers() or []
                found.append((message.partition(), message.key(), message.value(), headers))
            return found
        finally:
            consumer.close()


def produce(producer: Producer, topic: str, partition: int, number: int) -> None:
    key = None if number % 7 == 0 else b"key-%d" % (number % 50)
    value = None if number % 11 == 0 else b"value-%d-%d" % (partition, number)
    headers: Any = [("number", b"%d" % number), ("none", None)] if number % 3 == 0 else None
    producer.produce(
        topic, value, key, partition, timestamp=BEGIN_MS + number * STEP_MS + partition, headers=headers
    )
    producer.poll(0)


def fill(broker: Broker, count: int) -> None:
    """The topics that no job changes, with `count` records in each partition."""
    broker.create("events", partitions=3)
    broker.send("events", range(count), partitions=3)
    broker.create("others", partitions=1)
    broker.send("others", range(count // 10))
    broker.create("empty", partitions=2)
    broker.create("stamped", partitions=1, message_timestamp_type="LogAppendTime")
    broker.send("stamped", range(count // 10))
    for codec in CODECS:
        broker.create(f"codec-{codec}")
        broker.send(f"codec-{codec}", range(count // 10), codec=codec)
    broker.create("shortened", partitions=2)
    broker.send("shortened", range(count // 10), partitions=2)
    broker.delete_before("shortened", 0, count // 20)
    fill_transactions(broker, count // 10)


def fill_transactions(broker: Broker, count: int) -> None:
    """Committed and aborted in turn, and at last an ordinary batch."""
    topic = broker.create("transactions", partitions=2)
    producer = broker.producer(**{"transactional.id": "filling"})
    producer.init_transactions(SECONDS)
    for turn in range(6):
        producer.begin_transaction()
        for number in range(turn * count, turn * count + count):
            produce(producer, topic, number % 2, number)
        if turn % 2:
            producer.flush(SECONDS)  # so that what is aborted is in the log
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)
    broker.send(topic, range(count), partitions=2)
