"""Connections that are open and do nothing."""

from __future__ import annotations

import resource

from bench.brokers import Subject
from bench.report import Figure
from bench.wire import API_VERSIONS, Connection, frame


def idle_connections(subject: Subject, count: int) -> list[Figure]:
    """Each has asked for ApiVersions once, as every client does."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(count, limit - 200)
    before = subject.resident_megabytes()
    request = frame(API_VERSIONS, 0, b"")
    connections: list[Connection] = []
    try:
        for _ in range(count):
            connection = Connection(subject.address)
            connection.ask(request)
            connections.append(connection)
        after = subject.resident_megabytes()
    finally:
        for connection in connections:
            connection.socket.close()
    return [
        Figure(f"memory with {count:,} idle connections", "MB", after),
        Figure("memory per idle connection", "KB", (after - before) / count * 1e3),
    ]
