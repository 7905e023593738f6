"""What share partitions and the coordinator of their state both speak of (KIP-932)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from ottla.core.ids import Uuid

# The start offset of a share partition that nobody has read yet: the group's settings say where it begins.
UNINITIALIZED: Final = -1


class RecordState(IntEnum):
    """How far a record has come with a share group, by Kafka's numbers."""

    AVAILABLE = 0
    ACQUIRED = 1  # never stored: an acquisition does not outlive its broker
    ACKNOWLEDGED = 2
    ARCHIVED = 4  # given up: rejected, delivered too often, or not there any more


class StateBatch(NamedTuple):
    """Records of a share partition that have come equally far, as the coordinator stores them."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class SharePartitionKey(NamedTuple):
    group_id: str
    topic_id: Uuid
    partition: int

    def __str__(self) -> str:
        """The key by which its coordinator is found."""
        return f"{self.group_id}:{self.topic_id}:{self.partition}"
