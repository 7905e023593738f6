"""Clients that live on while the broker under them is exchanged for another one on the same directory.

They notice a restart and no more: an idempotent producer goes on with its sequence numbers, a transaction
that was opened on one broker is continued and committed on the other, members of groups keep their place.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from confluent_kafka import AcknowledgeType, Consumer, KafkaException, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

SECONDS = 60.0
TOPIC, PARTITIONS = "carried", 3
# Losing the broker is what this is about, so nothing is logged about it.
SETTINGS: dict[str, Any] = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500, "log_level": 2}
# A librdkafka that loses its only broker begins again from the bootstrap addresses, and then never finds its
# transaction coordinator (2.16, and with Apache Kafka as well), unless it is told not to. Consumers have to:
# they may hear from a broker that is stopping that there is none, and forget the one they knew.
TRANSACTIONAL = SETTINGS | {"metadata.recovery.strategy": "none"}


class Carried:
    """Made while the first broker runs; `go_on` is called once on every broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, **SETTINGS})
        self.sent: list[str] = []
        self.received: list[str] = []
        topic = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1)
        self.admin.create_topics([topic])[TOPIC].result(SECONDS)
        self.idempotent = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1, **SETTINGS}
        )
        self.transactional = self.producer("carried-open")
        self.transactional.begin_transaction()
        self.members = {protocol: self.member(protocol) for protocol in ("classic", "consumer")}

    def producer(self, transactional_id: str) -> Producer:
        settings = {"transactional.id": transactional_id, "transaction.timeout.ms": 900_000}
        producer = Producer({"bootstrap.servers": self.bootstrap, **settings, **TRANSACTIONAL})
        producer.init_transactions(SECONDS)
        return producer

    def member(self, protocol: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"carried-{protocol}",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                # The members rest while files are compared, which on a busy machine takes minutes.
                "max.poll.interval.ms": 3_600_000,
                **SETTINGS,
            }
        )
        consumer.subscribe([TOPIC])
        return consumer

    def go_on(self, word: str) -> list[str]:
        """One round on the broker that is there now; what went wrong."""
        problems: list[str] = ["a client hangs"]

        def work() -> None:
            try:
                problems[:] = self.round(word)
            except (KafkaException, RuntimeError) as error:
                problems[:] = [f"{type(error).__name__}: {error}"]

        # Calls of librdkafka do not always keep to the time that they are given.
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(10 * SECONDS)
        return list(problems)

    def round(self, word: str) -> list[str]:
        send(self.idempotent, f"{word}-idempotent")
        send(self.transactional, f"{word}-transactional")
        self.transactional.send_offsets_to_transaction(
            [TopicPartition(TOPIC, 0, len(self.sent) + 1, word)], self.group_of_transaction(), SECONDS
        )
        # What was opened on the broker before is committed on this one.
        self.transactional.commit_transaction(SECONDS)
        self.sent += [f"{word}-idempotent-{n}" for n in range(PARTITIONS)]
        self.sent += [f"{word}-transactional-{n}" for n in range(PARTITIONS)]
        problems = [problem for protocol in self.members for problem in self.receive(protocol)]

        self.transactional.begin_transaction()
        send(self.transactional, f"{word}-left-open")
        self.sent += [f"{word}-left-open-{n}" for n in range(PARTITIONS)]
        one_more = self.producer(f"carried-{word}")
        for end in (one_more.commit_transaction, one_more.abort_transaction):
            one_more.begin_transaction()
            send(one_more, f"{word}-{end.__name__}")
            end(SECONDS)
        self.sent += [f"{word}-commit_transaction-{n}" for n in range(PARTITIONS)]
        return problems + self.share(word)

    def group_of_transaction(self) -> Any:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "carried-transactional"})
        try:
            return consumer.consumer_group_metadata()
        finally:
            consumer.close()

    def receive(self, protocol: str) -> list[str]:
        """The member, which joined on an earlier broker, reads on from where it was."""
        consumer, found = self.members[protocol], set[str]()
        wanted = {value for value in self.sent if value not in self.received}
        # Long enough for a session to expire and the group to come together again.
        deadline = time.monotonic() + 2 * SECONDS
        while not wanted <= found and time.monotonic() < deadline:
            for message in consumer.consume(1000, timeout=0.2):
                if message.error() is None:
                    found.add((message.value() or b"").decode())
        if not wanted <= found:
            return [f"the {protocol} member misses {sorted(wanted - found)[:5]} after {len(found)} records"]
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            return [f"the {protocol} member cannot commit: {error}"]
        if protocol == list(self.members)[-1]:
            self.received += sorted(wanted)
        return []

    def share(self, word: str) -> list[str]:
        """A share group that takes some records and leaves others, so that there is state to keep."""
        name = "carried-share"
        entry = ConfigEntry(
            "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
        )
        group = ConfigResource(ResourceType.GROUP, name, incremental_configs=[entry])
        self.admin.incremental_alter_configs([group])[group].result(SECONDS)
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": name,
                "share.acknowledgement.mode": "explicit",
                **SETTINGS,
            }
        )
        consumer.subscribe([TOPIC])
        accepted, deadline = 0, time.monotonic() + SECONDS
        while accepted < 4 and time.monotonic() < deadline:
            for message in consumer.poll(0.2):
                if message.error() is None:
                    # Every other one only, so that acknowledged and free records alternate in the state.
                    take = message.offset() % 2 == 0
                    consumer.acknowledge(message, AcknowledgeType.ACCEPT if take else AcknowledgeType.RELEASE)
                    accepted += take
            consumer.commit_sync(10.0)
        consumer.close()
        return [] if accepted >= 4 else [f"{word}: the share group got only {accepted} records"]

    def close(self) -> None:
        for consumer in self.members.values():
            consumer.close()


def send(producer: Producer, word: str) -> None:
    """One record for every partition."""
    failed: list[Any] = []
    for partition in range(PARTITIONS):
        producer.produce(
            TOPIC,
            value=f"{word}-{partition}",
            partition=partition,
            on_delivery=lambda error, _message: failed.append(error) if error else None,
        )
    if producer.flush(SECONDS) or failed:
        raise RuntimeError(f"{word} was not taken: {failed[:1]}")
