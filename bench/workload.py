"""What is measured: a workload, where it runs, and the figures that come of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any

from bench.brokers import Server, Servers, Setup, Subject


@dataclass(frozen=True)
class Figure:
    """One measured value. `floor` names the kernel's cost of the same bytes, where there is such a thing."""

    name: str
    unit: str
    value: float
    higher_is_better: bool = False
    floor: str | None = None


class NotRun(Exception):
    """Something that this workload needs is not on this machine."""


class Selection(IntEnum):
    """How much of everything: each one contains those before it."""

    SMOKE = 0
    QUICK = 1
    DEFAULT = 2
    ALL = 3


class Family(Enum):
    """Rows that belong together: a section of the table and a plot."""

    BOOT = "Start and rest"
    THROUGHPUT = "Throughput"
    LARGE = "Large batches and the kernel floor"
    REQUESTS = "Small requests"
    LATENCY = "Latency"
    CONNECTIONS = "Connections"
    PARTITIONS = "Partitions"
    GROUPS = "Groups"
    TRANSACTIONS = "Transactions"
    RECOVERY = "Recovery"
    GROWTH = "Growth"


@dataclass
class Site:
    """Where a workload runs: one setup, and how much is to be done there.

    `effort` is a part of the work that gives steady figures. `size` is a part of what a row is named after:
    it is below 1 only in a run that shows no more than that everything works.
    """

    setup: Setup
    servers: Servers
    effort: float = 1.0
    size: float = 1.0
    prepared: Any = None

    @property
    def subject(self) -> Subject:
        """A broker that other workloads use as well, warm and running."""
        return self.servers.running(self.setup)

    def fresh(self) -> Server:
        """A broker with an empty directory, not started yet. Whoever asks removes it."""
        return self.servers.fresh(self.setup)

    def work(self, amount: float, at_least: int = 1) -> int:
        return max(at_least, round(amount * self.effort))

    def sized(self, amount: float, at_least: int = 1) -> int:
        return max(at_least, round(amount * self.size))


@dataclass(frozen=True)
class Workload:
    """`measure` is called once a round for every setup.

    `synced`: what it costs depends on durability, so it is measured with fsync on and off.
    `alone`: it starts brokers of its own, and no other runs beside them.
    `prepare`: called once before the rounds, with all sites; what it returns is `Site.prepared`.
    """

    family: Family
    name: str
    measure: Callable[[Site], Sequence[Figure]]
    selection: Selection = Selection.DEFAULT
    synced: bool = False
    alone: bool = False
    rounds: int | None = None
    prepare: Callable[[Sequence[Site]], Any] | None = None
    setups: Sequence[Setup] = field(default=())
