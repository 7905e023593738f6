from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ottla.protocol.errors import (
    KafkaStorageError,
)
from ottla.storage.files import OsFiles
from ottla.testing.disk import FaultyFiles
from tests.unit.storage.logs import (
    SMALL_SEGMENTS,
    append,
    fill,
    open_log,
)


def test_a_flush_moves_the_recovery_point_when_it_is_done(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    fill(log, 25)
    assert log.needs_flush
    flush = log.flush_begin()
    assert flush is not None and not log.needs_flush
    fill(log, 5, first=25)
    flush.sync()
    assert log.recovery_point == 0
    log.flush_done(flush)
    assert log.recovery_point == 25
    log.flush()
    assert log.recovery_point == 30
    assert log.flush_begin() is None


def test_a_flush_that_a_truncation_overtook_promises_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    fill(log, 25)
    flush = log.flush_begin()
    assert flush is not None
    log.truncate_to(3)
    fill(log, 30, first=3)
    flush.sync()
    log.flush_done(flush)
    assert log.recovery_point == 0


@pytest.mark.parametrize(
    ("on", "path"),
    [("fsync", "*.log"), ("fsync", "*.timeindex"), ("fsync", "*.snapshot"), ("sync_directory", "*")],
)
def test_a_failed_sync_ends_the_log(tmp_path: Path, on: str, path: str) -> None:
    files = FaultyFiles(OsFiles())
    log = open_log(tmp_path / "log", files=files, **SMALL_SEGMENTS)
    fill(log, 15)
    flush = log.flush_begin()
    assert flush is not None
    files.fail(on=on, path=path, error=errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        flush.sync()
    log.flush_done(flush)
    assert log.recovery_point == 0
    with pytest.raises(KafkaStorageError):
        append(log, b"x")
    with pytest.raises(KafkaStorageError):
        log.flush_begin()


@pytest.mark.parametrize("batches", [1, 2])
def test_a_failed_write_ends_the_log(tmp_path: Path, batches: int) -> None:
    files = FaultyFiles(OsFiles())
    log = open_log(tmp_path / "log", files=files)
    append(log, b"a")
    log.write()
    files.fail(on="write", path="*.log", error=errno.ENOSPC)
    for _ in range(batches):
        append(log, b"b")
    with pytest.raises(OSError, match="No space"):
        log.write()
    for act in (lambda: append(log, b"d"), lambda: log.read(0, 100, 1), log.write):
        with pytest.raises(KafkaStorageError):
            act()


@pytest.mark.parametrize("on", ["open", "write"])
def test_a_failed_roll_ends_the_log(tmp_path: Path, on: str) -> None:
    files = FaultyFiles(OsFiles())
    log = open_log(tmp_path / "log", files=files, **SMALL_SEGMENTS)
    fill(log, 8)
    log.write()
    files.fail(on=on, path="*.snapshot", error=errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        fill(log, 8)
    with pytest.raises(KafkaStorageError):
        append(log, b"x")
