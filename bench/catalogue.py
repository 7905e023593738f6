"""Every workload there is, in the order they are run.

Those that share running brokers come first; those that start their own come last.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench import (
    boot,
    connections,
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
    """The whole selection, or those that have one of the words in their name or family.

    A word that fits nothing in the selection reaches beyond it.
    """
    if not words:
        return [each for each in workloads if each.selection <= selection]
    found = []
    for word in words:
        matching = [each for each in workloads if word.lower() in f"{each.family.value} {each.name}".lower()]
        within = [each for each in matching if each.selection <= selection]
        found += within or matching
    return [each for each in workloads if each in found]
