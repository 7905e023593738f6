"""Latencies come as percentiles: half of all, and the slowest of a hundred and of a thousand."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.workload import Figure


def percentiles(name: str, seconds: Sequence[float]) -> list[Figure]:
    thousandths = statistics.quantiles(seconds, n=1000, method="inclusive")
    return [
        Figure(f"{name}: {word}", "ms", thousandths[number - 1] * 1e3)
        for word, number in (("p50", 500), ("p99", 990), ("p99.9", 999))
    ]
