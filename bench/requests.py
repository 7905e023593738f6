"""Small requests: what one costs the broker, how many it answers, and how soon."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

from bench.brokers import Subject, cost_of
from bench.report import Figure
from bench.wire import Connection, batch, create_topic, fetch_error, fetch_frame, produce_error, produce_frame

DEPTH = 50  # requests on their way at a time, over each of two connections


def produce_requests(subject: Subject, count: int) -> list[Figure]:
    """One record of 100 bytes per request."""
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

        return per_request(subject, "produce", work, count)


def fetch_requests(subject: Subject, count: int) -> list[Figure]:
    """One small batch per request: the newest, as a consumer that keeps up asks for, or any of 10,000."""
    create_topic(subject.address, "small-fetch")
    with Connection(subject.address) as connection:
        request = produce_frame("small-fetch", batch(1, 100))
        for _ in range(200):
            connection.pipeline(request * DEPTH, DEPTH)
        newest = fetch_frame("small-fetch", 10_000, partition_max_bytes=1_000_000) * (2 * DEPTH)
        anywhere = b"".join(
            fetch_frame("small-fetch", number * 7919 % 10_000, partition_max_bytes=100)
            for number in range(2 * DEPTH)
        )
        figures = []
        for name, frames, share in (("fetch newest", newest, 1), ("fetch any", anywhere, 4)):
            answer = connection.ask(frames[: len(frames) // (2 * DEPTH)])
            if error := fetch_error(answer, "small-fetch"):
                raise RuntimeError(f"fetch answers error {error}")

            def work(rounds: int, frames: bytes = frames) -> None:
                for _ in range(rounds):
                    connection.pipeline(frames, 2 * DEPTH)

            figures += per_request(subject, name, work, count // share)
        return figures


def per_request(subject: Subject, name: str, work: Callable[[int], None], count: int) -> list[Figure]:
    rounds = count // (2 * DEPTH)
    work(rounds // 2)  # the JVM compiles, Python specialises
    cost = cost_of(subject, lambda: work(rounds))
    requests = rounds * 2 * DEPTH
    return [
        Figure(f"{name}, 100 B: broker CPU per request", "us", cost.cpu_seconds / requests * 1e6),
        Figure(f"{name}, 100 B", "1/s", requests / cost.seconds, higher_is_better=True),
    ]


def acknowledgement(subject: Subject, count: int) -> list[Figure]:
    """Time from a produce request to its answer, one at a time."""
    figures = []
    for acks, word in ((1, "1"), (-1, "all")):
        topic = f"acks-{word}"
        create_topic(subject.address, topic)
        request = produce_frame(topic, batch(1, 100), acks=acks)
        with Connection(subject.address) as connection:
            for _ in range(count // 4):
                connection.ask(request)
            times = [timed(lambda: connection.ask(request)) for _ in range(count)]  # noqa: B023
        figures += percentiles(f"acks={word}", times)
    return figures


def end_to_end(subject: Subject, count: int) -> list[Figure]:
    """Time from sending a record to having it from a fetch that waited for it."""
    create_topic(subject.address, "end-to-end")
    sent: list[float] = []
    times: list[float] = []
    waiting = threading.Semaphore(0)
    arrived = threading.Semaphore(0)

    def consume() -> None:
        with Connection(subject.address) as connection:
            for number in range(count):
                waiting.release()
                request = fetch_frame(
                    "end-to-end", number + 1, partition_max_bytes=10_000, max_wait_ms=20_000
                )
                connection.ask(request)
                times.append(time.perf_counter() - sent[number])
                arrived.release()

    consumer = threading.Thread(target=consume)
    consumer.start()
    request = produce_frame("end-to-end", batch(1, 100))
    with Connection(subject.address) as connection:
        for _ in range(count):
            waiting.acquire()
            sent.append(time.perf_counter())
            connection.ask(request)
            arrived.acquire()
    consumer.join()
    return percentiles("end to end", times[count // 5 :])


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def percentiles(name: str, seconds: list[float]) -> list[Figure]:
    hundredths = statistics.quantiles(seconds, n=100)
    return [
        Figure(f"{name}: latency p50", "ms", hundredths[49] * 1e3),
        Figure(f"{name}: latency p99", "ms", hundredths[98] * 1e3),
    ]
