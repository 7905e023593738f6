"""Which records a member of a share group is given, out of batches that were read from the log (KIP-932)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.core.share import RecordState
from ottla.replication.share_ranges import Range, Ranges

# Acquire modes (KIP-1206).
BATCH_OPTIMIZED: Final = 0
RECORD_LIMIT: Final = 1

# Records are delivered as they come, until this many attempts have failed at the least.
_LEAST_CAUTIOUS: Final = 2


class Limits(NamedTuple):
    """The settings of the group, as far as they matter to its partitions."""

    delivery_count: int  # a record is delivered so often at the most
    record_locks: int  # records in flight
    lock_duration_ms: int
    may_renew: bool = True


class Acquired(NamedTuple):
    """Records that a member has from now on."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Delivery:
    """One member being given records: those that came back first, then such as nobody had."""

    def __init__(
        self,
        ranges: Ranges,
        limits: Limits,
        member_id: str,
        batches: Sequence[tuple[int, int]],
        mode: int,
        now_ms: int,
        max_records: int,
    ) -> None:
        self.given: list[Acquired] = []
        self.deadline_ms = now_ms + limits.lock_duration_ms
        self._ranges = ranges
        self._limits = limits
        self._member_id = member_id
        self._batches = batches
        self._is_strict = mode == RECORD_LIMIT
        self._left = max_records

    @property
    def is_full(self) -> bool:
        return self._left <= 0

    def again(self) -> None:
        """What others have had before. Records that keep failing come in ever smaller numbers, at last alone:
        one bad record must not use up the attempts of its neighbours."""
        most = self._limits.delivery_count
        cautious_from = max(_LEAST_CAUTIOUS, (most + 1) // 2)
        for each in self._ranges.available(self._batches[0][0], self._batches[-1][1]):
            if self.is_full:
                break
            count = each.delivery_count
            if count >= most:  # the limit was lowered meanwhile
                self._ranges.change(each, RecordState.ARCHIVED)
            elif count < cautious_from:
                self._give(each, self._left if self._is_strict else each.size)
            else:
                if not self.given:
                    is_last = count == most - 1 and most > _LEAST_CAUTIOUS
                    size = 1 if is_last else max(1, each.batch_size >> (count - cautious_from + 1))
                    self._give(each, min(size, self._left) if self._is_strict else size)
                self._left = 0

    def anew(self, batch_size: int) -> None:
        """Records that nobody has had yet."""
        ranges, batches = self._ranges, self._batches
        room = min(self._left, self._limits.record_locks - (ranges.end_offset - ranges.start_offset))
        last = batches[-1][1]
        if room <= 0 or last < ranges.end_offset:
            return
        self._begin_at(batches[0][0])
        first = ranges.end_offset
        if room < last - first + 1:
            last = first + room - 1
            if not self._is_strict:
                last = self._end_of_batch(last)
        starts = [first]
        if not self._is_strict and last - first + 1 > batch_size:
            for base_offset, _ in batches:
                if base_offset > last:
                    break
                if base_offset - starts[-1] >= batch_size:
                    starts.append(base_offset)
        for end in [*starts[1:], last + 1]:
            added = ranges.append(end - 1, RecordState.ACQUIRED, 1)
            added.member_id, added.deadline_ms = self._member_id, self.deadline_ms
            self._note(added)

    def withhold(self, first: int, last: int) -> None:
        """Take back what was just given of these offsets, for good."""
        for each in self._ranges.cut(first, last):
            if each.member_id == self._member_id and each.deadline_ms == self.deadline_ms:
                self._ranges.change(each, RecordState.ARCHIVED)
        kept = []
        for one in self.given:
            if one.first_offset < first:
                kept.append(one._replace(last_offset=min(one.last_offset, first - 1)))
            if one.last_offset > last:
                kept.append(one._replace(first_offset=max(one.first_offset, last + 1)))
        self.given = kept

    def _give(self, each: Range, most: int) -> None:
        if most < each.size:
            self._ranges.split(each, each.first + most)
        each.state = RecordState.ACQUIRED
        each.delivery_count += 1
        each.member_id, each.deadline_ms = self._member_id, self.deadline_ms
        self._note(each)

    def _note(self, each: Range) -> None:
        self.given.append(Acquired(each.first, each.last, each.delivery_count))
        self._left -= each.size

    def _begin_at(self, base_offset: int) -> None:
        """If the log has nothing between what is in flight and the first batch, pass over it."""
        ranges = self._ranges
        if base_offset > ranges.end_offset:
            ranges.append(base_offset - 1, RecordState.ARCHIVED)
            ranges.advance()

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the batch that has this one; the offset itself if none has."""
        index = bisect_right(self._batches, offset, key=lambda batch: batch[0]) - 1
        return max(offset, self._batches[index][1])
