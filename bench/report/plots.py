"""A picture for each family: one panel per unit, a bar for each broker, and a whisker over all rounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

from bench.brokers import KAFKA_NAME, Setup
from bench.results import Comparison, Durability, Results, Row, Summary
from bench.workload import Family

COLOURS = {"Ottla": "#2a6f97", KAFKA_NAME: "#c9a227", "kernel": "#8d99ae"}
BAR = 0.38


def write_plots(results: Results, folder: Path) -> dict[str, Path]:
    """The file of each family."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for family, rows in results.families():
        path = folder / f"bench-{re.sub(r'[^a-z]+', '-', family.value.lower())}.png"
        if family is Family.GROWTH:
            plot_growth(rows, path)
        else:
            plot_bars(family, rows, path)
        written[family.value] = path
    return written


Bar = tuple[str, dict[str, Summary]]


def bars_of(row: Row) -> list[Bar]:
    if (kernel := row.summary(Setup.KERNEL)) is not None:
        return [(f"kernel alone: {row.name}", {"kernel": kernel})]
    return [
        (label(row, comparison), sides)
        for comparison in row.comparisons()
        if (sides := {name: side for name, side in named(comparison) if side is not None})
    ]


def named(comparison: Comparison) -> list[tuple[str, Summary | None]]:
    return [("Ottla", comparison.ottla), (KAFKA_NAME, comparison.kafka)]


def label(row: Row, comparison: Comparison) -> str:
    words = "" if comparison.durability is Durability.SHIPPED else f" ({comparison.durability.value})"
    return row.name + words


def plot_bars(family: Family, rows: Sequence[Row], path: Path) -> None:
    panels: dict[str, list[Bar]] = {}
    for row in rows:
        panels.setdefault(row.unit, []).extend(bars_of(row))
    heights = [len(bars) + 1.2 for bars in panels.values()]
    figure, all_axes = pyplot.subplots(
        len(panels),
        1,
        figsize=(11, 0.36 * sum(heights) + 0.8),
        gridspec_kw={"height_ratios": heights},
        squeeze=False,
        layout="constrained",
    )
    for axes, (unit, bars) in zip(all_axes[:, 0], panels.items(), strict=True):
        plot_panel(axes, unit, bars)
    handles, labels = all_axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2, frameon=False)
    figure.suptitle(family.value, x=0.01, ha="left")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def plot_panel(axes: Axes, unit: str, bars: Sequence[Bar]) -> None:
    names = list(dict.fromkeys(name for _, sides in bars for name in sides))
    for index, name in enumerate(names):
        at, values, whiskers = [], [], ([], [])  # type: ignore[var-annotated]
        for place, (_, sides) in enumerate(bars):
            if (side := sides.get(name)) is not None:
                at.append(place + (index - (len(names) - 1) / 2) * BAR)
                values.append(side.median)
                whiskers[0].append(side.median - side.low)
                whiskers[1].append(side.high - side.median)
        axes.barh(at, values, BAR, xerr=whiskers, label=name, color=COLOURS[name], error_kw={"lw": 0.8})
    axes.set_yticks(range(len(bars)), [text for text, _ in bars], fontsize=8)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlabel(unit, fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    largest = [max(side.median for side in sides.values()) for _, sides in bars]
    # Rows a hundred times apart would be invisible beside each other.
    if min(largest) > 0 and max(largest) / min(largest) > 30:
        axes.set_xscale("log")


def plot_growth(rows: Sequence[Row], path: Path) -> None:
    """A panel for each thing that grows: the broker's CPU for the same work."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.unit != "x":
            title = re.sub(r"[\d,]+ (?=connections|partitions)", "", row.name)
            title = re.sub(r"[\d,]+ MB", "a growing log", title)
            groups.setdefault(title, []).append(row)
    figure, all_axes = pyplot.subplots(
        1, len(groups), figsize=(4 * len(groups), 3.6), squeeze=False, layout="constrained"
    )
    for axes, (title, members) in zip(all_axes[0], groups.items(), strict=True):
        for name, setup in (("Ottla", Setup.OTTLA), (KAFKA_NAME, Setup.KAFKA)):
            found = [row.summary(setup) for row in members]
            values = [each.median for each in found if each is not None]
            if values:
                axes.plot(range(len(values)), values, marker="o", label=name, color=COLOURS[name])
        axes.set_xticks(range(len(members)), [f"{10**step}x" for step in range(len(members))])
        axes.set_ylim(bottom=0)
        axes.set_title(title.removesuffix(": broker CPU"), fontsize=9)
        axes.set_ylabel("broker CPU s per 100k requests", fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    all_axes[0, 0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
