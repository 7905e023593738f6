"""A member of a consumer group in a process of its own, so that it can be stopped, paused and killed.

`python -m tests.interop.member OPTIONS`, with options as JSON (`tests.interop.crew` starts it). It polls,
commits what it polled, and notes everything in a history file. SIGTERM makes it leave the group, SIGUSR1
commit once more.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ottla.testing.history import Operation, Recorder

# Errors that say for certain that a commit was refused.
REFUSED = {
    "FENCED_INSTANCE_ID",
    "ILLEGAL_GENERATION",
    "REBALANCE_IN_PROGRESS",
    "STALE_MEMBER_EPOCH",
    "UNKNOWN_MEMBER_ID",
    "_FATAL",  # librdkafka has heard before that it is fenced, and sends nothing any more
}
FENCED = {"FENCED_INSTANCE_ID", "_FATAL"}


@dataclass
class Options:
    client: str
    bootstrap: str
    group: str
    topics: list[str]
    name: str
    history: str
    instance: str | None = None  # group.instance.id of a static member
    commit: str = "each"  # after each poll, or only when told ("signal")
    committed: bool = False  # isolation level read_committed
    settings: dict[str, Any] = field(default_factory=dict)


class Member:
    """What all clients have in common: what is noted, and when to commit."""

    def __init__(self, options: Options, recorder: Recorder) -> None:
        self.options = options
        self.recorder = recorder
        self.identity = options.instance or options.name
        self.running = True
        self.commit_now = False
        self.owned: set[str] = set()
        self.offsets: dict[str, int] = {}
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGUSR1, self._commit)

    def _stop(self, *_: object) -> None:
        self.running = False

    def _commit(self, *_: object) -> None:
        self.commit_now = True

    def polled(self, records: Iterable[tuple[str, int, bytes]]) -> None:
        values = [(partition, offset, value.decode()) for partition, offset, value in records]
        if values:
            self.recorder.polled(values, committed=self.options.committed)
            self.offsets |= {partition: offset + 1 for partition, offset, _ in values}

    def assigned(self, partitions: Iterable[str], generation: int | None = None) -> None:
        new = sorted(partitions)
        self.owned.update(new)
        self.recorder.assigned(self.options.group, new, member=self.identity, generation=generation)

    def revoked(self, partitions: Iterable[str]) -> None:
        self.recorder.revoked(self.options.group, self._given_up(partitions), member=self.identity)

    def lost(self, partitions: Iterable[str]) -> None:
        self.recorder.lost(self.options.group, self._given_up(partitions), member=self.identity)

    def _given_up(self, partitions: Iterable[str]) -> list[str]:
        gone = sorted(partitions)
        self.owned.difference_update(gone)
        if self.options.commit == "each":
            self.offsets = {name: offset for name, offset in self.offsets.items() if name not in gone}
        return gone

    def due(self) -> dict[str, int]:
        """What is to be committed now, if anything."""
        if self.commit_now or (self.options.commit == "each" and self.offsets):
            self.commit_now = False
            offsets, self.offsets = self.offsets, {}
            return offsets
        return {}

    def committing(self, offsets: Mapping[str, int]) -> Operation:
        return self.recorder.commit(self.options.group, offsets, member=self.identity)

    def conclude(self, operation: Operation, offsets: Mapping[str, int], error: str | None) -> None:
        """Notes how the commit went. What failed is due again after the next poll: a rebalance refuses a
        commit, and a partition that the member keeps may not get another record."""
        if error is None:
            operation.ok()
        elif error in REFUSED:
            operation.fail(error=error)
        else:
            operation.info(error=error)
        if error and error not in FENCED and self.options.commit == "each":
            kept = {name: offset for name, offset in offsets.items() if name in self.owned}
            self.offsets = kept | self.offsets


# --- confluent-kafka -----------------------------------------------------------------------


def run_confluent(member: Member) -> None:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    options = member.options
    settings: dict[str, Any] = {
        "bootstrap.servers": options.bootstrap,
        "group.id": options.group,
        "client.id": options.name,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "isolation.level": "read_committed" if options.committed else "read_uncommitted",
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
    }
    if options.instance:
        settings["group.instance.id"] = options.instance
    if options.settings.get("group.protocol") != "consumer":
        settings = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 300} | settings
    consumer = Consumer(settings | options.settings)

    def names(partitions: list[TopicPartition]) -> list[str]:
        return [f"{partition.topic}-{partition.partition}" for partition in partitions]

    consumer.subscribe(
        options.topics,
        on_assign=lambda _, partitions: member.assigned(names(partitions)),
        on_revoke=lambda _, partitions: member.revoked(names(partitions)),
        on_lost=lambda _, partitions: member.lost(names(partitions)),
    )
    while member.running:
        messages = [message for message in consumer.consume(500, timeout=0.1) if message.error() is None]
        member.polled(
            (f"{message.topic()}-{message.partition()}", message.offset() or 0, message.value() or b"")
            for message in messages
        )
        offsets = member.due()
        if offsets:
            wanted = [TopicPartition(*_split(name), offset) for name, offset in offsets.items()]
            operation, error = member.committing(offsets), None
            try:
                done = consumer.commit(offsets=wanted, asynchronous=False) or []
                error = next((partition.error.name() for partition in done if partition.error), None)
            except KafkaException as raised:
                error = raised.args[0].name()
            member.conclude(operation, offsets, error)
    consumer.close()


# --- kafka-python --------------------------------------------------------------------------


def run_kafka_python(member: Member) -> None:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.errors import KafkaConnectionError, KafkaError

    from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }
    options = member.options
    settings = {"session_timeout_ms": 3000, **options.settings}
    if "assignor" in settings:
        settings["partition_assignment_strategy"] = (assignors[settings.pop("assignor")],)
    consumer = KafkaConsumer(
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=options.name,
        group_instance_id=options.instance,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
        fetch_max_wait_ms=100,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=200,
        isolation_level="read_committed" if options.committed else "read_uncommitted",
        **settings,
    )

    def names(partitions: Iterable[Any]) -> list[str]:
        return [f"{partition.topic}-{partition.partition}" for partition in partitions]

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            member.assigned(names(assigned), consumer.group_metadata().generation_id)

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            member.revoked(names(revoked))

        def on_partitions_lost(self, lost: Iterable[Any]) -> None:
            member.lost(names(lost))

    consumer.subscribe(options.topics, listener=Listener())
    while member.running:
        try:
            records = consumer.poll(timeout_ms=100)
        except KafkaConnectionError:
            # Its way to say that a broker which is just starting has hung up on it; it looks again.
            continue
        member.polled(
            (f"{record.topic}-{record.partition}", record.offset, record.value)
            for some in records.values()
            for record in some
        )
        offsets = member.due()
        if offsets:
            wanted = {
                TopicPartition(*_split(name)): OffsetAndMetadata(offset, "", -1)
                for name, offset in offsets.items()
            }
            operation, error = member.committing(offsets), None
            try:
                consumer.commit(wanted, timeout_ms=10_000)
            except KafkaError as raised:
                error = _kafka_python_name(raised)
            member.conclude(operation, offsets, error)
    consumer.close(autocommit=False)


def _kafka_python_name(error: Exception) -> str:
    names = {
        # Its own name for any of ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID and REBALANCE_IN_PROGRESS.
        "CommitFailedError": "UNKNOWN_MEMBER_ID",
        "IllegalGenerationError": "ILLEGAL_GENERATION",
        "RebalanceInProgressError": "REBALANCE_IN_PROGRESS",
        "UnknownMemberIdError": "UNKNOWN_MEMBER_ID",
        "FencedInstanceIdError": "FENCED_INSTANCE_ID",
    }
    return names.get(type(error).__name__, type(error).__name__)


# --- aiokafka ------------------------------------------------------------------------------


async def run_aiokafka(member: Member) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.errors import KafkaError

    assignors = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
    options = member.options
    settings = {"session_timeout_ms": 3000, **options.settings}
    if "assignor" in settings:
        settings["partition_assignment_strategy"] = (assignors[settings.pop("assignor")],)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=options.name,
        group_instance_id=options.instance,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
        fetch_max_wait_ms=100,
        isolation_level="read_committed" if options.committed else "read_uncommitted",
        **settings,
    )

    def names(partitions: Iterable[Any]) -> list[str]:
        return [f"{partition.topic}-{partition.partition}" for partition in partitions]

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            member.revoked(names(revoked))

        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            member.assigned(names(assigned), consumer._coordinator.generation)

    consumer.subscribe(options.topics, listener=Listener())
    await consumer.start()
    while member.running:
        records = await consumer.getmany(timeout_ms=100)
        member.polled(
            (f"{record.topic}-{record.partition}", record.offset, record.value)
            for some in records.values()
            for record in some
        )
        offsets = member.due()
        if offsets:
            wanted = {TopicPartition(*_split(name)): offset for name, offset in offsets.items()}
            operation, error = member.committing(offsets), None
            try:
                await consumer.commit(wanted)
            except KafkaError as raised:
                error = _kafka_python_name(raised)
            member.conclude(operation, offsets, error)
    # aiokafka gives up its partitions without telling the listener.
    member.revoked(names(consumer.assignment()))
    await consumer.stop()


def _split(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def main() -> None:
    options = Options(**json.loads(sys.argv[1]))
    with Path(options.history).open("w") as file:
        member = Member(options, Recorder(options.name, file))
        match options.client:
            case "confluent":
                run_confluent(member)
            case "kafka-python":
                run_kafka_python(member)
            case "aiokafka":
                asyncio.run(run_aiokafka(member))
            case other:
                raise SystemExit(f"no such client: {other}")


if __name__ == "__main__":
    main()
