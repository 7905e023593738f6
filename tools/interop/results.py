"""What cells came to, kept between runs so that one client can be run again alone."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict, dataclass, field

from tools.interop.toolchains import HOME
from tools.kafka.distribution import write_whole

FILE = HOME / "results.json"

# How a cell reads. Apache Kafka is the referee: what it does not pass either is no fault of Ottla's.
OK, FAILED, REFEREE_FAILED, BOTH_FAILED, CANNOT, NOT_RUN = (
    "ok",
    "failed",
    "only ottla",
    "both",
    "-",
    "not run",
)


@dataclass
class Cell:
    outcome: str
    ottla: list[str] = field(default_factory=list)
    kafka: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    reason: str = ""
    refereed: bool = True


@dataclass
class Row:
    version: str
    language: str
    date: str = ""
    cells: dict[str, Cell] = field(default_factory=dict)


Results = dict[str, Row]


def outcome(ottla: list[str], kafka: list[str]) -> str:
    if ottla:
        return BOTH_FAILED if kafka else FAILED
    return REFEREE_FAILED if kafka else OK


def load() -> Results:
    if not FILE.exists():
        return {}
    rows = json.loads(FILE.read_text())
    return {
        name: Row(
            row["version"],
            row["language"],
            row["date"],
            {feature: Cell(**cell) for feature, cell in row["cells"].items()},
        )
        for name, row in rows.items()
    }


def save(results: Results) -> None:
    write_whole(FILE, json.dumps({name: asdict(row) for name, row in results.items()}, indent=1) + "\n")


def today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
