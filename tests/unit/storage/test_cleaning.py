from __future__ import annotations

from typing import Any

import pytest

from ottla.storage.cleaning import Retention, SegmentSummary, plan_retention

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
