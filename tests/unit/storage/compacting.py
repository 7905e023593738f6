"""Compaction in one go, for the tests of storage: what the runtime does with a thread in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ottla.protocol.batch import Record, iter_batches, read_records, write_batch
from ottla.storage.cleaner import Cleaner
from ottla.storage.log import Log
from tests.unit.storage.logs import NOW, open_log

DAY_MS = 24 * 60 * 60 * 1000
COMPACTED: dict[str, Any] = {
    "cleanup_policy": ("compact",),
    "min_cleanable_dirty_ratio": 0.0,
    "segment_bytes": 10_000,
    "index_interval_bytes": 1500,
}


def compacted_log(directory: Path, **changes: Any) -> Log:
    return open_log(directory, **{**COMPACTED, **changes})


def put(log: Log, key: bytes | None, value: bytes | None, *, timestamp: int = NOW, **fields: Any) -> int:
    """Append one record and let it be replicated."""
    records = write_batch([Record(timestamp=timestamp, key=key, value=value)], **fields)
    offset = log.append(records, 0, NOW).base_offset
    log.advance_high_watermark(log.end_offset)
    return offset


def compact(log: Log, now_ms: int = NOW, *, memory: int = 1 << 20, flush: bool = True) -> int:
    """Compact what can be; how many segments were rewritten."""
    if flush:
        log.flush()
    cleanable = log.cleanable(now_ms)
    if cleanable is None or not cleanable.dirty_bytes:
        return 0
    job = log.cleaning_job(cleanable, now_ms)
    cleaner = Cleaner(log.files, job, memory=memory, pause=lambda size: None)
    cleaner.map_keys()
    groups = cleaner.groups()
    for group in groups:
        cleaner.clean(group)
        assert log.take_cleaned(job, group, now_ms)
    log.cleaned(job, cleaner.latest_offset + 1)
    return sum(map(len, groups))


def records_of(log: Log) -> list[Record]:
    """Every record that is not a control record, as a consumer reads them who sees all."""
    found: list[Record] = []
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, 3000, log.end_offset)
        assert data, f"nothing at {offset} of {log}"
        for header, batch in iter_batches(data):
            assert header.last_offset >= offset
            offset = header.last_offset + 1
            if not header.is_control:
                found += read_records(batch)
    return [record for record in found if record.offset >= log.start_offset]


def pairs(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records_of(log)]
