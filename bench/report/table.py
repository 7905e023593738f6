"""The table in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from bench.brokers import KAFKA_NAME, Setup
from bench.report.words import (
    FSYNC,
    busy,
    disturbance,
    floor_cell,
    is_better,
    measured,
    number,
    ratio,
    times_floor,
)
from bench.results import Results

COLOURS = {True: "[bold green]{} better[/]", False: "[red]{} worse[/]", None: "{}"}


def print_table(results: Results, console: Console) -> None:
    with_kafka = results.has_kafka()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "unit", "durability"):
        table.add_column(name, style="dim" if name else "")
    table.add_column("Ottla", justify="right")
    if with_kafka:
        table.add_column(KAFKA_NAME, justify="right")
        table.add_column("ratio", justify="right")
    table.add_column("x floor", justify="right")
    table.add_column("busy", justify="right")
    for family, rows in results.families():
        table.add_row(f"[bold]{family.value}[/]")
        for row in rows:
            if row.summary(Setup.KERNEL) is not None:
                table.add_row(f"kernel alone: {row.name}", row.unit, "", floor_cell(row))
                continue
            for comparison in row.comparisons():
                cells = [row.name, row.unit, comparison.durability.value, measured(comparison.ottla)]
                if with_kafka:
                    better = COLOURS[is_better(comparison)].format(ratio(comparison))
                    cells += [measured(comparison.kafka), better if comparison.ratio is not None else ""]
                table.add_row(*cells, times_floor(row, comparison), busy(row, rows, comparison))
    console.print(table)
    console.print()
    console.print(
        f"Median of {results.rounds} rounds, ± half of their range. Ratio above 1: Ottla is better."
    )
    console.print(
        "x floor: broker CPU over what the kernel alone takes for the same bytes (Ottla / Kafka). "
        "busy: how much of a core the broker took; with little, the client is what limits the rate."
    )
    console.print(FSYNC)
    if (warning := disturbance(results)) is not None:
        console.print(f"[yellow]{warning}[/]", highlight=False)
    for note in results.notes:
        console.print(f"[yellow]{note}[/]", highlight=False)
    if with_kafka:
        console.print(verdict(results))


def verdict(results: Results) -> str:
    found = [
        (comparison.ratio, is_better(comparison))
        for row in results.rows
        for comparison in row.comparisons()
        if comparison.ratio is not None
    ]
    ahead, behind, even = (sum(better is each for _, better in found) for each in (True, False, None))
    least = min((times for times, _ in found), default=1.0)
    return (
        f"Ottla is ahead in {ahead} of {len(found)} rows and behind in {behind}; in {even} rounds of the two "
        f"overlap. The least is {number(least)}x."
    )
