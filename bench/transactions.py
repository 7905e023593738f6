"""Transactions of one record in one partition each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from confluent_kafka import Producer as Librdkafka

from bench.brokers import Cost, Subject, cost_of
from bench.messages import PATIENCE_SECONDS, TRANSACTION, answer, ask, find_coordinator, frame
from bench.throughput import QUIET
from bench.wire import Connection, create_topic
from bench.workload import Family, Figure, Selection, Site, Workload
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TRANSACTIONAL = 0x10
CONCURRENT_TRANSACTIONS = 51


def workloads() -> Iterator[Workload]:
    yield Workload(
        Family.TRANSACTIONS, "transactions of librdkafka", librdkafka, Selection.DEFAULT, synced=True
    )
    for producers in (1, 20):
        yield Workload(
            Family.TRANSACTIONS,
            f"transactions of {producers}",
            partial(transactions, producers=producers, count=300 if producers == 1 else 1_000),
            Selection.SMOKE if producers > 1 else Selection.DEFAULT,
            synced=True,
        )


def librdkafka(site: Site) -> list[Figure]:
    """One producer of transaction version 1, which asks three times for each."""
    subject, count = site.subject, site.work(200)
    create_topic(subject.address, "transactional")
    producer = Librdkafka(
        {
            "bootstrap.servers": subject.bootstrap,
            "log_level": QUIET,
            "transactional.id": "bench",
            "linger.ms": 0,
        }
    )
    producer.init_transactions(PATIENCE_SECONDS)

    def work(count: int) -> None:
        for _ in range(count):
            producer.begin_transaction()
            producer.produce("transactional", b"value")
            producer.commit_transaction(PATIENCE_SECONDS)

    work(count // 4)
    return per_transaction("transactions of librdkafka", cost_of(subject, lambda: work(count)), count)


def transactions(site: Site, producers: int, count: int) -> list[Figure]:
    """Producers of transaction version 2, as Java's clients are: Produce and EndTxn. Each has a partition."""
    subject = site.subject
    topic = f"transactions-{producers}"
    create_topic(subject.address, topic, producers)
    rounds = site.work(count / producers)
    with ExitStack() as stack:
        connections = [stack.enter_context(Connection(subject.address)) for _ in range(producers)]
        crew = [Producer(subject, connection, topic, number) for number, connection in enumerate(connections)]

        def work(rounds: int) -> None:
            for _ in range(rounds):
                one_of_each(crew)

        work(max(1, rounds // 4))
        cost = cost_of(subject, lambda: work(rounds))
    return per_transaction(
        f"transactions of {producers} producer{'s' * (producers > 1)}", cost, rounds * producers
    )


def per_transaction(name: str, cost: Cost, count: int) -> list[Figure]:
    return [
        Figure(name, "1/s", count / cost.seconds, higher_is_better=True),
        Figure(f"{name}: broker CPU", "s/100k", cost.cpu_seconds / count * 1e5),
    ]


def one_of_each(crew: list[Producer]) -> None:
    """One transaction of every producer, all at the same time."""
    waiting = crew
    while waiting:
        # The transaction before may still be being ended, which clients meet by asking again.
        for producer in waiting:
            producer.produce()
        waiting = [producer for producer in waiting if not producer.produced()]
    for producer in crew:
        producer.end()
    for producer in crew:
        producer.ended()


class Producer:
    def __init__(self, subject: Subject, connection: Connection, topic: str, partition: int) -> None:
        self.connection, self.topic, self.partition = connection, topic, partition
        self.transactional_id = f"{topic}-{partition}"
        find_coordinator(subject, self.transactional_id, TRANSACTION)
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=60_000)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := ask(connection, request, 4)).error_code:
            if time.monotonic() > deadline:
                raise RuntimeError(f"InitProducerId is answered with error {found.error_code}")
            time.sleep(0.02)
        self.id, self.epoch = found.producer_id, found.producer_epoch
        self._asked: Any = None

    def produce(self) -> None:
        now = round(time.time() * 1000)
        records = write_batch(
            [Record(0, now, None, b"value", [])],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=0,
            attributes=TRANSACTIONAL,
        )
        data = PartitionProduceData(index=self.partition, records=records)
        self._ask(
            ProduceRequest(
                transactional_id=self.transactional_id,
                acks=-1,
                timeout_ms=30_000,
                topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
            ),
            12,
        )

    def produced(self) -> bool:
        error = self._answer(12).responses[0].partition_responses[0].error_code
        if error not in (0, CONCURRENT_TRANSACTIONS):
            raise RuntimeError(f"Produce is answered with error {error}")
        return bool(error == 0)

    def end(self) -> None:
        self._ask(
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.id,
                producer_epoch=self.epoch,
                committed=True,
            ),
            5,
        )

    def ended(self) -> None:
        found = self._answer(5)
        if found.error_code:
            raise RuntimeError(f"EndTxn is answered with error {found.error_code}")
        self.id, self.epoch = found.producer_id, found.producer_epoch

    def _ask(self, request: Any, version: int) -> None:
        self._asked = request
        self.connection.socket.sendall(frame(request, version))

    def _answer(self, version: int) -> Any:
        return answer(self._asked, version, self.connection.receive())
