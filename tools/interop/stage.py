"""One cell before and around the client: topics, records and groups that its feature starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tools.interop.traffic import Traffic
from tools.interop.witness import CLIENT_ID

PARTITIONS = 4
RECORDS = 100
SECONDS = 30.0


class Stage:
    """A broker and a name that nothing else on it uses: the topic, group and transactional id of the cell."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap, self.name = bootstrap, name
        self.settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "client.id": CLIENT_ID.decode(),
            "log_level": 2,
        }
        self.admin = AdminClient(self.settings)
        self.traffic = Traffic()
        """What the client said and heard, once it has ended."""
        self.closing = ExitStack()

    def create_topic(
        self, suffix: str = "", partitions: int = PARTITIONS, config: Mapping[str, str] | None = None
    ) -> None:
        name = self.name + suffix
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        self.admin.create_topics([topic])[name].result(SECONDS)

    def fill(self, suffix: str = "") -> None:
        """`value-0` to `value-99`, in turn over the partitions."""
        producer = Producer(self.settings | {"linger.ms": 5})
        for number in range(RECORDS):
            producer.produce(
                self.name + suffix,
                key=f"key-{number}",
                value=f"value-{number}",
                partition=number % PARTITIONS,
            )
        if producer.flush(SECONDS):
            raise RuntimeError(f"{self.name} cannot be filled")

    def commit_offsets(self, offsets: Mapping[int, int]) -> None:
        """Makes the group, which then has offsets and no members."""
        consumer = Consumer(self.settings | {"group.id": self.name})
        wanted = [TopicPartition(self.name, partition, offset) for partition, offset in offsets.items()]
        try:
            for done in consumer.commit(offsets=wanted, asynchronous=False) or ():
                if done.error is not None:
                    raise KafkaException(done.error)
        finally:
            consumer.close()

    def share_from_the_start(self) -> None:
        """A share group begins at the end of a topic unless its configuration says otherwise."""
        entry = ConfigEntry(
            "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
        )
        group = ConfigResource(ResourceType.GROUP, self.name, incremental_configs=[entry])
        self.admin.incremental_alter_configs([group])[group].result(SECONDS)

    def transaction(self, suffix: str, values: list[str], end: str) -> None:
        """One transaction on partition 0: `end` is commit, abort or open (until the stage is cleared)."""
        own = {"transactional.id": f"{self.name}-{suffix}", "transaction.timeout.ms": 120_000}
        producer = Producer(self.settings | own)
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        for value in values:
            producer.produce(self.name, key=suffix, value=value, partition=0, on_delivery=raising)
        producer.flush(SECONDS)
        if end == "commit":
            producer.commit_transaction(SECONDS)
        elif end == "abort":
            producer.abort_transaction(SECONDS)
        else:
            # It stays open while the client looks; the stage ends it, so that nothing is left hanging.
            abort: Callable[..., object] = producer.abort_transaction
            self.closing.callback(abort, SECONDS)

    def clear(self) -> None:
        self.closing.close()


def raising(error: object, _message: Message) -> None:
    if error is not None:
        raise KafkaException(error)
