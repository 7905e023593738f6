"""Logs and batches for the tests of storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ottla.config.topic import TopicSettings
from ottla.core.files import Buffer
from ottla.core.types import TopicPartition
from ottla.protocol.batch import TRANSACTIONAL, Record, iter_batches, read_records, write_batch
from ottla.protocol.control import EndTransactionMarker, end_transaction_batch
from ottla.storage.files import OS_FILES
from ottla.storage.log import Log, Origin

NOW = 1_700_000_000_000
PARTITION = TopicPartition("orders", 0)
# With records of about a kilobyte a segment then holds about ten of them.
SMALL_SEGMENTS: dict[str, Any] = {"segment_bytes": 10_000, "index_interval_bytes": 1500}


def settings(**changes: Any) -> TopicSettings:
    return TopicSettings(**changes)


def open_log(
    directory: Path, *, clean: bool = False, now_ms: int = NOW, files: Any = OS_FILES, **changes: Any
) -> Log:
    arguments = {
        name: changes.pop(name) for name in ("recovery_point", "start_offset", "jitter") if name in changes
    }
    return Log.open(
        str(directory),
        PARTITION,
        settings(**changes),
        files=files,
        now_ms=now_ms,
        clean_shutdown=clean,
        **arguments,
    )


def batch(*values: bytes, timestamp: int = NOW, key: bytes | None = b"k", **fields: Any) -> bytearray:
    return write_batch([Record(timestamp=timestamp, key=key, value=value) for value in values], **fields)


def transactional(*values: bytes, producer: int, sequence: int, epoch: int = 0) -> bytearray:
    return batch(
        *values,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=TRANSACTIONAL,
    )


def append(log: Log, *values: bytes, **fields: Any) -> int:
    """Append one batch and answer its base offset."""
    return log.append(batch(*values, **fields), 0, NOW).base_offset


def end_transaction(
    log: Log, producer: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0, version: int = 0
) -> int:
    marker = EndTransactionMarker(producer, epoch, coordinator_epoch, commit)
    records = end_transaction_batch(marker, timestamp=NOW)
    return log.append(records, 0, NOW, origin=Origin.COORDINATOR, transaction_version=version).base_offset


def fill(log: Log, count: int, size: int = 1000, first: int = 0) -> None:
    """Append batches of one record, each named after its number and a second younger than the one before."""
    for number in range(first, first + count):
        append(log, b"%d" % number + bytes(size), timestamp=NOW + 1000 * number)


def values(data: Buffer) -> list[bytes]:
    return [record.value or b"" for _, batch in iter_batches(data) for record in read_records(batch)]


def read_all(log: Log, max_bytes: int = 3000) -> dict[int, bytes]:
    """Every record that is not a control record by its offset, read as a consumer reads."""
    found = {}
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, max_bytes, log.end_offset)
        assert any(iter_batches(data)), f"nothing at {offset} of {log}"
        for header, one in iter_batches(data):
            offset = header.last_offset + 1
            if not header.is_control:
                found.update((record.offset, record.value or b"") for record in read_records(one))
    return {at: value for at, value in found.items() if at >= log.start_offset}


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
