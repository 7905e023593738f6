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
