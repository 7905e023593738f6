"""The brokers under test, each started on an empty directory of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from tools.broker_process import BrokerProcess
from tools.kafka.distribution import VERSION
from tools.kafka.node import KafkaNode


@dataclass(frozen=True)
class Subject:
    """A running broker."""

    name: str
    bootstrap: str
    process: psutil.Process
    boot_seconds: float

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.bootstrap.split(":")
        return host, int(port)

    def cpu_seconds(self) -> float:
        """User and system time of the broker so far, all threads."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def resident_megabytes(self) -> float:
        return float(self.process.memory_info().rss / 1e6)


@contextmanager
def ottla(settings: Sequence[str] = ()) -> Iterator[Subject]:
    broker = BrokerProcess(settings=settings)
    try:
        broker.start()
        broker.stop()
        # The second start is the usual one: the directory is there, the bytecode is compiled.
        seconds = broker.start()
        yield Subject("Ottla", broker.bootstrap, psutil.Process(broker.pid), seconds)
        broker.stop()
    finally:
        broker.kill()
        broker.remove()


@contextmanager
def apache_kafka() -> Iterator[Subject]:
    node = KafkaNode(heap="1g")
    try:
        node.start()
        node.stop()
        began = time.monotonic()
        node.start()
        seconds = time.monotonic() - began
        yield Subject(f"Apache Kafka {VERSION}", node.bootstrap, psutil.Process(node.pid), seconds)
    finally:
        node.kill()
        node.remove()


@dataclass(frozen=True)
class Cost:
    """What a piece of work took: seconds on the clock, and of the broker's CPU."""

    seconds: float
    cpu_seconds: float


def cost_of(subject: Subject, work: Callable[[], object]) -> Cost:
    cpu, began = subject.cpu_seconds(), time.perf_counter()
    work()
    return Cost(time.perf_counter() - began, subject.cpu_seconds() - cpu)
