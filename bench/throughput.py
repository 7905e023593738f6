"""Bulk: records through librdkafka, and large batches from a client that costs nothing."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from bench.brokers import Cost, Subject, cost_of
from bench.report import Figure
from bench.wire import Connection, batch, create_topic, fetch_frame, produce_frame

SECONDS = 300.0
PARTITIONS = 4


def librdkafka(subject: Subject, size: int, megabytes: int) -> list[Figure]:
    """In and out again; the client runs on the same machine and takes its share of the cores."""
    count = megabytes * 1_000_000 // size
    topic = f"bulk-{size}"
    create_topic(subject.address, topic, PARTITIONS)
    produce(subject, topic, size, count // 5)
    inward = cost_of(subject, lambda: produce(subject, topic, size, count))
    outward = cost_of(subject, lambda: consume(subject, topic, count))
    return [
        *bulk(f"produce {size} B records", inward, count, size),
        *bulk(f"consume {size} B records", outward, count, size),
    ]


def produce(subject: Subject, topic: str, size: int, count: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": subject.bootstrap,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "acks": 1,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    step = 10_000
    messages = [{"value": bytes(size)} for _ in range(step)]
    for number in range(count // step):
        while True:
            taken = producer.produce_batch(topic, messages, partition=number % PARTITIONS)
            if taken == step:
                break
            # A full queue takes none or some of them; what is counted is at least what is asked for.
            producer.poll(0.01)
    left = producer.flush(SECONDS)
    if left:
        raise RuntimeError(f"{left} messages were not delivered")


def consume(subject: Subject, topic: str, count: int) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": subject.bootstrap,
        "group.id": "not-used",
        "enable.auto.commit": False,
        "check.crcs": False,
        "fetch.message.max.bytes": 4_000_000,
        # Or the client sleeps for a second whenever it has 100,000 messages at hand.
        "queued.min.messages": 1_000_000,
        "queued.max.messages.kbytes": 500_000,
        "fetch.queue.backoff.ms": 1,
    }
    consumer = Consumer(settings)
    deadline = time.monotonic() + SECONDS
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        found = 0
        while found < count:
            found += len(consumer.consume(50_000, timeout=0.2))
            if time.monotonic() > deadline:
                raise RuntimeError(f"only {found} of {count} messages came")
    finally:
        consumer.close()


def one_record_per_request(subject: Subject, count: int) -> list[Figure]:
    create_topic(subject.address, "single")
    producer = Producer(
        {
            "bootstrap.servers": subject.bootstrap,
            "linger.ms": 0,
            "batch.num.messages": 1,
            "acks": 1,
            "queue.buffering.max.messages": 1_000_000,
        }
    )

    def work() -> None:
        for _ in range(count):
            producer.produce("single", bytes(100))
        if left := producer.flush(SECONDS):
            raise RuntimeError(f"{left} messages were not delivered")

    work()
    cost = cost_of(subject, work)
    return [Figure("librdkafka, one record per request", "1/s", count / cost.seconds, higher_is_better=True)]


def large_batches(subject: Subject, size: int, megabytes: int) -> list[Figure]:
    """Batches just under a megabyte from a client that costs nothing, two on their way."""
    topic = f"large-{size}"
    create_topic(subject.address, topic)
    records = 900_000 // (size + 10)
    data = batch(records, size)
    request = produce_frame(topic, data)
    rounds = max(4, megabytes * 1_000_000 // len(data) // 2)
    with Connection(subject.address) as connection:

        def send(rounds: int) -> None:
            for _ in range(rounds):
                connection.pipeline(request * 2, 2)

        def receive(rounds: int) -> None:
            for number in range(rounds):
                # Offset 0 holds the record of create_topic().
                offsets = (1 + 2 * number * records, 1 + (2 * number + 1) * records)
                frames = [fetch_frame(topic, offset, partition_max_bytes=len(data)) for offset in offsets]
                connection.pipeline(b"".join(frames), 2)

        send(rounds // 4)
        inward = cost_of(subject, lambda: send(rounds))
        receive(rounds // 4)
        outward = cost_of(subject, lambda: receive(rounds))
    count = rounds * 2 * records
    return [
        *bulk(f"produce 0.9 MB batches of {size} B", inward, count, size),
        *bulk(f"fetch 0.9 MB batches of {size} B", outward, count, size),
    ]


def bulk(name: str, cost: Cost, count: int, size: int) -> list[Figure]:
    gigabytes = count * size / 1e9
    return [
        Figure(name, "1/s", count / cost.seconds, higher_is_better=True),
        Figure(name, "MB/s", gigabytes * 1e3 / cost.seconds, higher_is_better=True),
        Figure(f"{name}: broker CPU", "s/GB", cost.cpu_seconds / gigabytes),
    ]
