from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from ottla.protocol.errors import (
    KafkaStorageError,
)
from ottla.storage.files import OsFiles
from ottla.testing.disk import FaultyFiles
from tests.unit.storage.logs import (
    NOW,
    SMALL_SEGMENTS,
    append,
    batch,
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


def test_the_epoch_of_a_new_leader_is_saved_with_its_first_records_and_found_in_them_before(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path / "log")
    append(log, b"a")
    log.flush()
    saved = tmp_path / "log" / "leader-epoch-checkpoint"
    log.epochs.assign(3, log.end_offset)
    assert log.flush_begin() is None
    log.append(batch(b"b"), 3, NOW)
    log.write()
    assert saved.read_bytes() == b"0\n1\n0 0\n"
    shutil.copytree(tmp_path / "log", tmp_path / "killed")
    assert open_log(tmp_path / "killed", recovery_point=1).epochs.entries == [(0, 0), (3, 1)]
    log.flush()
    assert saved.read_bytes() == b"0\n2\n0 0\n3 1\n"


def test_a_disk_that_takes_no_epochs_fails_the_flush(tmp_path: Path) -> None:
    files = FaultyFiles(OsFiles())
    log = open_log(tmp_path / "log", files=files)
    append(log, b"a")
    log.flush()
    log.epochs.assign(3, log.end_offset)
    log.append(batch(b"b"), 3, NOW)
    files.fail("rename", f"{tmp_path}/log/leader-epoch-checkpoint*")
    with pytest.raises(OSError):
        log.flush()
    assert log.failed and log.recovery_point == 1


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
