"""The records in flight of a share partition, as ranges of offsets that have come equally far.

The ranges lie between the start offset and the end offset, in order and without gaps. A `Write` is on its way
to the coordinator of the state; the ranges it will change know what they are becoming.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from ottla.core.share import RecordState, StateBatch

NOBODY: Final = ""
TERMINAL: Final = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class Write:
    """What has to be stored for a decision to stand, as of the start offset it was made at."""

    __slots__ = ("batches", "delivery_complete_count", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.delivery_complete_count = 0
        self.batches: list[StateBatch] = []

    def add(self, each: Range, state: RecordState) -> None:
        if self.batches:
            before = self.batches[-1]
            if before.last_offset + 1 == each.first and before[2:] == (state, each.delivery_count):
                self.batches[-1] = before._replace(last_offset=each.last)
                return
        self.batches.append(StateBatch(each.first, each.last, int(state), each.delivery_count))


class Range:
    __slots__ = (
        "batch_size",
        "becoming",
        "deadline_ms",
        "delivery_count",
        "first",
        "last",
        "member_id",
        "state",
        "write",
    )

    def __init__(self, first: int, last: int, state: RecordState, delivery_count: int) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.batch_size = last - first + 1  # of what it was first delivered with
        self.member_id = NOBODY
        self.deadline_ms = 0  # of the member
        self.becoming: RecordState | None = None
        self.write: Write | None = None

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE

    def _fate(self) -> tuple[object, ...]:
        if self.write is None and self.state in TERMINAL:
            return (self.state, self.delivery_count)
        return (
            self.state,
            self.delivery_count,
            self.member_id,
            self.deadline_ms,
            self.batch_size,
            self.becoming,
            id(self.write),
        )

    def goes_on_in(self, other: Range) -> bool:
        return self._fate() == other._fate()


class Ranges:
    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.complete_count = 0  # records that are in a terminal state, or will be once they are written
        self._ranges: list[Range] = []

    def __iter__(self) -> Iterator[Range]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    # --- where -----------------------------------------------------------------------------

    def _index(self, offset: int) -> int:
        """The index of the range that holds an offset."""
        return bisect_right(self._ranges, offset, key=_first) - 1

    def overlapping(self, first: int, last: int) -> Iterator[Range]:
        first, last = max(first, self.start_offset), min(last, self.end_offset - 1)
        if first > last:
            return
        for index in range(self._index(first), len(self._ranges)):
            each = self._ranges[index]
            if each.first > last:
                return
            yield each

    def cut(self, first: int, last: int) -> list[Range]:
        """The ranges of exactly these offsets, as far as they are in flight."""
        first, last = max(first, self.start_offset), min(last, self.end_offset - 1)
        if first > last:
            return []
        begin = self._boundary(first)
        return self._ranges[begin : self._boundary(last + 1)]

    def available(self, first: int, last: int) -> list[Range]:
        """The ranges among these offsets that wait to be delivered, cut to fit."""
        found = []
        for each in [each for each in self.overlapping(first, last) if each.is_available]:
            found += self.cut(max(each.first, first), min(each.last, last))
        return found

    def of(self, write: Write) -> list[Range]:
        batches = write.batches
        if not batches:
            return []
        between = self.overlapping(batches[0].first_offset, batches[-1].last_offset)
        return [each for each in between if each.write is write]

    def split(self, each: Range, offset: int) -> None:
        """Let a range end before an offset that it holds; the rest becomes a range that has come as far."""
        rest = Range(offset, each.last, each.state, each.delivery_count)
        rest.batch_size = each.batch_size
        rest.member_id, rest.deadline_ms = each.member_id, each.deadline_ms
        rest.becoming, rest.write = each.becoming, each.write
        each.last = offset - 1
        self._ranges.insert(self._index(each.first) + 1, rest)

    def _boundary(self, offset: int) -> int:
        """The index of the range that begins at an offset, split off if need be."""
        if offset >= self.end_offset:
            return len(self._ranges)
        index = self._index(offset)
        each = self._ranges[index]
        if each.first == offset:
            return index
        self.split(each, offset)
        return index + 1

    # --- what ------------------------------------------------------------------------------

    def append(self, last: int, state: RecordState, delivery_count: int = 0) -> Range:
        """Take more records in flight, up to and with this one."""
        added = Range(self.end_offset, last, state, delivery_count)
        self._ranges.append(added)
        self.end_offset = last + 1
        if state in TERMINAL:
            self.complete_count += added.size
        return added

    def change(self, each: Range, state: RecordState) -> None:
        """Decide what a range is, at once."""
        if state in TERMINAL and each.state not in TERMINAL:
            self.complete_count += each.size
        each.state = state
        each.member_id, each.deadline_ms = NOBODY, 0

    def begin(self, each: Range, state: RecordState, write: Write) -> None:
        """Decide what a range will be, once it is written."""
        each.becoming, each.write = state, write
        if state in TERMINAL:
            self.complete_count += each.size
        write.add(each, state)

    def settle(self, each: Range, state: RecordState) -> None:
        """It is written."""
        each.becoming, each.write = None, None
        each.state = state
        each.member_id, each.deadline_ms = NOBODY, 0

    def take_back(self, each: Range) -> None:
        """It will not be written."""
        if each.becoming in TERMINAL:
            self.complete_count -= each.size
        each.becoming, each.write = None, None

    # --- order -----------------------------------------------------------------------------

    def join(self, write: Write) -> None:
        """Make one range again of neighbours that a write has left alike."""
        if not write.batches or not self._ranges:
            return
        first = max(write.batches[0].first_offset, self.start_offset)
        last = min(write.batches[-1].last_offset, self.end_offset - 1)
        if first > last:
            return
        begin = max(self._index(first) - 1, 0)
        end = min(self._index(last) + 2, len(self._ranges))
        joined: list[Range] = []
        for each in self._ranges[begin:end]:
            if joined and joined[-1].goes_on_in(each):
                joined[-1].last = each.last
            else:
                joined.append(each)
        self._ranges[begin:end] = joined

    def advance(self) -> None:
        """Move the start past everything that is done with."""
        done = 0
        for each in self._ranges:
            if each.write is not None or each.state not in TERMINAL:
                break
            self.complete_count -= each.size
            done += 1
        if done:
            del self._ranges[:done]
            self.start_offset = self._ranges[0].first if self._ranges else self.end_offset

    def drop_before(self, offset: int) -> None:
        """Forget everything before an offset, wherever it stood."""
        if offset <= self.start_offset:
            return
        for each in self.cut(self.start_offset, offset - 1):
            if each.state in TERMINAL or each.becoming in TERMINAL:
                self.complete_count -= each.size
        del self._ranges[: self._boundary(offset)]
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)
        self.advance()


def _first(each: Range) -> int:
    return each.first
