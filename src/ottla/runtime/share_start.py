"""Where a share group begins in a partition that nobody of it has read: share.auto.offset.reset."""

from __future__ import annotations

import re
from typing import Final

from ottla.storage.log import Log

_DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d*)?)S)?)?", re.IGNORECASE)
_UNITS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000)


def start_offset(log: Log, strategy: str, now_ms: int) -> int:
    if strategy == "earliest":
        return log.start_offset
    if strategy != "latest":
        duration = strategy.partition(":")[2]
        found = log.offset_for_timestamp(now_ms - duration_ms(duration), log.high_watermark)
        if found is not None:
            return found.offset
    return log.high_watermark


def duration_ms(text: str) -> int:
    """An ISO 8601 duration, as far as Java's `Duration` takes it: PT1H30M."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration")
    return int(
        sum(float(number) * unit for number, unit in zip(found.groups(), _UNITS_MS, strict=True) if number)
    )
