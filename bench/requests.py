"""Small requests: what one costs the broker, how many it answers, and how soon."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from confluent_kafka import Producer

from bench.brokers import Cost, cost_of
from bench.percentiles import percentiles
from bench.wire import Connection, batch, create_topic, fetch_error, fetch_frame, produce_error, produce_frame
from bench.workload import Family, Figure, Selection, Site, Workload

DEPTH = 50  # requests on their way at a time, over each of two connections
SECONDS = 300.0


def workloads() -> Iterator[Workload]:
    yield Workload(Family.REQUESTS, "requests: produce", produce_requests, Selection.SMOKE)
    yield Workload(Family.REQUESTS, "requests: fetch", fetch_requests, Selection.SMOKE)
    yield Workload(Family.REQUESTS, "requests: librdkafka", one_record_per_request, Selection.QUICK)
    yield Workload(
        Family.LATENCY, "latency of acks=1", lambda site: acknowledgement(site, "1"), Selection.QUICK
    )
    yield Workload(
        Family.LATENCY,
        "latency of acks=all",
        lambda site: acknowledgement(site, "all"),
        Selection.SMOKE,
        synced=True,
    )


def produce_requests(site: Site) -> list[Figure]:
    """One record of 100 bytes per request."""
    subject = site.subject
    create_topic(subject.address, "small-produce", 2)
    with Connection(subject.address) as first, Connection(subject.address) as second:
        connections = (first, second)
        frames = [produce_frame("small-produce", batch(1, 100), partition=number) for number in (0, 1)]
        if error := produce_error(first.ask(frames[0]), "small-produce"):
            raise RuntimeError(f"produce answers error {error}")

        def work(rounds: int) -> None:
            for _ in range(rounds):
                for connection, request in zip(connections, frames, strict=True):
                    connection.socket.sendall(request * DEPTH)
                for connection in connections:
                    connection.skip_frames(DEPTH)

        return pipelined(site, "produce one record of 100 B", work, 60_000)


def fetch_requests(site: Site) -> list[Figure]:
    """One small batch per request: the newest, as a consumer that keeps up asks for, or any of 10,000."""
    subject = site.subject
    topic = f"small-fetch-{time.monotonic_ns()}"
    create_topic(subject.address, topic)
    with Connection(subject.address) as connection:
        request = produce_frame(topic, batch(1, 100))
        for _ in range(200):
            connection.pipeline(request * DEPTH, DEPTH)
        newest = [fetch_frame(topic, 10_000, partition_max_bytes=1_000_000)] * (2 * DEPTH)
        anywhere = [
            fetch_frame(topic, number * 7919 % 10_000, partition_max_bytes=100) for number in range(2 * DEPTH)
        ]
        figures = []
        for name, frames, count in (("the newest", newest, 30_000), ("any", anywhere, 15_000)):
            if error := fetch_error(connection.ask(frames[0]), topic):
                raise RuntimeError(f"fetch answers error {error}")

            def work(rounds: int, frames: bytes = b"".join(frames)) -> None:
                for _ in range(rounds):
                    connection.pipeline(frames, 2 * DEPTH)

            figures += pipelined(site, f"fetch {name} record of 100 B", work, count)
        return figures


def pipelined(site: Site, name: str, work: Callable[[int], None], count: int) -> list[Figure]:
    rounds = site.work(count / (2 * DEPTH), at_least=2)
    work(rounds // 2)  # the JVM compiles, Python specialises
    return per_request(name, cost_of(site.subject, lambda: work(rounds)), rounds * 2 * DEPTH)


def per_request(name: str, cost: Cost, count: int) -> list[Figure]:
    return [
        Figure(name, "1/s", count / cost.seconds, higher_is_better=True),
        Figure(f"{name}: broker CPU", "s/100k", cost.cpu_seconds / count * 1e5),
    ]


def one_record_per_request(site: Site) -> list[Figure]:
    subject, count = site.subject, site.work(50_000)
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

    def work(count: int) -> None:
        for _ in range(count):
            producer.produce("single", bytes(100))
        if left := producer.flush(SECONDS):
            raise RuntimeError(f"{left} messages were not delivered")

    work(count // 2)
    return per_request(
        "librdkafka, one record of 100 B per request", cost_of(subject, lambda: work(count)), count
    )


def acknowledgement(site: Site, acks: str) -> list[Figure]:
    """Time from a produce request to its answer, one at a time."""
    subject, count = site.subject, site.work(4_000, at_least=100)
    topic = f"acks-{acks}"
    create_topic(subject.address, topic)
    request = produce_frame(topic, batch(1, 100), acks=-1 if acks == "all" else 1)
    times = []
    with Connection(subject.address) as connection:
        for _ in range(count // 4):
            connection.ask(request)
        for _ in range(count):
            began = time.perf_counter()
            connection.ask(request)
            times.append(time.perf_counter() - began)
    return percentiles(f"acks={acks}, one at a time", times)
