"""`python -m bench.spark`: rows/s and batch times of format("ottla") beside Spark's own Kafka connector.

Both run the same jobs in the same session against the same broker, in turns, so their ratio means something
even where figures do not. There are two ceilings: the same job on ready-made Arrow batches, or with a sink
that drops them, which is all that Spark lets Python have; and on a Parquet file, read without Python.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.machine import description
from bench.report.words import measured
from bench.results import Summary
from bench.spark_jobs import CONNECTOR, OTTLA, PARQUET, Bench, Job, jobs
from bench.spark_ready import READY
from tools.broker_process import BrokerProcess
from tools.kafka.node import KafkaNode
from tools.spark_connector.jars import ConnectorUnavailable, jars, version_of

PROJECT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
SETTINGS = {"spark.driver.memory": "2g", "spark.log.level": "OFF", "spark.ui.enabled": False}


@dataclass
class Row:
    name: str
    unit: str
    samples: dict[str, list[float]] = field(default_factory=dict)

    @property
    def higher_is_better(self) -> bool:
        return self.unit != "ms"

    def summary(self, source: str) -> Summary | None:
        values = self.samples.get(source)
        return Summary(statistics.median(values), min(values), max(values)) if values else None

    def ratio(self, other: str) -> float | None:
        """How many times better ottla is; the median over rounds, each of which compares neighbours."""
        pairs = zip(self.samples.get(OTTLA, ()), self.samples.get(other, ()), strict=False)
        times = [ours / theirs if self.higher_is_better else theirs / ours for ours, theirs in pairs]
        return statistics.median(times) if times else None


@dataclass
class Run:
    when: str
    rounds: int
    rows: int
    broker: str
    connector: str | None
    machine: dict[str, str]
    table: list[Row] = field(default_factory=list)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    if options.list:
        for job in chosen(options):
            print(job.name)
        return 0
    console = Console(width=max(120, Console().width))
    run = load(options.json) if options.show else measure(options, Console(stderr=True))
    show(run, console)
    if options.docs:
        write_page(run, PROJECT / "docs" / "spark.md")
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of a job (default: 2,000,000)")
    parser.add_argument("--batches", type=int, default=40, help="batches of a latency row (default: 40)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="jobs with this word")
    parser.add_argument("--kafka", action="store_true", help="on Apache Kafka instead of on Ottla")
    parser.add_argument("--no-connector", action="store_true", help="ottla and the ceiling alone")
    parser.add_argument(
        "--json", type=Path, default=PROJECT / "build" / "bench" / "spark.json", metavar="FILE"
    )
    parser.add_argument("--show", action="store_true", help="measure nothing, show what is in FILE")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/spark.md")
    parser.add_argument("--list", action="store_true", help="what would be run")
    return parser.parse_args(arguments)


def chosen(options: argparse.Namespace) -> list[Job]:
    return [job for job in jobs() if not options.only or any(word in job.name for word in options.only)]


def measure(options: argparse.Namespace, aside: Console) -> Run:
    from ottla.spark.session import session

    found: list[Path] = []
    if not options.no_connector:
        try:
            found = jars()
        except ConnectorUnavailable as error:
            aside.print(f"without the connector: {error}", markup=False)
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="ottla-bench-spark-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        # As where the package is installed: compiled once, and not by each of Spark's processes.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(directory / "bytecode")
        server: BrokerProcess | KafkaNode = KafkaNode() if options.kafka else BrokerProcess()
        stack.enter_context(server)
        where = {"spark.jars": ",".join(map(str, found))} if found else {}
        spark = session("bench", master=None, **SETTINGS, **where)
        stack.callback(spark.stop)
        run = Run(
            when=time.strftime("%Y-%m-%d"),
            rounds=options.rounds,
            rows=options.rows,
            broker="Apache Kafka" if options.kafka else "Ottla",
            connector=version_of(found) if found else None,
            machine={**description(), "Spark": spark.version},
        )
        # Kept after every row, as a whole run takes long.
        options.json.parent.mkdir(parents=True, exist_ok=True)
        bench = Bench(spark, server.bootstrap, directory, options.rows, options.batches)
        bench.fill()
        for job in chosen(options):
            run.table.append(row := Row(job.name, job.unit))
            for source, value in in_turns(job, bench, with_connector=bool(found), rounds=options.rounds):
                row.samples.setdefault(source, []).append(value)
            told = (f"{source} {measured(row.summary(source))}" for source in row.samples)
            line = f"{row.name}, {row.unit}: {', '.join(told)}"
            aside.print(line, highlight=False, style="dim", soft_wrap=True)
            options.json.write_text(json.dumps(asdict(run), indent=1) + "\n")
        return run


def in_turns(job: Job, bench: Bench, *, with_connector: bool, rounds: int) -> Iterator[tuple[str, float]]:
    """Each source in each round, in an order that changes; a round before the first warms up."""
    sources = [source for source in job.sources if with_connector or source != CONNECTOR]
    for number in range(-1, rounds):
        for source in sources if number % 2 else reversed(sources):
            value = job.run(bench, source)
            if number >= 0:
                yield source, value


def load(path: Path) -> Run:
    data = json.loads(path.read_text())
    return Run(**{**data, "table": [Row(**row) for row in data["table"]]})


# --- what it looks like ------------------------------------------------------------------------


def cells(row: Row) -> list[str]:
    found = [row.name, row.unit, measured(row.summary(OTTLA))]
    for other in (CONNECTOR, READY, PARQUET):
        ratio = row.ratio(other)
        found += [measured(row.summary(other)), f"{ratio:.2f}"] if ratio is not None else ["", ""]
    return found


def heads(run: Run) -> list[str]:
    connector = f"connector {run.connector or '(not here)'}"
    return ["", "unit", "ottla", connector, "ratio", "ready", "ratio", "Parquet", "ratio"]


def about(run: Run) -> str:
    facts = dict(run.machine)
    return (
        f"Run of {run.when}: Spark {facts['Spark']} on {facts['cores']} cores with a load of "
        f"{facts['load at the start']} at the start, broker {run.broker}, {run.rows:,} rows with values of "
        f"100 bytes in {Bench.partitions} partitions, median of {run.rounds} rounds. "
        "A ratio above 1: ottla is better."
    )


def show(run: Run, console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, head in enumerate(heads(run)):
        table.add_column(head, justify="left" if number < 2 else "right")
    for row in run.table:
        table.add_row(*cells(row))
    console.print(table)
    console.print(about(run), highlight=False)


def write_page(run: Run, page: Path) -> None:
    """Replaces what is between the markers; what is around them is written by hand."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no markers {BEGIN} and {END}")
    lines = [
        about(run),
        "",
        f"| {' | '.join(heads(run))} |",
        f"|---|---|{'---:|' * (len(heads(run)) - 2)}",
        *(f"| {' | '.join(cells(row))} |" for row in run.table),
    ]
    page.write_text(f"{before}{BEGIN}\n{chr(10).join(lines)}\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
