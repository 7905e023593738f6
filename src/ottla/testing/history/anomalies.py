"""What can be wrong with a history, by name."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds of anomaly, and who may see them all the same."""

    LOST_WRITE = "lost write"
    """An acknowledged record that nobody read, though records after it were read."""

    UNSEEN = "unseen"
    """An acknowledged record that nobody read, though the log was read to its end."""

    DUPLICATE = "duplicate"
    """One value at two offsets. Allowed to producers without idempotence, who retry."""

    INCONSISTENT_OFFSET = "inconsistent offset"
    """Two values at one offset of one partition."""

    NONMONOTONIC_SEND = "nonmonotonic send"
    """What a producer sent later stands earlier. Allowed without idempotence, when requests overlap."""

    NONMONOTONIC_POLL = "nonmonotonic poll"
    """A consumer went back without having been told to. Across a rebalance it may."""

    POLL_SKIP = "poll skip"
    """A consumer passed over a record that was there for it to see. Across a rebalance it may."""

    ABORTED_READ = "aborted read"
    """G1a: somebody saw a record that failed, or read_committed one of an aborted transaction."""

    PRECOMMITTED_READ = "precommitted read"
    """Read_committed saw a record before its transaction was to be committed."""

    TORN_TRANSACTION = "torn transaction"
    """Some of a transaction took effect, and some did not."""

    OWNERSHIP_OVERLAP = "ownership overlap"
    """A partition with two owners: in one generation, or at one time. Who was expelled without knowing it
    (crashed, or told that its partitions are lost) may have taken itself for the owner meanwhile."""

    LOST_COMMIT = "lost commit"
    """No committed offset is found where one was acknowledged."""

    REGRESSED_COMMIT = "regressed commit"
    """An older committed offset than the one last acknowledged is found. Going back is no anomaly if
    somebody committed the lower offset later."""

    PHANTOM_COMMIT = "phantom commit"
    """A committed offset is found that nobody committed, or whose commit failed."""

    FENCED_COMMIT = "fenced commit"
    """A commit was taken from a member of an old generation, or of a partition that had a new owner."""


class Anomaly(NamedTuple):
    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"
