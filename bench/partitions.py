"""Many partitions: how long it takes to make them, to start again with them, and what they weigh."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.brokers import cost_of
from bench.requests import per_request
from bench.wire import (
    Connection,
    batch,
    create_topic,
    create_topic_frame,
    produce_error,
    produce_frame,
)
from bench.workload import Family, Figure, Selection, Site, Workload

COUNT = 2_000
TOPICS = 20
PATIENCE_SECONDS = 120.0
WAVE = 100


def workloads() -> Iterator[Workload]:
    yield Workload(Family.PARTITIONS, "partitions", many, Selection.SMOKE, alone=True, rounds=3)


def many(site: Site) -> list[Figure]:
    """As topics of a hundred partitions each, all asked for at once."""
    count = site.sized(COUNT, at_least=2 * TOPICS)
    partitions = count // TOPICS
    topics = [f"topic-{number}" for number in range(TOPICS)]
    frames = [
        produce_frame(topic, batch(1, 100), partition=number)
        for topic in topics
        for number in range(partitions)
    ]
    words = f"{count:,} partitions"
    with site.fresh() as server:
        server.start()
        create_topic(server.subject.address, "first")
        before = server.subject.resident_megabytes()

        def create() -> None:
            with Connection(server.subject.address) as connection:
                for topic in topics:
                    connection.socket.sendall(create_topic_frame(topic, partitions))
                for _ in topics:
                    connection.receive()
                until_taken(connection, topics, partitions, frames)

        created = cost_of(server.subject, create)
        memory = server.subject.resident_megabytes()
        with Connection(server.subject.address) as connection:
            produced = cost_of(server.subject, lambda: produce_everywhere(connection, frames))
        began = time.monotonic()
        server.stop()
        stopped = time.monotonic() - began
        began = time.monotonic()
        server.start()
        with Connection(server.subject.address) as connection:
            until_taken(connection, topics, partitions, frames)
        started = time.monotonic() - began
        started_cpu = server.subject.cpu_seconds()
        after = server.subject.resident_megabytes()
    return [
        Figure(f"create {words}, until all take a record", "s", created.seconds),
        Figure(f"create {words}: broker CPU", "s", created.cpu_seconds),
        Figure(f"memory with {words}", "MB", memory),
        Figure("memory per partition", "KB", max(0.0, memory - before) / count * 1e3),
        *per_request(f"produce one record in each of {words}", produced, len(frames)),
        Figure(f"stop with {words}", "s", stopped),
        Figure(f"start with {words}, until all take a record", "s", started),
        Figure(f"start with {words}: broker CPU", "s", started_cpu),
        Figure(f"memory with {words}, after a restart", "MB", after),
    ]


def until_taken(connection: Connection, topics: list[str], partitions: int, frames: list[bytes]) -> None:
    """Returns when every partition has taken a record."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    left = [
        (topic, frames[at * partitions + n]) for at, topic in enumerate(topics) for n in range(partitions)
    ]
    while left:
        refused = []
        for start in range(0, len(left), WAVE):
            wave = left[start : start + WAVE]
            connection.socket.sendall(b"".join(request for _, request in wave))
            refused += [each for each in wave if produce_error(connection.receive(), each[0])]
        left = refused
        if left and time.monotonic() > deadline:
            raise RuntimeError(f"{len(left)} partitions take no records")
        if left:
            time.sleep(0.01)


def produce_everywhere(connection: Connection, frames: list[bytes]) -> None:
    for start in range(0, len(frames), WAVE):
        wave = frames[start : start + WAVE]
        connection.pipeline(b"".join(wave), len(wave))
