"""Every workload there is, in the order they are run.

Those that share running brokers come first; those that start their own come last.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench import (
    boot,
    connections,
    floor,
    groups,
    growth,
    java_clients,
    large_batches,
    latency,
    partitions,
    rdkafka_performance,
    rebalances,
    recovery,
    requests,
    throughput,
    transactions,
)
from bench.workload import Selection, Workload


def catalogue(dirty_megabytes: int) -> list[Workload]:
    return [
        *requests.workloads(),
        *throughput.workloads(),
        *large_batches.workloads(),
        *floor.workloads(),
        *rdkafka_performance.workloads(),
        *java_clients.workloads(),
        *latency.workloads(),
        *groups.workloads(),
        *rebalances.workloads(),
        *transactions.workloads(),
        *boot.workloads(),
        *connections.workloads(),
        *partitions.workloads(),
        *recovery.workloads(dirty_megabytes),
        *growth.workloads(),
    ]


def chosen(workloads: Sequence[Workload], selection: Selection, words: Sequence[str]) -> list[Workload]:
    """The whole selection, or what the words mean: a family, the start of names, or a part of them.

    A word that fits nothing in the selection reaches beyond it.
    """
    if not words:
        return [each for each in workloads if each.selection <= selection]
    found: list[Workload] = []
    for word in words:
        matching = meant_by(word.lower(), workloads)
        found += [each for each in matching if each.selection <= selection] or matching
    return [each for each in workloads if each in found]


def meant_by(word: str, workloads: Sequence[Workload]) -> list[Workload]:
    return (
        [each for each in workloads if word == each.family.value.lower()]
        or [each for each in workloads if each.name.lower().startswith(word)]
        or [each for each in workloads if word in each.name.lower()]
    )
