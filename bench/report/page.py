"""The table on the page: docs/benchmarks.md, between two markers, with the plots in docs/images/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.brokers import KAFKA_NAME, Setup
from bench.report.plots import write_plots
from bench.report.table import verdict
from bench.report.words import busy, disturbance, floor_cell, is_better, measured, ratio, times_floor
from bench.results import Results, Row

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
# Of a table's columns so many are words, and so many are always there.
WORDS, ALWAYS = 3, 6


def write_page(results: Results, page: Path, images: Path) -> None:
    """Replaces what is between the markers; what is around them is written by hand."""
    text = page.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no markers {BEGIN} and {END}")
    plots = write_plots(results, images)
    relative = {family: path.relative_to(page.parent) for family, path in plots.items()}
    page.write_text(before + BEGIN + "\n" + "\n".join(lines(results, relative)) + "\n" + END + after)


def lines(results: Results, plots: dict[str, Path]) -> Iterator[str]:
    yield f"Run of {results.when}, {results.rounds} rounds: {machine(results)}."
    yield ""
    if (warning := disturbance(results)) is not None:
        yield f"**{warning}**"
        yield ""
    if results.has_kafka():
        yield verdict(results)
        yield ""
        yield from behind(results)
    else:
        yield "Apache Kafka was not there; these are Ottla's figures alone."
        yield ""
    for family, rows in results.families():
        yield f"### {family.value}"
        yield ""
        yield from table(rows)
        yield ""
        yield f"![{family.value}]({plots[family.value]})"
        yield ""
    if results.notes:
        yield "Not in the tables:"
        yield ""
        yield from (f"- {note}" for note in results.notes)
        yield ""


def machine(results: Results) -> str:
    facts = dict(results.machine)
    words = [
        f"{facts.pop('cores', '?')} cores",
        f"{facts.pop('memory', '?')} of memory",
        f"a load of {facts.pop('load at the start', '?')} at the start",
        facts.pop("system", "?"),
    ]
    return ", ".join([*words, *(f"{name} {value}" for name, value in facts.items())])


def behind(results: Results) -> Iterator[str]:
    """Where Ottla loses, said first."""
    lost = [
        (comparison.ratio, row, comparison)
        for row in results.rows
        for comparison in row.comparisons()
        if comparison.ratio is not None and is_better(comparison) is False
    ]
    if not lost:
        return
    yield "Where Ottla is behind:"
    yield ""
    for times, row, comparison in sorted(lost, key=lambda each: each[0]):
        ours, theirs = measured(comparison.ottla), measured(comparison.kafka)
        what = f"{row.name} ({comparison.durability.value})"
        yield f"- {what}: {ours} {row.unit} against {theirs}, ratio {times:.2f}"
    yield ""


def table(rows: list[Row]) -> Iterator[str]:
    """A column that no row has anything for is left out."""
    heads = ["", "unit", "durability", "Ottla", KAFKA_NAME, "ratio", "x floor", "busy"]
    body = list(cells(rows))
    used = [n for n, head in enumerate(heads) if n < ALWAYS or any(each[n] for each in body)]
    yield line(heads[n] for n in used)
    yield line("---" if n < WORDS else "---:" for n in used)
    for each in body:
        yield line(each[n] for n in used)


def cells(rows: list[Row]) -> Iterator[list[str]]:
    for row in rows:
        if row.summary(Setup.KERNEL) is not None:
            yield [f"kernel alone: {row.name}", row.unit, "", floor_cell(row), "", "", "", ""]
            continue
        for comparison in row.comparisons():
            mark = {True: "**{}**", False: "{} ↓", None: "{}"}[is_better(comparison)]
            yield [
                row.name,
                row.unit,
                comparison.durability.value,
                measured(comparison.ottla),
                measured(comparison.kafka),
                mark.format(ratio(comparison)) if comparison.ratio is not None else "",
                times_floor(row, comparison),
                busy(row, rows, comparison),
            ]


def line(words: Iterable[str]) -> str:
    return f"| {' | '.join(words)} |"
