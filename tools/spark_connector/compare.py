"""Runs every job with both formats on both brokers, and holds what came out against each other.

The measure is the connector on Apache Kafka, or where that is left out, the connector on Ottla.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from tools.broker_process import BrokerProcess
from tools.kafka.distribution import VERSION
from tools.kafka.node import KafkaNode
from tools.spark_connector.checkpoint_jobs import checkpoint_jobs
from tools.spark_connector.jobs import Job
from tools.spark_connector.place import CONNECTOR, OURS, SHOWN, Facts, Place, first_line
from tools.spark_connector.read_jobs import read_jobs
from tools.spark_connector.stream_jobs import stream_jobs
from tools.spark_connector.topics import Broker, fill
from tools.spark_connector.write_jobs import write_jobs

OTTLA, KAFKA = "Ottla", f"Apache Kafka {VERSION}"
SETTINGS = {
    "spark.driver.memory": "800m",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": 2,
    "spark.ui.enabled": False,
}

Side = tuple[str, str]
"""A broker and a format."""


@dataclass
class Result:
    job: Job
    facts: dict[Side, Facts] = field(default_factory=dict)

    @property
    def measure(self) -> Side:
        return next(side for side in ((KAFKA, CONNECTOR), (OTTLA, CONNECTOR)) if side in self.facts)

    def difference(self, side: Side) -> str | None:
        return difference(self.facts[self.measure], self.facts[side])

    @property
    def is_equal(self) -> bool:
        return not any(self.difference(side) for side in self.facts)

    @property
    def size(self) -> str:
        facts = self.facts[self.measure]
        if facts.get("refused"):
            return "refused"
        return f"{len(facts['rows']):,}" if "rows" in facts else "-"


def difference(wanted: Facts, found: Facts) -> str | None:
    """The first thing that is not the same."""
    if "failed" in wanted or "failed" in found:
        both = [("the measure", wanted), ("this", found)]
        return "; ".join(f"{who} failed: {facts['failed']}" for who, facts in both if "failed" in facts)
    for name in {**wanted, **found}:
        if name != SHOWN and wanted.get(name) != found.get(name):
            return f"{name}: {first_difference(wanted.get(name), found.get(name))}"
    return None


def first_difference(wanted: Any, found: Any) -> str:
    if isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            return f"{len(wanted)} wanted, {len(found)} found"
        at, (one, other) = next(
            (at, pair) for at, pair in enumerate(zip(wanted, found, strict=True)) if pair[0] != pair[1]
        )
        return f"number {at}: {first_difference(one, other)}"
    return f"{wanted!r} wanted, {found!r} found"[:600]


def all_jobs(count: int, words: Sequence[str]) -> list[Job]:
    jobs = [*read_jobs(count), *stream_jobs(count), *checkpoint_jobs(count), *write_jobs(count)]
    wanted = [word.lower() for word in words]
    return [
        job
        for job in jobs
        if not wanted or any(word in f"{job.family}: {job.name}".lower() for word in wanted)
    ]


def compare(
    spark: SparkSession, jobs: Sequence[Job], count: int, brokers: Sequence[str], console: Console
) -> list[Result]:
    results = [Result(job) for job in jobs]
    for name in brokers:
        with ExitStack() as stack:
            server: BrokerProcess | KafkaNode = BrokerProcess() if name == OTTLA else KafkaNode()
            stack.enter_context(server)
            directory = Path(tempfile.mkdtemp(prefix="ottla-connector-"))
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            broker = Broker(name, server.bootstrap)
            fill(broker, count)
            places = {each: Place(spark, broker, each, directory / each) for each in (CONNECTOR, OURS)}
            for result in results:
                for format, place in places.items():
                    began = time.monotonic()
                    result.facts[name, format] = carried_out(result.job, place)
                    seconds = time.monotonic() - began
                    facts = result.facts[name, format]
                    told = facts.get("failed") or facts.get(SHOWN) or "done"
                    console.print(
                        f"{name}, {format}: {result.job.family}: {result.job.name}: {told}, {seconds:.1f} s",
                        highlight=False,
                        markup=False,
                        style="dim",
                    )
    return results


def carried_out(job: Job, place: Place) -> Facts:
    try:
        return job.run(place)
    except Exception as error:
        return {"failed": first_line(error)}


def report(results: Sequence[Result], version: str, spark: str, console: Console) -> int:
    """Print the table; 0 if everything is equal."""
    sides = list(results[0].facts) if results else []
    measure = results[0].measure if results else (KAFKA, CONNECTOR)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("job")
    table.add_column("rows", justify="right")
    for broker, format in sides:
        table.add_column(f'format("{format}")\n{broker}')
    family = None
    for result in results:
        if result.job.family != family:
            family = result.job.family
            table.add_row(f"[bold]{family}[/]")
        cells = [cell(result, side) for side in sides]
        table.add_row(result.job.name, result.size, *cells)
    console.print(table)
    console.print(
        f"\nSpark {spark}, connector {version}. Equal means: the same schema, rows, batches and offsets as "
        f'format("{measure[1]}") on {measure[0]}.',
        highlight=False,
    )
    different = [result for result in results if not result.is_equal]
    for result in different:
        for side in sides:
            if told := result.difference(side):
                console.print(
                    f"{result.job.family}: {result.job.name}: {side[1]} on {side[0]}: {told}", markup=False
                )
    console.print(f"{len(results) - len(different)} of {len(results)} jobs are equal.")
    return 1 if different else 0


def cell(result: Result, side: Side) -> str:
    if side == result.measure:
        return "[red]failed[/]" if "failed" in result.facts[side] else "[dim]the measure[/]"
    return "[green]equal[/]" if result.difference(side) is None else "[red]different[/]"
