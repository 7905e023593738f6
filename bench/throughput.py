"""Bulk: records through librdkafka, and large batches from a client that costs nothing."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from bench.brokers import Cost, Subject, cost_of
from bench.wire import create_topic, delete_topic
from bench.workload import Family, Figure, Selection, Site, Workload

SECONDS = 300.0
RECEIVE, RECEIVE_SYNCED, SEND = "receive and append", "receive, append and sync", "sendfile"
RECEIVE_SLOWLY = "receive and append, from a slow client"
QUIET = 3  # librdkafka tells of coordinators that are not there yet, which is no news


class Case(NamedTuple):
    """One point of the matrix. Idempotent producers have acks=all."""

    size: int = 1_000
    partitions: int = 12
    codec: str = "none"
    acks: str = "1"
    idempotent: bool = False

    def __str__(self) -> str:
        size = f"{self.size // 1000} KB" if self.size >= 1000 else f"{self.size} B"
        partitions = f"{self.partitions} partition{'s' * (self.partitions > 1)}"
        codec = "" if self.codec == "none" else f", {self.codec}"
        return f"{size}, {partitions}{codec}"

    @property
    def guarantee(self) -> str:
        return "idempotent" if self.idempotent else f"acks={self.acks}"

    @property
    def megabytes(self) -> int:
        """Enough for a second or so."""
        return {100: 60, 1_000: 250, 10_000: 400}[self.size] // (1 if self.codec == "none" else 2)


def cases() -> Iterator[Case]:
    guarantees = (("1", False), ("all", False), ("all", True))
    for size, partitions, codec, (acks, idempotent) in itertools.product(
        (100, 1_000, 10_000), (12, 1), ("none", "lz4", "zstd"), guarantees
    ):
        yield Case(size, partitions, codec, acks, idempotent)


def selection_of(case: Case) -> Selection:
    """An ordinary run changes one thing at a time; a full one has every combination."""
    plain = Case()
    if case == plain:
        return Selection.SMOKE
    if case in (Case(size=100), Case(acks="all")):
        return Selection.QUICK
    changed = sum(ours != theirs for ours, theirs in zip(case, plain, strict=True)) - case.idempotent
    return Selection.DEFAULT if changed == 1 else Selection.ALL


def workloads() -> Iterator[Workload]:
    for case in cases():
        yield Workload(
            Family.THROUGHPUT,
            f"throughput {case}, {case.guarantee}",
            partial(librdkafka, case=case),
            selection_of(case),
            synced=case.acks == "all",
        )


def librdkafka(site: Site, case: Case) -> list[Figure]:
    """In, and out again; the client runs on the same machine and takes its share of the cores."""
    subject = site.subject
    count = site.work(case.megabytes * 1_000_000 / case.size, at_least=1_000)
    topic = f"bulk-{'-'.join(map(str, case))}-{time.monotonic_ns()}"
    create_topic(subject.address, topic, case.partitions)
    produce(subject, topic, case, count // 4)
    inward = cost_of(subject, lambda: produce(subject, topic, case, count))
    plain = case.codec == "none"
    # With records as small as these the client takes all the time there is.
    floor = (RECEIVE_SLOWLY if case.size == 100 else RECEIVE) if plain else None
    figures = bulk(f"produce {case}, {case.guarantee}", inward, count, case.size, floor)
    if case.acks == "1":
        # However they were acknowledged, they are read the same.
        outward = cost_of(subject, lambda: consume(subject, topic, case.partitions, count))
        figures += bulk(f"consume {case}", outward, count, case.size, SEND if plain else None)
    delete_topic(subject.address, topic)
    return figures


def payloads(size: int, count: int) -> list[bytes]:
    """Words out of a small vocabulary, which compress to about a half."""
    chance = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(3, 10))) for _ in range(3_000)]
    text = " ".join(chance.choices(words, k=max(2_000, size // 2))).encode()
    starts = [chance.randrange(len(text) - size) for _ in range(count)]
    return [text[start : start + size] for start in starts]


def produce(subject: Subject, topic: str, case: Case, count: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": subject.bootstrap,
            "log_level": QUIET,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "acks": case.acks,
            "enable.idempotence": case.idempotent,
            "compression.type": case.codec,
            "queue.buffering.max.messages": 10_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    step = max(1, min(count, 1_000_000 // case.size))
    messages = [{"value": payload} for payload in payloads(case.size, step)]
    for number, start in enumerate(range(0, count, step)):
        part = messages[: count - start]
        if producer.produce_batch(topic, part, partition=number % case.partitions) != len(part):
            raise RuntimeError("librdkafka does not take what it has room for")
    if left := producer.flush(SECONDS):
        raise RuntimeError(f"{left} messages were not delivered")


def consume(subject: Subject, topic: str, partitions: int, count: int) -> None:
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
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        found = 0
        while found < count:
            found += len(consumer.consume(min(50_000, count - found), timeout=0.2))
            if time.monotonic() > deadline:
                raise RuntimeError(f"only {found} of {count} messages came")
    finally:
        consumer.close()


def bulk(name: str, cost: Cost, count: int, size: int, floor: str | None = None) -> list[Figure]:
    gigabytes = count * size / 1e9
    return [
        Figure(name, "MB/s", gigabytes * 1e3 / cost.seconds, higher_is_better=True),
        Figure(f"{name}: broker CPU", "s/GB", cost.cpu_seconds / gigabytes, floor=floor),
    ]
