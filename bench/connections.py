"""Many connections: what they cost when they do nothing, and when each asks for something."""

from __future__ import annotations

import resource
from collections.abc import Iterator

from bench.brokers import Subject, cost_of
from bench.requests import per_request
from bench.wire import API_VERSIONS, Connection, batch, create_topic, frame, produce_frame
from bench.workload import Family, Figure, Selection, Site, Workload

COUNTS = (1_000, 10_000)
SPARE_FILES = 200
WAVE = 100  # connections that have a request on its way at a time


def workloads() -> Iterator[Workload]:
    yield Workload(Family.CONNECTIONS, "connections", many, Selection.SMOKE, alone=True, rounds=3)


def many(site: Site) -> list[Figure]:
    """Each has asked for ApiVersions once, as every client does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit = (hard if hard != resource.RLIM_INFINITY else soft) - SPARE_FILES
    connections: list[Connection] = []
    figures: list[Figure] = []
    with site.fresh() as server:
        server.start()
        subject = server.subject
        create_topic(subject.address, "connections")
        try:
            for count in COUNTS:
                figures += reach(subject, connections, min(site.sized(count), limit))
        finally:
            for connection in connections:
                connection.socket.close()
    return figures


def reach(subject: Subject, connections: list[Connection], count: int) -> list[Figure]:
    before, had = subject.resident_megabytes(), len(connections)
    request = frame(API_VERSIONS, 0, b"")

    def open_them() -> None:
        while len(connections) < count:
            connection = Connection(subject.address)
            connection.ask(request)
            connections.append(connection)

    opened = cost_of(subject, open_them)
    after = subject.resident_megabytes()
    work_over(connections, count)
    rounds = max(1, 20_000 // count)

    def ask_all() -> None:
        for _ in range(rounds):
            work_over(connections, count)

    asked = cost_of(subject, ask_all)
    words = f"{count:,} connections"
    return [
        Figure(f"open {words}", "1/s", (count - had) / opened.seconds, higher_is_better=True),
        Figure(f"memory with {words}", "MB", after),
        Figure(f"memory per connection, {words}", "KB", max(0.0, after - before) / (count - had) * 1e3),
        *per_request(f"produce one record each over {words}", asked, rounds * count),
    ]


def work_over(connections: list[Connection], count: int) -> None:
    """One produce request over each of the connections, a wave at a time."""
    request = produce_frame("connections", batch(1, 100))
    for start in range(0, count, WAVE):
        wave = connections[start : start + WAVE]
        for connection in wave:
            connection.socket.sendall(request)
        for connection in wave:
            connection.receive()
