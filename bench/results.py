"""What was measured: samples by round, their median and spread, and how the two brokers compare."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from bench.brokers import Setup
from bench.workload import Family, Figure, Workload


class Durability(Enum):
    """Which setups are held against each other. Ottla is shipped with fsync on, Kafka with fsync off."""

    SHIPPED = "as shipped"
    OFF = "fsync off"
    ON = "fsync on"


PAIRS = {
    Durability.SHIPPED: (Setup.OTTLA, Setup.KAFKA),
    Durability.OFF: (Setup.OTTLA_UNSYNCED, Setup.KAFKA),
    Durability.ON: (Setup.OTTLA, Setup.KAFKA_SYNCED),
}


class Summary(NamedTuple):
    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half of the range of all rounds, as a part of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0


class Comparison(NamedTuple):
    durability: Durability
    ottla: Summary | None
    kafka: Summary | None
    ratio: float | None  # how many times better Ottla is; below one it is worse


@dataclass
class Row:
    family: str
    workload: str
    name: str
    unit: str
    higher_is_better: bool = False
    floor: str | None = None
    samples: dict[str, list[float]] = field(default_factory=dict)
    # What the kernel alone took in the same rounds, by the floor's name.
    floors: dict[str, list[float]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.family, self.name, self.unit

    def summary(self, setup: Setup) -> Summary | None:
        values = self.samples.get(setup.value)
        return Summary(statistics.median(values), min(values), max(values)) if values else None

    @property
    def is_synced(self) -> bool:
        """Whether it matters to this row that acknowledged writes are synced."""
        return any(setup.value in self.samples for setup in (Setup.OTTLA_UNSYNCED, Setup.KAFKA_SYNCED))

    def comparisons(self) -> Iterator[Comparison]:
        synced = self.is_synced
        for durability, (ours, theirs) in PAIRS.items():
            if not synced and durability is not Durability.SHIPPED:
                continue
            ottla, kafka = self.summary(ours), self.summary(theirs)
            if durability is Durability.ON and kafka is None:
                continue  # Ottla alone: as shipped says the same
            if ottla is not None or kafka is not None:
                yield Comparison(durability, ottla, kafka, self._ratio(ottla, kafka))

    def _ratio(self, ottla: Summary | None, kafka: Summary | None) -> float | None:
        if ottla is None or kafka is None or min(ottla.median, kafka.median) <= 0:
            return None
        times = ottla.median / kafka.median
        return times if self.higher_is_better else 1 / times


@dataclass
class Results:
    """A run, as it is kept in a file."""

    when: str = ""
    rounds: int = 0
    selection: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, workload: Workload, setup: Setup, figures: Iterable[Figure]) -> None:
        known = {row.key: row for row in self.rows}
        for figure in figures:
            key = workload.family.value, figure.name, figure.unit
            row = known.get(key)
            if row is None:
                row = Row(
                    workload.family.value,
                    workload.name,
                    figure.name,
                    figure.unit,
                    figure.higher_is_better,
                    figure.floor,
                )
                known[key] = row
                self.rows.append(row)
            row.samples.setdefault(setup.value, []).append(figure.value)

    def add_floor(self, workload: Workload, name: str, seconds_per_gigabyte: float, *, of: str) -> None:
        """The kernel's cost for the rows of this workload that have the floor `of`."""
        for row in self.rows:
            if row.workload == workload.name and row.floor == of:
                row.floors.setdefault(name, []).append(seconds_per_gigabyte)

    def families(self) -> Iterator[tuple[Family, list[Row]]]:
        for family in Family:
            if rows := [row for row in self.rows if row.family == family.value]:
                yield family, rows

    def has_kafka(self) -> bool:
        return any(Setup.KAFKA.value in row.samples for row in self.rows)

    def keep(self, before: Results) -> None:
        """Take over what an earlier run measured and this one did not."""
        workloads = {row.workload for row in self.rows}
        others = [row for row in before.rows if row.workload not in workloads]
        if len(others) > len(self.rows):  # what is said of the machine is about most of the rows
            self.when, self.machine = before.when, before.machine
        self.rows += others
        self.notes += [note for note in before.notes if note not in self.notes]

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def read(path: Path) -> Results:
    data: dict[str, Any] = json.loads(path.read_text())
    rows = [Row(**row) for row in data.pop("rows")]
    return Results(**data, rows=rows)
