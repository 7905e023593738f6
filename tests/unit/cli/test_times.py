"""Points in time as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ottla.cli.running import Misused
from ottla.cli.times import iso, parse_time

NOW = datetime(2026, 5, 2, 12, 30, 0, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("2 hours ago", NOW - timedelta(hours=2)),
        ("1 hour ago", NOW - timedelta(hours=1)),
        ("90 min ago", NOW - timedelta(minutes=90)),
        ("1.5 days ago", NOW - timedelta(days=1.5)),
        ("3 Weeks ago", NOW - timedelta(weeks=3)),
        ("250 ms ago", NOW - timedelta(milliseconds=250)),
        ("30s ago", NOW - timedelta(seconds=30)),
        ("-15m", NOW - timedelta(minutes=15)),
        ("today", datetime(2026, 5, 2, tzinfo=NOW.tzinfo)),
        ("yesterday", datetime(2026, 5, 1, tzinfo=NOW.tzinfo)),
        ("2026-05-01T12:00", datetime(2026, 5, 1, 12, tzinfo=NOW.tzinfo)),
        ("2026-05-01T12:00Z", datetime(2026, 5, 1, 12, tzinfo=UTC)),
        ("2026-05-01", datetime(2026, 5, 1, tzinfo=NOW.tzinfo)),
    ],
)
def test_times(text: str, expected: datetime) -> None:
    assert parse_time(text, NOW) == round(expected.timestamp() * 1000)


def test_milliseconds_are_taken_as_they_are() -> None:
    assert parse_time("1700000000123", NOW) == 1_700_000_000_123


@pytest.mark.parametrize("text", ["", "soon", "2 fortnights ago", "hours ago", "2026-13-01", "12"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(Misused, match="is no time; write '2 hours ago'"):
        parse_time(text, NOW)


def test_timestamps_for_people() -> None:
    assert iso(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert iso(0) == "1970-01-01T00:00:00.000Z"
    assert iso(-1) == "-"
    assert iso(2**62) == str(2**62)
