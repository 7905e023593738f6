"""A disk that fails: its directory goes offline, nothing is acknowledged, other directories go on."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from ottla.config.topic import TopicSettings
from ottla.core.files import Files
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, iter_batches, write_batch
from ottla.protocol.errors import KafkaStorageError
from ottla.runtime.flusher import Flusher
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory, open_log_directories
from ottla.testing.disk import FaultyFiles, UnsyncedFiles
from tests.crash.workload import FakeClock

TOPIC_ID = Uuid.parse("r6-V3gr2R3e7KizL8v4SxA")
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def open_both(tmp_path: Path, files: Files) -> list[LogDirectory]:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    directories = open_log_directories(paths, clock=FakeClock(), node_id=1, files=files)
    for directory in directories:
        directory.load(lambda topic: TopicSettings())
    return directories


def append(log: Log, value: bytes) -> int:
    batch = write_batch([Record(timestamp=FakeClock().now_ms, value=value)])
    log.append(batch, 0, FakeClock().now_ms)
    return log.end_offset


async def produce(directory: LogDirectory, flusher: Flusher, log: Log, value: bytes) -> None:
    """As a produce request with acks=all does it, down from the partition."""
    end_offset = append(log, value)
    try:
        log.write()
    except OSError as error:
        raise directory.fail(error) from error
    await flusher.synced(log, end_offset)


@pytest.mark.parametrize(
    ("on", "error", "short"),
    [
        ("fsync", errno.EIO, None),
        ("write", errno.ENOSPC, None),
        ("write", errno.ENOSPC, 40),  # the disk takes a part of the batch before it is full
        ("write", errno.EROFS, None),
    ],
)
def test_a_failing_disk_costs_its_own_directory_and_no_acknowledged_record(
    on: str, error: int, short: int | None, tmp_path: Path
) -> None:
    files = FaultyFiles(UnsyncedFiles())
    first, second = open_both(tmp_path, files)
    failing = first.create_log(T0, TOPIC_ID, TopicSettings())
    healthy = second.create_log(T1, TOPIC_ID, TopicSettings())

    async def story() -> None:
        flushers = [Flusher(first), Flusher(second)]
        heard: list[Exception] = []
        first.on_offline(heard.append)
        for _ in range(3):
            await produce(first, flushers[0], failing, b"acknowledged")
        if short is not None:
            files.fail(on=on, path="*/a/t-0/*.log", short=short)
        files.fail(on=on, path="*/a/t-0/*.log", error=error)
        with pytest.raises(KafkaStorageError):
            await produce(first, flushers[0], failing, b"not acknowledged")
        assert len(heard) == 1
        # The fault has passed, but nobody knows what is on that disk now.
        with pytest.raises(KafkaStorageError):
            await produce(first, flushers[0], failing, b"too late")
        for _ in range(5):
            await produce(second, flushers[1], healthy, b"elsewhere")
        assert second.error is None
        for flusher in flushers:
            await flusher.close()

    asyncio.run(story())
    first.close()
    second.close()

    # The operator has made room, or replaced the cable, and starts again.
    first, second = open_both(tmp_path, UnsyncedFiles())
    assert not first.was_clean
    assert second.was_clean
    log = first.logs[T0]
    data = bytes(log.read(0, 1 << 20, log.end_offset))
    assert sum(len(batch) for _, batch in iter_batches(data)) == len(data)
    assert data.count(b"acknowledged") - data.count(b"not acknowledged") == 3
    assert b"too late" not in data
    assert append(log, b"again") == log.end_offset
    log.write()
    assert second.logs[T1].end_offset == 5
    first.close()
    second.close()
