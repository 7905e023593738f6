"""Figures, and the table they are printed in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Figure:
    name: str
    unit: str
    value: float
    higher_is_better: bool = False


Results = Mapping[str, Sequence[Figure]]


def print_table(results: Results) -> None:
    names = list(results)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("unit", style="dim")
    for name in names:
        table.add_column(name, justify="right")
    if len(names) == 2:
        table.add_column("", justify="right")
    for row in zip(*results.values(), strict=True):
        cells = [number(figure.value) for figure in row]
        if len(row) == 2:
            cells.append(comparison(row[0], row[1]))
        table.add_row(row[0].name, row[0].unit, *cells)
    Console(width=120).print(table)


def comparison(ours: Figure, theirs: Figure) -> str:
    """How many times better the first is."""
    if min(ours.value, theirs.value) <= 0:
        return ""
    times = ours.value / theirs.value if ours.higher_is_better else theirs.value / ours.value
    return f"[green]{times:.1f}x better[/]" if times >= 1 else f"[red]{1 / times:.1f}x worse[/]"


def number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def as_json(results: Results) -> str:
    return json.dumps(
        {
            name: [{"name": figure.name, "unit": figure.unit, "value": figure.value} for figure in figures]
            for name, figures in results.items()
        },
        indent=2,
    )
