"""One segment read from front to back: what is in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ottla.storage.inspect.batches import FoundBatch, Walk
from ottla.storage.inspect.directory import SegmentFiles

NO_OFFSET = -1
NO_TIMESTAMP = -1
TRIES = 3


@dataclass(slots=True)
class SegmentSummary:
    base_offset: int
    size: int
    batches: list[FoundBatch]
    first_offset: int = NO_OFFSET
    last_offset: int = NO_OFFSET
    first_timestamp: int = NO_TIMESTAMP
    max_timestamp: int = NO_TIMESTAMP
    records: int = 0
    control_batches: int = 0
    transactional_batches: int = 0
    codecs: Counter[int] = field(default_factory=Counter)
    # Bytes at the end that are set aside and not written, and what stopped the reading before the end.
    unwritten: int = 0
    problem: str | None = None

    @property
    def end_offset(self) -> int:
        return self.base_offset if self.last_offset == NO_OFFSET else self.last_offset + 1


def summarize(segment: SegmentFiles) -> SegmentSummary:
    for _ in range(TRIES):
        summary = _summarize(segment)
        # Half a batch at the end of a file that grows is one that is being written.
        if summary.problem is None or segment.log.stat().st_size == summary.size:
            break
    return summary


def _summarize(segment: SegmentFiles) -> SegmentSummary:
    walk = Walk(segment.log)
    summary = SegmentSummary(segment.base_offset, walk.size, [])
    for found in walk:
        header = found.header
        summary.batches.append(found)
        if summary.first_offset == NO_OFFSET:
            summary.first_offset = header.base_offset
        summary.last_offset = max(summary.last_offset, header.last_offset)
        summary.max_timestamp = max(summary.max_timestamp, header.max_timestamp)
        if header.max_timestamp >= 0:
            earliest = header.base_timestamp if header.base_timestamp >= 0 else header.max_timestamp
            known = summary.first_timestamp
            summary.first_timestamp = earliest if known == NO_TIMESTAMP else min(known, earliest)
        if header.is_control:
            summary.control_batches += 1
        else:
            summary.records += header.record_count
        summary.transactional_batches += header.is_transactional
        summary.codecs[header.codec] += 1
    summary.unwritten, summary.problem = walk.unwritten, walk.problem
    return summary
