"""Transactional producers of three client libraries behind one face, and readers of both isolation levels."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata
from kafka import TopicPartition as PythonPartition
from ottla.testing.history import Operation, Recorder
from tests.interop.topics import eventually

SECONDS = 30.0


class Client(Protocol):
    """One producer with a transactional id. What goes wrong is raised, each library in its own way."""

    def begin(self) -> None: ...
    def send(self, partition: str, value: str, operation: Operation) -> None: ...
    def flush(self) -> None: ...
    def send_offsets(self, group: str, offsets: Mapping[str, int]) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class Transactional:
    """A producer that notes its transactions: `begin`, `send`, ..., `commit` or `abort`."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self.client, self.recorder = client, recorder
        self._count = 0

    @property
    def name(self) -> str:
        """Of the transaction at hand."""
        return f"{self.recorder.process}/{self._count}"

    def begin(self) -> None:
        self._count += 1
        self.client.begin()

    def send(self, partition: str, value: str) -> None:
        self.client.send(partition, value, self.recorder.send(partition, value, self.name))

    def send_offsets(self, group: str, offsets: Mapping[str, int]) -> None:
        operation = self.recorder.commit(group, offsets, transaction=self.name)
        self.client.send_offsets(group, offsets)
        operation.ok()

    def commit(self) -> None:
        self.client.flush()
        operation = self.recorder.end_transaction(self.name, commit=True)
        self.client.commit()
        operation.ok()

    def abort(self) -> None:
        self.client.flush()
        operation = self.recorder.end_transaction(self.name, commit=False)
        self.client.abort()
        operation.ok()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()


def split(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


class Confluent:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 30_000) -> None:
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 2,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
            }
        )
        self.producer.init_transactions(SECONDS)

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, partition: str, value: str, operation: Operation) -> None:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                operation.ok(offset=message.offset())
            else:
                operation.info(error=error.name())

        topic, number = split(partition)
        self.producer.produce(topic, value, partition=number, on_delivery=report)

    def flush(self) -> None:
        self.producer.flush(SECONDS)

    def send_offsets(self, group: str, offsets: Mapping[str, int]) -> None:
        settings = {"bootstrap.servers": self._bootstrap(), "group.id": group}
        consumer = Consumer(settings)
        wanted = [TopicPartition(*split(name), offset) for name, offset in offsets.items()]
        self.producer.send_offsets_to_transaction(wanted, consumer.consumer_group_metadata(), SECONDS)
        consumer.close()

    def _bootstrap(self) -> str:
        broker = next(iter(self.producer.list_topics(timeout=SECONDS).brokers.values()))
        return f"{broker.host}:{broker.port}"

    def commit(self) -> None:
        self.producer.commit_transaction(SECONDS)

    def abort(self) -> None:
        self.producer.abort_transaction(SECONDS)

    def close(self) -> None:
        self.producer.purge()


class KafkaPython:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 30_000) -> None:
        self.producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=2,
        )
        self.producer.init_transactions()
        self._futures: list[tuple[Any, Operation]] = []

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, partition: str, value: str, operation: Operation) -> None:
        topic, number = split(partition)
        self._futures.append((self.producer.send(topic, value.encode(), partition=number), operation))

    def flush(self) -> None:
        self.producer.flush(timeout=SECONDS)
        futures, self._futures = self._futures, []
        for future, operation in futures:
            operation.ok(offset=future.get(timeout=SECONDS).offset)

    def send_offsets(self, group: str, offsets: Mapping[str, int]) -> None:
        wanted = {
            PythonPartition(*split(name)): OffsetAndMetadata(at, "", -1) for name, at in offsets.items()
        }
        self.producer.send_offsets_to_transaction(wanted, group)

    def commit(self) -> None:
        self.producer.commit_transaction()

    def abort(self) -> None:
        self.producer.abort_transaction()

    def close(self) -> None:
        self.producer.close(timeout=1)


class AioKafka:
    """Its loop runs in a thread of its own, as it would in a program that has one."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 30_000) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._sends: list[tuple[Any, Operation]] = []

        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )
            await producer.start()
            return producer

        self.producer = self._run(start())

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    def begin(self) -> None:
        self._run(self.producer.begin_transaction())

    def send(self, partition: str, value: str, operation: Operation) -> None:
        topic, number = split(partition)
        future = self._run(self.producer.send(topic, value.encode(), partition=number))
        self._sends.append((future, operation))

    def flush(self) -> None:
        sends, self._sends = self._sends, []

        async def wait(future: Any) -> Any:
            return await future

        for future, operation in sends:
            operation.ok(offset=self._run(wait(future)).offset)

    def send_offsets(self, group: str, offsets: Mapping[str, int]) -> None:
        wanted = {AioPartition(*split(name)): offset for name, offset in offsets.items()}
        self._run(self.producer.send_offsets_to_transaction(wanted, group))

    def commit(self) -> None:
        self._run(self.producer.commit_transaction())

    def abort(self) -> None:
        self._run(self.producer.abort_transaction())

    def close(self) -> None:
        try:
            self._run(self.producer.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


CLIENTS: dict[str, type[Confluent] | type[KafkaPython] | type[AioKafka]] = {
    "confluent": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
}


# --- reading -------------------------------------------------------------------------------


class Reader:
    """Polls partitions from their beginning, in a thread, and notes what it sees, until the block ends."""

    def __init__(self, bootstrap: str, partitions: Iterable[str], *, committed: bool, name: str) -> None:
        self.recorder = Recorder(name)
        self.values: list[str] = []
        self._partitions = list(partitions)
        self._committed = committed
        self._done = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "not-used",
                "enable.auto.commit": False,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 2,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        self.recorder.positioned(dict.fromkeys(self._partitions, 0))
        self._consumer.assign([TopicPartition(*split(name), OFFSET_BEGINNING) for name in self._partitions])
        while not self._done.is_set():
            messages = [
                found for found in self._consumer.consume(1000, timeout=0.05) if found.error() is None
            ]
            records = [
                (f"{found.topic()}-{found.partition()}", found.offset() or 0, (found.value() or b"").decode())
                for found in messages
            ]
            if records:
                self.recorder.polled(records, committed=self._committed)
                self.values += [value for _, _, value in records]

    def sees(self, values: Iterable[str]) -> None:
        """Waits until it has seen all of these."""
        wanted = set(values)
        try:
            eventually(lambda: wanted <= set(self.values))
        except AssertionError as error:
            missing = sorted(wanted - set(self.values))
            raise AssertionError(f"{self.recorder.process} does not see {missing[:10]}") from error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._consumer.close()


def drain(bootstrap: str, partitions: Iterable[str], *, committed: bool, name: str = "drain") -> Recorder:
    """Reads everything up to the end, which for read_committed is the last stable offset."""
    recorder = Recorder(name)
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        auto_offset_reset="earliest",
        isolation_level="read_committed" if committed else "read_uncommitted",
        fetch_max_wait_ms=50,
    )
    try:
        assigned = [PythonPartition(*split(name)) for name in partitions]
        consumer.assign(assigned)
        consumer.seek_to_beginning()
        recorder.positioned(dict.fromkeys(partitions, 0))
        ends = consumer.end_offsets(assigned)

        def is_done() -> bool:
            records = [
                (f"{found.topic}-{found.partition}", found.offset, found.value.decode())
                for some in consumer.poll(timeout_ms=50).values()
                for found in some
            ]
            recorder.polled(records, committed=committed)
            return all(consumer.position(partition) >= ends[partition] for partition in assigned)

        eventually(is_done)
    finally:
        consumer.close()
    return recorder


def seen(recorder: Recorder) -> set[str]:
    return {
        value
        for event in recorder.events
        if event.function == "poll"
        for _, _, value in event.values["records"]
    }
