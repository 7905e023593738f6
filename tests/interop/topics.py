"""Topics for tests: created and ready before the test goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from tests.interop.requests import list_offset
from tests.interop.wire import Wire

DEADLINE = 30.0


class Names(Protocol):
    def __call__(self, stem: str) -> str: ...


class NewTopic(Protocol):
    def __call__(self, stem: str = "topic", partitions: int = 1, **config: object) -> str: ...


def create_topic(
    bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
) -> None:
    """Returns when every partition is led, so that a test need not retry its first request.

    Metadata names a leader a moment before Apache Kafka's leader answers, so the leader itself is asked.
    """
    configs = [{"name": key.replace("_", "."), "value": str(value)} for key, value in (config or {}).items()]
    wanted = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": configs}
    with Wire(bootstrap) as wire:
        (answer,) = wire.ask("create_topics", 7, topics=[wanted], timeout=round(DEADLINE * 1000)).topics
        assert answer.error_code == 0, f"{name}: {answer.error_message}"
        for partition in range(partitions):
            eventually(lambda at=partition: list_offset(wire, name, -2, partition=at).error_code == 0)


def eventually(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    """Asks again and again until the answer is true, for as long as `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not true after {seconds:g} s"
        time.sleep(0.01)
