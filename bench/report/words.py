"""Figures as they are printed, the same in the terminal and on the page."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.brokers import Setup
from bench.results import PAIRS, Comparison, Durability, Results, Row, Summary
from bench.throughput import RECEIVE, RECEIVE_SYNCED

FSYNC = (
    "Durability: as shipped, Ottla syncs before it acknowledges acks=all and Apache Kafka does not. "
    "fsync off: Ottla with ottla.durability=kafka; fsync on: Apache Kafka with log.flush.interval.messages=1."
)
# How many of its units a rate row and the row of its CPU have in common, by the units of both.
WORK_UNITS = {("MB/s", "s/GB"): 1e3, ("1/s", "s/100k"): 1e5}


def disturbance(results: Results) -> str | None:
    """A machine that has other things to do is no place to measure."""
    load, cores = (results.machine.get(name) for name in ("load at the start", "cores"))
    if load is None or cores is None or float(load) < float(cores) / 2:
        return None
    return (
        f"The machine was busy with other things (a load of {load} on {cores} cores at the start): times and "
        "rates mean little here, and broker CPU is what to look at."
    )


def number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def measured(summary: Summary | None) -> str:
    """The median, and how far rounds are apart."""
    if summary is None:
        return "-"
    spread = f" ±{summary.spread * 100:.0f}%" if summary.high > summary.low else ""
    return f"{number(summary.median)}{spread}"


def ratio(comparison: Comparison) -> str:
    return "" if comparison.ratio is None else f"{comparison.ratio:.2f}"


def is_better(comparison: Comparison) -> bool | None:
    """None where there is nothing to compare, or some round of the one was like some round of the other."""
    ottla, kafka = comparison.ottla, comparison.kafka
    if comparison.ratio is None or ottla is None or kafka is None:
        return None
    if 0.995 <= comparison.ratio < 1.005 or (ottla.low <= kafka.high and kafka.low <= ottla.high):
        return None
    return comparison.ratio > 1


def times_floor(row: Row, comparison: Comparison) -> str:
    """How often the kernel's cost of the same bytes fits into Ottla's, and into Kafka's.

    Whoever syncs what it acknowledges in threads of its own is held against a kernel that syncs. Ottla has
    the kernel do it, which shows in nobody's CPU.
    """
    ours = _times(row, comparison.ottla)
    theirs = _times(row, comparison.kafka, synced=comparison.durability is Durability.ON)
    return f"{ours} / {theirs}" if ours and theirs else ours


def _times(row: Row, summary: Summary | None, *, synced: bool = False) -> str:
    name = RECEIVE_SYNCED if synced and row.is_synced and row.floor == RECEIVE else row.floor
    floors = row.floors.get(name or "")
    if not floors or summary is None:
        return ""
    return f"{summary.median / statistics.median(floors):.1f}"


def busy(row: Row, rows: Sequence[Row], comparison: Comparison) -> str:
    """How busy a core was with the broker while a rate was measured, Ottla's first.

    A broker that is idle most of the time is not what limits the rate.
    """
    for other in rows:
        per = WORK_UNITS.get((row.unit, other.unit))
        if per and other.name == f"{row.name}: broker CPU":
            shares = [
                f"{rate.median * cost.median / per:.0%}"
                for setup in PAIRS[comparison.durability]
                if (rate := row.summary(setup)) and (cost := other.summary(setup))
            ]
            return " / ".join(shares)
    return ""


def floor_cell(row: Row) -> str:
    return measured(row.summary(Setup.KERNEL))
