"""A worker that consumes, transforms and produces, in a process of its own, so that it can be killed.

`python -m tests.interop.worker OPTIONS`, with options as JSON (`tests.interop.crew` starts it). Every batch
it polls is one transaction: the results, and the offsets of what they were made from. Each try gives its
results names of their own (`source#try`), so that a reader can tell which of them it sees. SIGTERM ends it.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from ottla.testing.history import Operation, Recorder
from tests.interop.member import REFUSED
from tests.interop.transactional import split

SECONDS = 30.0


@dataclass
class Options:
    bootstrap: str
    group: str
    topics: list[str]
    name: str
    history: str
    output: str
    transactional_id: str
    settings: dict[str, Any] = field(default_factory=dict)


FAST = {
    # After a new bootstrap librdkafka 2.16 waits in vain for the group coordinator it knew before.
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
}


class Worker:
    def __init__(self, options: Options, recorder: Recorder) -> None:
        self.options, self.recorder = options, recorder
        self.running = True
        self.tries = 0
        signal.signal(signal.SIGTERM, self._stop)
        self.producer = Producer(
            {
                "bootstrap.servers": options.bootstrap,
                "transactional.id": options.transactional_id,
                "transaction.timeout.ms": 30_000,
                "linger.ms": 2,
                **FAST,
            }
        )
        settings: dict[str, Any] = {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 50,
            **FAST,
        }
        if options.settings.get("group.protocol") != "consumer":
            settings |= {"session.timeout.ms": 3000, "heartbeat.interval.ms": 300}
        self.consumer = Consumer(settings | options.settings)

    def _stop(self, *_: object) -> None:
        self.running = False

    def run(self) -> None:
        insist(self.producer.init_transactions)
        group, note = self.options.group, self.recorder
        self.consumer.subscribe(
            self.options.topics,
            on_assign=lambda _, partitions: note.assigned(group, names(partitions)),
            on_revoke=lambda _, partitions: note.revoked(group, names(partitions)),
            on_lost=lambda _, partitions: note.lost(group, names(partitions)),
        )
        while self.running:
            messages = [found for found in self.consumer.consume(20, timeout=0.1) if found.error() is None]
            if not messages:
                continue
            note.polled([(*place(message), text(message)) for message in messages], committed=True)
            try:
                self.transaction(messages)
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise  # fenced: whoever has the transactional id now goes on
                self.give_up()
        self.consumer.close()

    def transaction(self, messages: list[Message]) -> None:
        self.tries += 1
        name = f"{self.options.name}.{self.tries}"
        self.producer.begin_transaction()
        for message in messages:
            partition = f"{self.options.output}-{message.offset() % 2}"  # type: ignore[operator]
            value = f"{text(message)}#{name}"
            self.send(partition, value, self.recorder.send(partition, value, name))
        self.send_offsets(messages, name)
        operation = self.recorder.end_transaction(name, commit=True)
        try:
            insist(self.producer.commit_transaction)
        except KafkaException as error:
            operation.info(error=error.args[0].name())
            raise
        operation.ok()

    def send(self, partition: str, value: str, operation: Operation) -> None:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                operation.ok(offset=message.offset())
            else:
                operation.info(error=error.name())

        topic, number = split(partition)
        self.producer.produce(topic, value, partition=number, on_delivery=report)

    def send_offsets(self, messages: list[Message], name: str) -> None:
        offsets: dict[str, int] = {}
        for message in messages:
            partition, offset = place(message)
            offsets[partition] = offset + 1
        operation = self.recorder.commit(self.options.group, offsets, transaction=name)
        wanted = [TopicPartition(*split(partition), offset) for partition, offset in offsets.items()]
        try:
            metadata = self.consumer.consumer_group_metadata()
            insist(lambda: self.producer.send_offsets_to_transaction(wanted, metadata, SECONDS))
        except KafkaException as error:
            code = error.args[0].name()
            if code in REFUSED:
                operation.fail(error=code)
            else:
                operation.info(error=code)
            raise
        operation.ok()

    def give_up(self) -> None:
        """Abort, and go back to what is committed."""
        operation = self.recorder.end_transaction(f"{self.options.name}.{self.tries}", commit=False)
        insist(self.producer.abort_transaction)
        operation.ok()
        assigned = self.consumer.assignment()
        for partition in self.consumer.committed(assigned, timeout=SECONDS) if assigned else []:
            partition.offset = max(partition.offset, 0)
            self.consumer.seek(partition)
            self.recorder.positioned({names([partition])[0]: partition.offset})


def insist(call: Callable[[], object]) -> None:
    """What may be tried again is tried again, for as long as the broker is away."""
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def names(partitions: list[TopicPartition]) -> list[str]:
    return sorted(f"{partition.topic}-{partition.partition}" for partition in partitions)


def place(message: Message) -> tuple[str, int]:
    return f"{message.topic()}-{message.partition()}", message.offset() or 0


def text(message: Message) -> str:
    return (message.value() or b"").decode()


def main() -> None:
    options = Options(**json.loads(sys.argv[1]))
    with Path(options.history).open("w") as file:
        Worker(options, Recorder(options.name, file)).run()


if __name__ == "__main__":
    main()
