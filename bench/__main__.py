"""`python -m bench`: choose, measure, show, keep."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bench import results as kept
from bench.catalogue import catalogue, chosen
from bench.machine import description
from bench.report.page import write_page
from bench.report.plots import write_plots
from bench.report.table import print_table
from bench.results import Results
from bench.run import Runner, steps
from bench.workload import Selection, Workload
from tools.kafka.distribution import KafkaUnavailable, jars, java

PROJECT = Path(__file__).resolve().parents[1]
DIRTY_MEGABYTES = 1_000
# How much work gives steady figures, what is named in a row, and how many rounds there are.
EFFORTS = {
    Selection.SMOKE: (0.005, 0.01, 1),
    Selection.QUICK: (0.4, 1.0, 2),
    Selection.DEFAULT: (1.0, 1.0, 3),
    Selection.ALL: (1.0, 1.0, 5),
}


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    console, aside = Console(width=max(150, Console().width)), Console(stderr=True)
    workloads = chosen(catalogue(options.dirty), options.selection, options.only)
    if options.list:
        for workload in workloads:
            console.print(f"{workload.family.value}: {workload.name}", highlight=False)
        return 0
    failures = 0
    if options.show:
        results = kept.read(options.json)
    else:
        results, failures = measure(options, workloads, aside)
        if options.keep and options.json.exists():
            results.keep(kept.read(options.json))
        results.write(options.json)
    print_table(results, console)
    if options.docs:
        write_page(results, PROJECT / "docs" / "benchmarks.md", PROJECT / "docs" / "images")
        where = "docs/benchmarks.md, docs/images"
    else:
        write_plots(results, options.json.parent)
        where = str(options.json.parent)
    aside.print(f"figures in {options.json}, plots in {where}", highlight=False)
    return 1 if failures else 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Ottla beside Apache Kafka.")
    amount = parser.add_mutually_exclusive_group()
    for selection, words in (
        (Selection.SMOKE, "a few seconds, Ottla alone: shows that everything runs, measures nothing"),
        (Selection.QUICK, "a few minutes"),
        (Selection.ALL, "every combination, which takes hours"),
    ):
        amount.add_argument(
            f"--{selection.name.lower()}",
            dest="selection",
            action="store_const",
            const=selection,
            default=Selection.DEFAULT,
            help=words,
        )
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORD", help="workloads with this in their name"
    )
    parser.add_argument("--rounds", type=int, default=None, help="rounds of each workload")
    parser.add_argument("--no-kafka", action="store_true", help="measure Ottla alone")
    parser.add_argument(
        "--dirty",
        type=int,
        default=DIRTY_MEGABYTES,
        metavar="MB",
        help="data that a killed broker had not synced",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of Ottla's brokers"
    )
    parser.add_argument(
        "--json", type=Path, default=PROJECT / "build" / "bench" / "results.json", metavar="FILE"
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep what FILE has of workloads that are not run now"
    )
    parser.add_argument("--show", action="store_true", help="measure nothing, show what is in FILE")
    parser.add_argument("--docs", action="store_true", help="write the table and plots into docs/")
    parser.add_argument("--list", action="store_true", help="what would be run")
    return parser.parse_args(arguments)


def measure(
    options: argparse.Namespace, workloads: Sequence[Workload], aside: Console
) -> tuple[Results, int]:
    effort, size, rounds = EFFORTS[options.selection]
    rounds = options.rounds or rounds
    results = Results(
        when=time.strftime("%Y-%m-%d"),
        rounds=rounds,
        selection=options.selection.name.lower(),
        machine=description(),
    )
    with_kafka = options.selection > Selection.SMOKE and not options.no_kafka
    if with_kafka and (reason := why_not_kafka()) is not None:
        aside.print(
            f"[yellow]Apache Kafka is not here, so Ottla is measured alone: {reason}[/]", highlight=False
        )
        results.notes.append(f"Apache Kafka: not run, {reason}")
        with_kafka = False
    with progress_bar(aside) as bar:
        task = bar.add_task("", total=steps(workloads, rounds, with_kafka))

        def tell(words: str) -> None:
            bar.update(task, description=words)
            if not aside.is_terminal:
                aside.print(words, highlight=False)

        runner = Runner(
            results,
            with_kafka=with_kafka,
            effort=effort,
            size=size,
            settings=options.set,
            tell=tell,
            on_step=lambda: bar.advance(task),
        )
        try:
            runner.run(workloads, rounds)
        except KeyboardInterrupt:
            results.notes.append("The run was interrupted; what it had measured is here.")
    return results, runner.failures


def progress_bar(console: Console) -> Progress:
    return Progress(
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def why_not_kafka() -> str | None:
    try:
        java()
        jars()
    except KafkaUnavailable as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
