"""A process that can open no more files: it is put off, and nothing is taken for broken."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ottla.storage.files import OsFiles, is_of_the_disk
from ottla.storage.handles import Handle
from ottla.storage.log import Log
from ottla.testing.disk import FaultyFiles, UnsyncedFiles
from tests.unit.storage.logs import NOW, SMALL_SEGMENTS, append, batch, fill, open_log, read_all

ALWAYS = 1 << 30


class Process:
    """Files, of which no more can be opened from `runs_short` to `recovers`."""

    def __init__(self) -> None:
        self.files = FaultyFiles(UnsyncedFiles())

    def runs_short(self, *, times: int = ALWAYS, path: str = "*", error: int = errno.EMFILE) -> None:
        for on in ("open", "sync_directory"):
            self.files.fail(on=on, path=path, times=times, error=error)

    def recovers(self) -> None:
        self.files.faults.clear()


@pytest.fixture
def process() -> Process:
    return Process()


def close_handles(log: Log) -> None:
    """As others do that have more use for open files."""
    log.segments.close_files()


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_a_read_that_can_open_nothing_leaves_the_log_as_it_was(
    error: int, process: Process, tmp_path: Path
) -> None:
    log = open_log(tmp_path / "t", files=process.files, **SMALL_SEGMENTS)
    fill(log, 30)
    expected = read_all(log)
    close_handles(log)
    process.runs_short(error=error)
    for offset in (0, 15, 29):
        with pytest.raises(OSError, match="Too many open files") as raised:
            log.read(offset, 3000, log.end_offset)
        assert not is_of_the_disk(raised.value)
    process.recovers()
    assert not log.failed
    assert read_all(log) == expected


def test_an_append_that_could_not_be_written_is_not_taken(process: Process, tmp_path: Path) -> None:
    log = open_log(tmp_path / "t", files=process.files)
    append(log, b"a")
    log.write()
    close_handles(log)
    process.runs_short()
    with pytest.raises(OSError, match="Too many open files"):
        append(log, b"b", producer_id=7, producer_epoch=0, base_sequence=0)
    assert (log.end_offset, log.failed) == (1, False)
    process.recovers()
    # The same batch again, of a producer that counts: the first attempt has left nothing behind.
    assert append(log, b"b", producer_id=7, producer_epoch=0, base_sequence=0) == 1
    log.write()
    assert read_all(log) == {0: b"a", 1: b"b"}


def test_what_was_appended_and_finds_no_file_is_kept_and_written_later(
    process: Process, tmp_path: Path
) -> None:
    log = open_log(tmp_path / "t", files=process.files)
    received = batch(b"a")
    log.append(received, 0, NOW)
    close_handles(log)
    process.runs_short()
    for _ in range(2):
        with pytest.raises(OSError, match="Too many open files"):
            log.write()
    received[:] = bytes(len(received))  # the buffer is used again
    assert not log.failed
    process.recovers()
    assert read_all(log) == {0: b"a"}


@pytest.mark.parametrize("suffix", ["snapshot", "log", "index", "timeindex"])
def test_a_segment_that_cannot_be_made_leaves_the_log_as_it_was(
    suffix: str, process: Process, tmp_path: Path
) -> None:
    log = open_log(tmp_path / "t", files=process.files, **SMALL_SEGMENTS)
    fill(log, 9)
    log.write()
    process.runs_short(path=f"*00009.{suffix}")
    with pytest.raises(OSError, match="Too many open files"):
        append(log, bytes(2000), timestamp=NOW + 9000)
    assert (log.end_offset, log.segment_count, log.failed) == (9, 1, False)
    assert not list(Path(tmp_path, "t").glob("*00009.*log"))
    # A batch that the segment has room for is taken; then the next one begins elsewhere.
    append(log, b"small", timestamp=NOW + 9000)
    process.recovers()
    fill(log, 9, first=10)
    assert log.segment_count == 2
    expected = read_all(log)
    log.close(NOW)
    again = open_log(tmp_path / "t", clean=True, **SMALL_SEGMENTS)
    assert read_all(again) == expected


def test_room_is_made_for_the_files_of_a_new_segment(process: Process, tmp_path: Path) -> None:
    log = open_log(tmp_path / "t", files=process.files, **SMALL_SEGMENTS)
    (tmp_path / "other").touch()
    for _ in range(4):
        Handle(log.handles, str(tmp_path / "other")).get()
    fill(log, 9)
    log.write()
    process.runs_short(times=1)
    fill(log, 9, first=9)
    assert log.segment_count == 2
    assert len(read_all(log)) == 18


def test_index_entries_wait_in_memory_while_their_file_cannot_be_opened(
    process: Process, tmp_path: Path
) -> None:
    log = open_log(tmp_path / "t", files=process.files, index_interval_bytes=0)
    fill(log, 400, size=10)
    log.write()
    process.runs_short(path="*index")
    fill(log, 200, size=10, first=400)  # more than a page of entries
    log.write()
    assert not log.failed
    process.recovers()
    assert len(read_all(log)) == 600
    log.close(NOW)
    assert len(read_all(open_log(tmp_path / "t", clean=True))) == 600


def test_the_epoch_of_a_leader_is_noted_when_its_file_can_be_opened(process: Process, tmp_path: Path) -> None:
    log = open_log(tmp_path / "t", files=process.files)
    append(log, b"a")
    process.runs_short(path="*leader-epoch*")
    log.append(batch(b"b"), 5, NOW)
    assert not log.failed
    process.recovers()
    log.flush()
    assert (tmp_path / "t" / "leader-epoch-checkpoint").read_text().splitlines()[2:] == ["0 0", "5 1"]


@pytest.mark.parametrize("path", ["*.log", "*.index", "*.timeindex"])
def test_a_flush_that_has_no_files_to_sync_is_another_one_s(
    path: str, process: Process, tmp_path: Path
) -> None:
    log = open_log(tmp_path / "t", files=process.files, **SMALL_SEGMENTS)
    fill(log, 15)
    log.write()
    close_handles(log)
    process.runs_short(path=path)
    with pytest.raises(OSError, match="Too many open files"):
        log.flush_begin()
    process.recovers()
    assert log.needs_flush
    opened = process.files.fail(on="fsync", path="*00000.log", times=1)
    with pytest.raises(OSError, match="Input/output"):
        log.flush()  # the complete segment is still one of those to be synced
    assert opened.times == 0
    assert log.failed


@pytest.mark.parametrize("path", ["*.snapshot", "*leader-epoch*", "*/t"])
def test_a_flush_that_can_not_open_all_it_syncs_may_be_synced_again(
    path: str, process: Process, tmp_path: Path
) -> None:
    log = open_log(tmp_path / "t", files=process.files, **SMALL_SEGMENTS)
    fill(log, 15)
    flush = log.flush_begin()
    assert flush is not None
    process.runs_short(path=path)
    with pytest.raises(OSError, match="Too many open files"):
        flush.sync()
    assert not log.failed
    assert log.recovery_point == 0
    process.recovers()
    flush.release()
    close_handles(log)
    flush.pin_again()
    flush.sync()
    log.flush_done(flush)
    assert log.recovery_point == 15


@pytest.mark.parametrize("error", [errno.ENOMEM, errno.EIO])
def test_a_sync_that_fails_is_still_the_end_of_the_log(error: int, process: Process, tmp_path: Path) -> None:
    log = open_log(tmp_path / "t", files=process.files)
    append(log, b"a")
    process.files.fail(on="fsync", path="*.log", error=error)
    with pytest.raises(OSError):
        log.flush()
    assert log.failed
    assert log.recovery_point == 0


def test_a_log_without_room_to_finish_its_flush_is_not_called_synced(
    process: Process, tmp_path: Path
) -> None:
    log = open_log(tmp_path / "t", files=process.files, **SMALL_SEGMENTS)
    fill(log, 15)
    process.runs_short(path="*.snapshot")
    with pytest.raises(OSError, match="Too many open files"):
        log.flush()
    assert log.recovery_point == 0
    assert log.failed  # what it was to sync is not known any more


def test_a_machine_without_memory_to_open_a_file_has_no_broken_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_none(*_: object) -> int:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr("os.open", open_none)
    files = OsFiles()
    with pytest.raises(OSError, match="Too many open files") as opened:
        files.open(str(tmp_path / "file"), 0)
    with pytest.raises(OSError, match="Too many open files") as synced:
        files.sync_directory(str(tmp_path))
    assert not is_of_the_disk(opened.value)
    assert not is_of_the_disk(synced.value)
    assert is_of_the_disk(OSError(errno.ENOMEM, "of a write or a sync"))
