"""Requests as Ottla's own codec writes them, for the setup of a measure and for frames laid out once."""

from __future__ import annotations

import struct
import time
from typing import Any

from bench.brokers import Subject, cost_of
from bench.requests import per_request
from bench.wire import Connection
from bench.workload import Figure, Site
from ottla.protocol import apis, codec, headers
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest

DEPTH = 50
PATIENCE_SECONDS = 60.0
GROUP, TRANSACTION = 0, 1


def frame(request: Any, version: int) -> bytes:
    body = headers.request_head(request.api_key, version, 1, "bench") + codec.encode(request, version)
    return struct.pack(">i", len(body)) + body


def answer(request: Any, version: int, body: bytes) -> Any:
    """The response to a request, from the bytes after its correlation id."""
    flexible = request.flexible is not None and version in request.flexible
    return codec.decode(apis.api(request.api_key).response, version, body, 1 if flexible else 0)


def ask(connection: Connection, request: Any, version: int) -> Any:
    return answer(request, version, connection.ask(frame(request, version)))


def find_coordinator(subject: Subject, key: str, key_type: int = GROUP) -> None:
    """Apache Kafka makes the topic of the coordinator at the first question and is ready at a later one."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with Connection(subject.address) as connection:
        while ask(connection, FindCoordinatorRequest(key=key, key_type=key_type), 3).error_code:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no coordinator for {key}")
            time.sleep(0.05)


def pipelined(site: Site, name: str, connection: Connection, frames: list[bytes], count: int) -> list[Figure]:
    """What one of these requests costs, and how many are answered, `DEPTH` of them on their way at a time."""
    turns = [b"".join(frames[start : start + DEPTH]) for start in range(0, len(frames), DEPTH)]
    rounds = site.work(count / DEPTH, at_least=2)

    def work(rounds: int) -> None:
        for number in range(rounds):
            connection.pipeline(turns[number % len(turns)], DEPTH)

    work(rounds // 2)
    return per_request(name, cost_of(site.subject, lambda: work(rounds)), rounds * DEPTH)
