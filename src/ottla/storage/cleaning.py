"""Which segments of a log may go. Pure: the caller says what there is, and deletes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class SegmentSummary(NamedTuple):
    """What retention asks about a segment. `end_offset` is where the next one begins."""

    base_offset: int
    end_offset: int
    size: int
    largest_timestamp: int


class Retention(NamedTuple):
    """How long a log is kept; a negative limit is none. Without `deletes` only DeleteRecords removes."""

    deletes: bool
    max_bytes: int
    max_age_ms: int


def plan_retention(
    segments: Sequence[SegmentSummary],
    retention: Retention,
    *,
    start_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """How many of the oldest segments are to be deleted.

    The last segment may be among them, unless it is empty: then a new one is needed first. A segment that
    reaches past the high watermark stays, whatever its age.
    """
    deletable = 0
    for segment in segments:
        if segment.end_offset > high_watermark or (segment.size == 0 and segment is segments[-1]):
            break
        deletable += 1

    def count_while(first: int, breaches: Callable[[SegmentSummary], bool]) -> int:
        while first < deletable and breaches(segments[first]):
            first += 1
        return first

    last = segments[-1]
    count = count_while(0, lambda segment: segment is not last and segment.end_offset <= start_offset)
    if not retention.deletes:
        return count
    if retention.max_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - retention.max_bytes

        def too_much(segment: SegmentSummary) -> bool:
            nonlocal excess
            excess -= segment.size
            return excess >= 0

        count = count_while(count, too_much)
    if retention.max_age_ms >= 0:
        count = count_while(count, lambda segment: now_ms - segment.largest_timestamp > retention.max_age_ms)
    return count


class Lags(NamedTuple):
    """Until when a record is not compacted, and when it has to be. Milliseconds."""

    least_ms: int
    most_ms: int


class Cleanable(NamedTuple):
    """What compaction would find in a log: a clean part, then a dirty one from `first_dirty` on.

    The dirty part ends at `end`, the beginning of a segment. `overdue`: a record in it is older than
    `max.compaction.lag.ms` allows.
    """

    first_dirty: int
    end: int
    clean_bytes: int
    dirty_bytes: int
    overdue: bool

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / max(1, self.clean_bytes + self.dirty_bytes)

    def is_due(self, min_dirty_ratio: float) -> bool:
        return self.dirty_bytes > 0 and (self.overdue or self.dirty_ratio > min_dirty_ratio)


def plan_compaction(
    segments: Sequence[SegmentSummary],
    lags: Lags,
    *,
    clean_up_to: int | None,
    start_offset: int,
    end_offset: int,
    first_timestamp: Callable[[int], int],
    now_ms: int,
) -> Cleanable:
    """Which part of a log is dirty and may be compacted.

    `clean_up_to` is where the last compaction ended. The last segment is never compacted, nor what is not
    wholly before `end_offset`, where records are stable and synced, nor a segment with a record that is
    younger than the lag. `first_timestamp` tells that of a segment, by its number.
    """
    *complete, active = segments
    first_dirty = start_offset
    if clean_up_to is not None and start_offset <= clean_up_to <= active.end_offset:
        first_dirty = clean_up_to
    end = min(end_offset, active.base_offset)
    dirty = [number for number, segment in enumerate(complete) if segment.end_offset > first_dirty]
    if lags.least_ms > 0:
        young = (
            complete[number].base_offset
            for number in dirty
            if complete[number].largest_timestamp > now_ms - lags.least_ms
        )
        end = min(end, next(young, end))
    # Whole segments: one that reaches past the end is left for the next time.
    dirty = [number for number in dirty if complete[number].end_offset <= end]
    end = complete[dirty[-1]].end_offset if dirty else first_dirty
    times = [time for number in dirty if (time := first_timestamp(number)) > 0]
    return Cleanable(
        first_dirty,
        end,
        clean_bytes=sum(segment.size for segment in complete if segment.base_offset < first_dirty),
        dirty_bytes=sum(complete[number].size for number in dirty),
        overdue=min(times, default=now_ms) < now_ms - lags.most_ms,
    )


class SourceSegment(NamedTuple):
    """A segment that is to be compacted. `end_offset` is where the next one begins."""

    base_offset: int
    end_offset: int
    size: int
    index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[SourceSegment], max_bytes: int, max_index_bytes: int, max_offsets: int
) -> list[list[SourceSegment]]:
    """Neighbours that fit into one segment together, so that compaction does not leave ever smaller ones."""
    groups: list[list[SourceSegment]] = []
    size = index_bytes = time_index_bytes = 0
    for segment in segments:
        size += segment.size
        index_bytes += segment.index_bytes
        time_index_bytes += segment.time_index_bytes
        if (
            groups
            and size <= max_bytes
            and max(index_bytes, time_index_bytes) <= max_index_bytes
            and (not segment.size or segment.end_offset - 1 - groups[-1][0].base_offset <= max_offsets)
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            _, _, size, index_bytes, time_index_bytes = segment
    return groups
