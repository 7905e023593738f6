"""How long a group is on its way: members that start at once, one that joins, and one that leaves.

The clients are librdkafka's with their own heartbeats, which is when they hear that there is something to do.
So much of the time is theirs, and the same against both brokers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial

from confluent_kafka import Consumer, TopicPartition

from bench.messages import PATIENCE_SECONDS, find_coordinator
from bench.wire import create_topic
from bench.workload import Family, Figure, Selection, Site, Workload

MEMBERS = 20
PARTITIONS_EACH = 3


def workloads() -> Iterator[Workload]:
    for protocol in ("classic", "consumer"):
        yield Workload(
            Family.GROUPS,
            f"groups: rebalances, {protocol} protocol",
            partial(rebalances, protocol=protocol),
            Selection.QUICK,
        )


def rebalances(site: Site, protocol: str) -> list[Figure]:
    subject, count = site.subject, site.sized(MEMBERS, at_least=3)
    partitions = count * PARTITIONS_EACH
    topic = f"joined-{protocol}-{time.monotonic_ns()}"
    create_topic(subject.address, topic, partitions)
    find_coordinator(subject, topic)
    settings = {
        "bootstrap.servers": subject.bootstrap,
        "group.id": topic,
        "group.protocol": protocol,
        "enable.auto.commit": False,
    }
    members = [Member(settings, topic) for _ in range(count + 1)]
    *first, late = members
    try:
        began = time.perf_counter()
        for member in first:
            member.start()
        started = settle(first, partitions, began)
        began = time.perf_counter()
        late.start()
        joined = settle(members, partitions, began)
        began = time.perf_counter()
        late.leave()
        left = settle(first, partitions, began)
    finally:
        for member in members:
            member.leave()
        for member in members:
            member.join()
    words = f"{protocol} protocol"
    return [
        Figure(f"{count} members start at once and settle, {words}", "s", started),
        Figure(f"one more joins {count}, {words}", "s", joined),
        Figure(f"one of {count + 1} leaves, {words}", "s", left),
    ]


def settle(members: list[Member], partitions: int, began: float) -> float:
    """Seconds until all partitions are shared out evenly."""
    while True:
        owned = [member.owned for member in members]
        if sum(owned) == partitions and max(owned) - min(owned) <= 1 and min(owned) > 0:
            return time.perf_counter() - began
        if time.perf_counter() - began > PATIENCE_SECONDS:
            raise RuntimeError(f"{len(members)} members did not settle in {PATIENCE_SECONDS:.0f} s: {owned}")
        time.sleep(0.005)


class Member(threading.Thread):
    """A consumer with the thread that polls it.

    What it owns is told by callbacks: asking from another thread than the one that polls can hang librdkafka.
    """

    def __init__(self, settings: dict[str, object], topic: str) -> None:
        super().__init__(daemon=True)
        self.owned = 0
        self._consumer = Consumer(settings)
        self._topic = topic
        self._leaving = threading.Event()
        self._was_started = False

    def start(self) -> None:
        self._was_started = True
        super().start()

    def run(self) -> None:
        def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
            self.owned += len(partitions)

        def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
            self.owned -= len(partitions)

        self._consumer.subscribe([self._topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
        while not self._leaving.is_set():
            self._consumer.poll(0.02)
        self._consumer.close()

    def leave(self) -> None:
        self._leaving.set()

    def join(self, timeout: float | None = None) -> None:
        if self._was_started:
            super().join(timeout)
