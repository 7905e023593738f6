"""What a follower does with what its leader answers. Pure: no clock, no disk, no loop.

A follower's log has to become its leader's. Where the two part is found by leader epochs and never by the
high watermark (KIP-101): the follower says in which epoch its last record was written, and the leader, if its
own log has less of that epoch, says how much it has. The follower cuts off what is beyond and asks again.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, Protocol

from ottla.core.files import Buffer
from ottla.protocol.batch import iter_batches
from ottla.protocol.errors import FencedLeaderEpoch, OffsetOutOfRange

UNDEFINED: Final = -1
FIRST_BACKOFF_MS: Final = 20


class Epochs(Protocol):
    """The leader epochs of a log."""

    @property
    def latest(self) -> int: ...
    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]: ...


def truncation_offset(epochs: Epochs, end_offset: int, epoch: int, leader_end: int) -> int:
    """How much of the log to keep, when the leader says that it has an epoch up to `leader_end`.

    If we do not have that epoch, what we have of those before is kept, and the next answer is about them.
    """
    own_epoch, own_end = epochs.end_offset_for(epoch, end_offset)
    if own_end == UNDEFINED:
        return min(leader_end, end_offset)  # we know of no epoch at all
    if own_epoch != epoch:
        return min(own_end, end_offset)
    return min(own_end, leader_end, end_offset)


class Reset(NamedTuple):
    """How to go on when the leader has no such offset."""

    truncate_to: int | None = None
    start_at: int | None = None  # with an empty log


def reset(end_offset: int, leader_start: int, leader_end: int) -> Reset:
    """Our log ends beyond the leader's, which an unclean election can do, or before it begins."""
    if leader_end < end_offset:
        return Reset(truncate_to=leader_end)
    if leader_start > end_offset:
        return Reset(start_at=leader_start)
    return Reset()


def of_epoch(records: Buffer, leader_epoch: int) -> Buffer:
    """The records as far as they were written up to the epoch that they were asked for in (KAFKA-18723).

    A leader may have been elected anew between our request and its answer. What it wrote since is for the
    next request, in which it is asked whether our log is still the same as its own.
    """
    size = 0
    for header, batch in iter_batches(records):
        if header.partition_leader_epoch > leader_epoch:
            return memoryview(records)[:size]
        size += len(batch)
    return records


class Reaction(Enum):
    """To an error that a leader answers for one partition."""

    LOOK_UP = "look up"  # ask where the leader's log begins and ends
    STOP = "stop"  # until the metadata log brings a newer leader epoch
    BACK_OFF = "back off"


def reaction(error_code: int) -> Reaction:
    if error_code == OffsetOutOfRange.code:
        return Reaction.LOOK_UP
    if error_code == FencedLeaderEpoch.code:
        return Reaction.STOP
    # We may know of the election before the leader does, or the other way round; the rest is its own trouble.
    return Reaction.BACK_OFF


class Backoff:
    """How long to leave something alone that keeps failing. The first time is short: elections are quick."""

    __slots__ = ("_next_ms",)

    def __init__(self) -> None:
        self._next_ms = FIRST_BACKOFF_MS

    def failed(self, longest_ms: int) -> int:
        wait_ms = min(self._next_ms, longest_ms)
        self._next_ms = min(2 * self._next_ms, longest_ms)
        return wait_ms

    def worked(self) -> None:
        self._next_ms = FIRST_BACKOFF_MS


class Asked(NamedTuple):
    """What a follower says of its log, to whom it takes for the leader."""

    leader_epoch: int
    fetch_offset: int  # it holds everything before
    last_epoch: int  # in which the record before was written
    start_offset: int
    high_watermark: int


class Answered(NamedTuple):
    """What the leader says to that."""

    records: Buffer
    high_watermark: int
    start_offset: int
    diverging_epoch: int = UNDEFINED
    diverging_end: int = UNDEFINED
