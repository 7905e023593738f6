"""Runs workloads in alternating rounds: first one broker, then the other, in the next round the other way."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence

from bench.brokers import Servers, Setup
from bench.floor import floor
from bench.machine import touch_memory
from bench.results import Results
from bench.throughput import RECEIVE, RECEIVE_SYNCED
from bench.workload import Family, Figure, NotRun, Site, Workload

Tell = Callable[[str], None]

EVERY = (Setup.OTTLA, Setup.KAFKA, Setup.OTTLA_UNSYNCED, Setup.KAFKA_SYNCED)
SHIPPED = (Setup.OTTLA, Setup.KAFKA)
# What fills the page cache, and more than its brokers and clients use in one round.
BULK = (Family.THROUGHPUT, Family.LARGE, Family.RECOVERY, Family.GROWTH)
BULK_MEGABYTES = 6_000


def setups_of(workload: Workload, with_kafka: bool) -> list[Setup]:
    """Who is measured; without Kafka, Ottla with both of its settings."""
    wanted = workload.setups or (EVERY if workload.synced else SHIPPED)
    return [setup for setup in wanted if with_kafka or setup.is_ottla or setup is Setup.KERNEL]


def rounds_of(workload: Workload, rounds: int) -> int:
    return min(rounds, workload.rounds or rounds)


def steps(workloads: Sequence[Workload], rounds: int, with_kafka: bool) -> int:
    """How many measurements that makes."""
    return sum(rounds_of(each, rounds) * len(setups_of(each, with_kafka)) for each in workloads)


class Runner:
    """`tell` is called before each measurement. A workload that fails is noted, and the others go on."""

    def __init__(
        self,
        results: Results,
        *,
        with_kafka: bool,
        effort: float,
        size: float,
        settings: Sequence[str],
        tell: Tell,
        on_step: Callable[[], None],
    ) -> None:
        self.results = results
        self.failures = 0
        self._with_kafka = with_kafka
        self._effort, self._size = effort, size
        self._tell = tell
        self._on_step = on_step
        self._servers = Servers(settings)

    def run(self, workloads: Sequence[Workload], rounds: int) -> None:
        try:
            for workload in workloads:
                if workload.alone:
                    self._servers.close()
                self._measure(workload, rounds_of(workload, rounds))
        finally:
            self._servers.close()

    def _measure(self, workload: Workload, rounds: int) -> None:
        setups = setups_of(workload, self._with_kafka)
        sites = [Site(setup, self._servers, self._effort, self._size) for setup in setups]
        left = list(sites)
        if workload.prepare is not None:
            self._tell(f"{workload.name}: preparing")
            try:
                prepared = workload.prepare(sites)
            except Exception as error:
                self._note(workload, None, error)
                left = []
            else:
                for site in sites:
                    site.prepared = prepared
        for number in range(rounds):
            if workload.family in BULK:
                touch_memory(round(BULK_MEGABYTES * self._effort))
            for site in sites if number % 2 == 0 else reversed(sites):
                if site in left:
                    self._tell(f"{workload.name}: {site.setup.value}, round {number + 1} of {rounds}")
                    try:
                        figures = workload.measure(site)
                        self.results.add(workload, site.setup, figures)
                        self._measure_floors(workload, site, figures)
                    except Exception as error:
                        self._note(workload, site.setup, error)
                        left.remove(site)
                        if isinstance(error, NotRun):
                            left.clear()
                self._on_step()

    def _measure_floors(self, workload: Workload, site: Site, figures: Sequence[Figure]) -> None:
        """What the kernel alone takes, right after a broker: the machine is not the same all the time."""
        names = dict.fromkeys(figure.floor for figure in figures if figure.floor is not None)
        if site.setup is Setup.OTTLA:
            measured = {name: name for name in names}
        elif site.setup is Setup.KAFKA_SYNCED:
            measured = {name: RECEIVE_SYNCED for name in names if name == RECEIVE}
        else:
            return
        for of, name in measured.items():
            cost = next(figure.value for figure in floor(site, name) if figure.unit == "s/GB")
            self.results.add_floor(workload, name, cost, of=of)

    def _note(self, workload: Workload, setup: Setup | None, error: Exception) -> None:
        if isinstance(error, NotRun):
            self.results.notes.append(f"{workload.name}: not run, {error}")
            return
        self.failures += 1
        where = f" ({setup.value})" if setup is not None else ""
        lines = str(error).strip().splitlines() or [""]
        self.results.notes.append(f"{workload.name}{where}: failed, {type(error).__name__}: {lines[0]}")
        print("".join(traceback.format_exception(error)), file=sys.stderr)
