"""What a machine of transactions asks others to do."""

from __future__ import annotations

from typing import NamedTuple

from ottla.core.types import TopicPartition


class WriteMarkers(NamedTuple):
    """Write the end of a transaction into its partitions, then tell the machine: `markers_written`.

    It may be asked for again after a restart, so a partition may get the same marker twice.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: frozenset[TopicPartition]
    coordinator_epoch: int
    transaction_version: int
