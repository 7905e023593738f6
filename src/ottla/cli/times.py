"""Points in time as people write them: `2 hours ago`, `now`, `yesterday`, ISO 8601, or milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from ottla.cli.running import Misused

_UNITS: Final = {
    "ms": 0.001,
    "millisecond": 0.001,
    "s": 1,
    "sec": 1,
    "second": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86_400,
    "day": 86_400,
    "w": 604_800,
    "week": 604_800,
}
_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s+ago")
_SHORT: Final = re.compile(r"-(\d+(?:\.\d+)?)([a-z]+)")


def parse_time(text: str, now: datetime) -> int:
    """Milliseconds since 1970. A time without a zone is in that of `now`. Raises Misused."""
    wanted = text.strip().lower()
    if wanted == "now":
        return _milliseconds(now)
    if wanted in ("today", "yesterday"):
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return _milliseconds(midnight - timedelta(days=wanted == "yesterday"))
    if wanted.isdecimal() and len(wanted) > 8:
        return int(wanted)
    if found := _AGO.fullmatch(wanted) or _SHORT.fullmatch(wanted):
        unit = found[2] if found[2] in _UNITS else found[2].removesuffix("s")
        if unit in _UNITS:
            return _milliseconds(now - timedelta(seconds=float(found[1]) * _UNITS[unit]))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Misused(
            f"{text!r} is no time; write '2 hours ago', 'yesterday', 2026-05-01T12:00 or milliseconds"
        ) from None
    return _milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo))


def local_now() -> datetime:
    return datetime.now().astimezone()


def iso(timestamp_ms: int) -> str:
    """A timestamp for people, in UTC to the millisecond; `-` where a record has none."""
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp_ms % 1000:03d}Z"


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
