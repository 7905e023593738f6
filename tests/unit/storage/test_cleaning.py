from __future__ import annotations

from typing import Any

import pytest

from ottla.storage.cleaning import (
    Cleanable,
    Lags,
    Retention,
    SegmentSummary,
    SourceSegment,
    group_segments,
    plan_compaction,
    plan_retention,
)

DAY = 86_400_000
NOW = 100 * DAY


def segments(*ages_in_days: float, size: int = 100) -> list[SegmentSummary]:
    """Segments of ten offsets, the last of them active."""
    return [
        SegmentSummary(10 * number, 10 * (number + 1), size, NOW - int(age * DAY))
        for number, age in enumerate(ages_in_days)
    ]


def plan(found: list[SegmentSummary], **changes: Any) -> int:
    retention = Retention(
        changes.pop("deletes", True), changes.pop("max_bytes", -1), changes.pop("max_age_ms", 7 * DAY)
    )
    arguments = {"start_offset": 0, "high_watermark": found[-1].end_offset, "now_ms": NOW, **changes}
    return plan_retention(found, retention, **arguments)


def test_segments_go_when_their_youngest_record_is_too_old() -> None:
    assert plan(segments(9, 8, 6, 1)) == 2
    assert plan(segments(9, 7, 6, 1)) == 1
    assert plan(segments(9, 8, 6, 1), max_age_ms=-1) == 0


def test_a_young_record_keeps_the_segments_after_it() -> None:
    assert plan(segments(9, -1, 9, 9)) == 1


def test_the_active_segment_goes_too() -> None:
    assert plan(segments(9, 9, 9)) == 3


def test_an_empty_active_segment_stays() -> None:
    found = segments(9, 9)
    found.append(SegmentSummary(20, 20, 0, NOW - 9 * DAY))
    assert plan(found) == 2


@pytest.mark.parametrize(("high_watermark", "count"), [(40, 4), (39, 3), (30, 3), (29, 2), (0, 0)])
def test_nothing_past_the_high_watermark_goes(high_watermark: int, count: int) -> None:
    assert plan(segments(9, 9, 9, 9), high_watermark=high_watermark) == count


@pytest.mark.parametrize(
    ("max_bytes", "count"), [(400, 0), (301, 0), (300, 1), (250, 1), (200, 2), (0, 4), (-1, 0)]
)
def test_the_oldest_segments_go_until_the_log_is_no_larger_than_allowed(max_bytes: int, count: int) -> None:
    assert plan(segments(1, 1, 1, 1), max_bytes=max_bytes) == count


def test_size_and_age_add_up() -> None:
    assert plan(segments(1, 9, 9, 1), max_bytes=300) == 3


@pytest.mark.parametrize(("start_offset", "count"), [(0, 0), (9, 0), (10, 1), (25, 2), (30, 3), (40, 3)])
@pytest.mark.parametrize("deletes", [True, False])
def test_segments_before_the_start_of_the_log_go_under_any_policy(
    start_offset: int, count: int, deletes: bool
) -> None:
    assert plan(segments(1, 1, 1, 1), start_offset=start_offset, deletes=deletes) == count


def test_a_topic_that_does_not_delete_keeps_old_segments() -> None:
    assert plan(segments(9, 9, 9), deletes=False, max_bytes=0) == 0


# Compaction

HOUR_MS = 3_600_000


def cleanable(
    *sizes: int, clean_up_to: int | None = None, end: int | None = None, **changes: Any
) -> Cleanable:
    """Segments of ten offsets each, an hour apart; the last one is active."""
    count = len(sizes)
    segments = [
        SegmentSummary(10 * number, 10 * number + 10, size, NOW - HOUR_MS * (count - number))
        for number, size in enumerate(sizes)
    ]
    lags = Lags(changes.pop("least_ms", 0), changes.pop("most_ms", 1 << 62))
    return plan_compaction(
        segments,
        lags,
        clean_up_to=clean_up_to,
        start_offset=changes.pop("start_offset", 0),
        end_offset=10 * count if end is None else end,
        first_timestamp=lambda number: NOW - HOUR_MS * (count - number),
        now_ms=NOW,
    )


def test_all_but_the_last_segment_is_dirty_at_first() -> None:
    found = cleanable(100, 200, 400)
    assert found == Cleanable(0, 20, clean_bytes=0, dirty_bytes=300, overdue=False)
    assert found.dirty_ratio == 1 and found.is_due(0.99)


def test_what_was_compacted_before_is_clean() -> None:
    found = cleanable(100, 200, 300, 400, clean_up_to=20)
    assert found == Cleanable(20, 30, clean_bytes=300, dirty_bytes=300, overdue=False)
    assert found.is_due(0.4) and not found.is_due(0.5)


@pytest.mark.parametrize(
    ("clean_up_to", "first_dirty"), [(None, 5), (4, 5), (5, 5), (12, 12), (30, 30), (31, 5)]
)
def test_a_checkpoint_that_cannot_be_right_means_the_whole_log(
    clean_up_to: int | None, first_dirty: int
) -> None:
    assert cleanable(100, 200, 300, clean_up_to=clean_up_to, start_offset=5).first_dirty == first_dirty


@pytest.mark.parametrize(("end", "cleaned"), [(0, 0), (9, 0), (10, 10), (19, 10), (20, 20), (25, 20)])
def test_a_segment_that_is_not_wholly_stable_waits(end: int, cleaned: int) -> None:
    assert cleanable(100, 200, 300, end=end).end == cleaned


def test_young_records_wait_and_old_ones_do_not() -> None:
    assert cleanable(100, 200, 300, least_ms=int(2.5 * HOUR_MS)).end == 10
    assert cleanable(100, 200, 300, least_ms=4 * HOUR_MS).dirty_bytes == 0
    found = cleanable(100, 1, 300, clean_up_to=10, most_ms=HOUR_MS)
    assert found.overdue and found.is_due(0.9)
    assert not cleanable(100, 1, 300, clean_up_to=10, most_ms=2 * HOUR_MS).overdue


def test_a_log_without_a_complete_segment_is_clean() -> None:
    assert not cleanable(100).is_due(0)
    assert not cleanable(0, 100).is_due(0)


def source(base: int, size: int, index_bytes: int = 8) -> SourceSegment:
    return SourceSegment(base, base + 10, size, index_bytes, index_bytes)


def test_neighbours_are_joined_as_long_as_they_fit_into_a_segment() -> None:
    segments = [source(0, 40), source(10, 50), source(20, 10), source(30, 95), source(40, 5)]
    groups = group_segments(segments, max_bytes=100, max_index_bytes=1000, max_offsets=1000)
    assert [[each.base_offset for each in group] for group in groups] == [[0, 10, 20], [30, 40]]
    groups = group_segments(segments, max_bytes=1000, max_index_bytes=16, max_offsets=1000)
    assert [len(group) for group in groups] == [2, 2, 1]
    groups = group_segments(segments, max_bytes=1000, max_index_bytes=1000, max_offsets=19)
    assert [len(group) for group in groups] == [2, 2, 1]


def test_an_empty_segment_is_joined_however_far_away() -> None:
    far = [source(0, 0), source(1 << 32, 0), source(1 << 33, 7)]
    groups = group_segments(far, max_bytes=100, max_index_bytes=100, max_offsets=0x7FFFFFFF)
    assert [len(group) for group in groups] == [2, 1]
