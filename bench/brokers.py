"""The brokers under test: which they are, one of them as a process, and those that are running."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import psutil

from tools.broker_process import BrokerProcess, answers
from tools.kafka.distribution import VERSION
from tools.kafka.node import KafkaNode

START_SECONDS = 120.0
# Kafka's start script gives a server this much.
HEAP = "1g"
# Apache Kafka's default, which tests that use a node do without.
SHIPPED_DELAY = {"group.initial.rebalance.delay.ms": "3000"}


class Setup(Enum):
    """Who runs, and whether an acknowledged acks=all write is synced. The first of each is as shipped."""

    OTTLA = "ottla"
    OTTLA_UNSYNCED = "ottla, fsync off"
    KAFKA = "kafka"
    KAFKA_SYNCED = "kafka, fsync on"
    KERNEL = "kernel"

    @property
    def is_ottla(self) -> bool:
        return self in (Setup.OTTLA, Setup.OTTLA_UNSYNCED)

    @property
    def settings(self) -> dict[str, str]:
        """What is not as shipped."""
        return {
            Setup.OTTLA_UNSYNCED: {"ottla.durability": "kafka"},
            Setup.KAFKA: SHIPPED_DELAY,
            Setup.KAFKA_SYNCED: {**SHIPPED_DELAY, "log.flush.interval.messages": "1"},
        }.get(self, {})


@dataclass(frozen=True)
class Subject:
    """A running broker."""

    bootstrap: str
    process: psutil.Process

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.bootstrap.split(":")
        return host, int(port)

    def cpu_seconds(self) -> float:
        """User and system time of the broker so far, all threads."""
        with contextlib.suppress(OSError):
            # Linux has a clock for the CPU time of any process; psutil's comes in hundredths of seconds.
            return time.clock_gettime((~self.process.pid << 3) | 2)
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def resident_megabytes(self) -> float:
        return float(self.process.memory_info().rss / 1e6)


class Server:
    """A broker with a directory of its own, which can be stopped, killed and started again."""

    def __init__(self, setup: Setup, settings: Sequence[str] = ()) -> None:
        self.setup = setup
        assignments = {**setup.settings, **dict(setting.split("=", 1) for setting in settings)}
        self.node: BrokerProcess | KafkaNode = (
            BrokerProcess(settings=[f"{name}={value}" for name, value in assignments.items()])
            if setup.is_ottla
            else KafkaNode(properties=assignments, heap=HEAP)
        )

    def start(self) -> float:
        """Seconds from the start of the process to its first answer. A new directory of Kafka's is formatted
        before, which takes a process of its own: see `format`."""
        if isinstance(self.node, BrokerProcess):
            return self.node.start()
        self.format()
        began = time.monotonic()
        self.node.launch()
        while not answers(self.node.port):
            if time.monotonic() > began + START_SECONDS or not self.is_running():
                raise RuntimeError(f"Apache Kafka did not start:\n{self.node.log()[-3000:]}")
            time.sleep(0.005)
        seconds = time.monotonic() - began
        self.node.wait_until_started()
        return seconds

    def format(self) -> float:
        """Seconds to make the directory one that Apache Kafka starts on. Ottla does so itself."""
        if isinstance(self.node, BrokerProcess) or (self.node.data_dir / "meta.properties").exists():
            return 0.0
        began = time.monotonic()
        self.node.format()
        return time.monotonic() - began

    def is_running(self) -> bool:
        return self.node.process is not None and self.node.process.poll() is None

    @property
    def subject(self) -> Subject:
        return Subject(self.node.bootstrap, psutil.Process(self.node.pid))

    def stop(self) -> None:
        self.node.stop()

    def kill(self) -> None:
        self.node.kill()

    def remove(self) -> None:
        self.node.kill()
        self.node.remove()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Servers:
    """The brokers that are up, started when they are first asked for."""

    def __init__(self, settings: Sequence[str] = ()) -> None:
        self._settings = settings
        self._running: dict[Setup, Server] = {}

    def running(self, setup: Setup) -> Subject:
        server = self._running.get(setup)
        if server is None or not server.is_running():
            if server is not None:
                server.remove()
            server = self._running[setup] = self.fresh(setup)
            server.start()
        return server.subject

    def fresh(self, setup: Setup) -> Server:
        return Server(setup, self._settings if setup.is_ottla else ())

    def close(self) -> None:
        while self._running:
            _, server = self._running.popitem()
            try:
                server.stop()
            finally:
                server.remove()


@dataclass(frozen=True)
class Cost:
    """What a piece of work took: seconds on the clock, and of the broker's CPU."""

    seconds: float
    cpu_seconds: float


def cost_of(subject: Subject, work: Callable[[], object]) -> Cost:
    cpu, began = subject.cpu_seconds(), time.perf_counter()
    work()
    return Cost(time.perf_counter() - began, subject.cpu_seconds() - cpu)


KAFKA_NAME = f"Apache Kafka {VERSION}"
