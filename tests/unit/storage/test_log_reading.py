from __future__ import annotations

import errno
import gc
import os
from pathlib import Path
from random import Random

import pytest

from ottla.protocol.batch import Record, iter_batches, read_header, write_batch
from ottla.protocol.errors import (
    OffsetOutOfRange,
)
from ottla.storage.files import OsFiles
from ottla.storage.handles import Handles
from ottla.storage.log import Log
from tests.unit.storage.logs import (
    NOW,
    PARTITION,
    SMALL_SEGMENTS,
    append,
    content,
    fill,
    open_log,
    read_all,
    settings,
    values,
)


def test_every_offset_finds_its_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    starts = [append(log, *[bytes(200)] * (1 + number % 4)) for number in range(60)]
    ends = [*starts[1:], log.end_offset]
    for start, end in zip(starts, ends, strict=True):
        for offset in range(start, end):
            header = read_header(log.read(offset, 1, log.end_offset))
            assert (header.base_offset, header.last_offset) == (start, end - 1)


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("max_bytes", [1, 700, 5000, 70_000, 1_000_000])
def test_a_read_is_whole_batches_within_bounds(tmp_path: Path, max_bytes: int, reopened: bool) -> None:
    log = open_log(tmp_path / "log", segment_bytes=100_000)
    fill(log, 150)
    if reopened:
        log.close(NOW)
        log = open_log(tmp_path / "log", clean=True, segment_bytes=100_000)
    ends = [*(segment.base_offset for segment in log.segments), log.end_offset]
    for offset in range(0, 150, 7):
        for end_offset in {offset + 1, min(offset + 20, 150), 150}:
            data = log.read(offset, max_bytes, end_offset)
            found = [header for header, _ in iter_batches(data)]
            assert sum(header.size for header in found) == len(data)
            assert found[0].base_offset == offset
            assert found[-1].last_offset < end_offset
            assert len(data) <= max_bytes or len(found) == 1
            following = found[-1].last_offset + 1
            if following < end_offset and following not in ends:
                assert len(data) + len(log.read(following, 1, following + 1)) > max_bytes


def test_a_batch_that_does_not_fit_is_left_out_when_it_need_not_be_there(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    append(log, bytes(500))
    assert log.read(0, 100, 1, min_one_batch=False) == b""
    assert len(log.read(0, 100, 1)) > 500


def test_offsets_outside_of_the_log_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    append(log, b"a", b"b")
    assert log.read(2, 1000, 2) == b""
    assert log.read(1, 1000, 0) == b""
    for offset in (-1, 3):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 1000, 2)


def test_what_is_pending_is_read(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    append(log, b"a")
    assert values(log.read(0, 1000, 1)) == [b"a"]


@pytest.mark.parametrize("shorten", ["truncate", "truncate in place", "delete", "drop"])
def test_a_view_that_was_handed_out_survives_whatever_happens_to_its_file(
    tmp_path: Path, shorten: str
) -> None:
    log = open_log(tmp_path / "log", file_delete_delay_ms=0)
    fill(log, 300)
    log.advance_high_watermark(300)
    view = log.read(0, 1_000_000, 300)
    assert isinstance(view, memoryview) and len(view) > 300_000
    expected = bytes(view)
    if shorten == "truncate":
        log.truncate_to(10)
    elif shorten == "truncate in place":
        log.truncate_to(299)
        log.truncate_to(1)
    elif shorten == "delete":
        log.settings = settings(retention_bytes=0, file_delete_delay_ms=0)
        assert log.enforce_retention(NOW) == 1
        assert log.reap(NOW) == 3
    else:
        log.truncate_fully(7)
    fill(log, 20)
    log.write()
    assert bytes(view) == expected
    del view
    gc.collect()
    assert len(read_all(log)) == log.end_offset - log.start_offset


def test_slow_readers_get_copies_once_they_hold_many_maps(tmp_path: Path) -> None:
    """Each map has a file descriptor of its own, and other work needs some, too."""
    handles = Handles(OsFiles(), limit=8)
    log = Log.open(
        str(tmp_path / "log"), PARTITION, settings(), files=handles.files, now_ms=NOW, handles=handles
    )
    fill(log, 100)
    held = [log.read(0, 1_000_000, 100) for _ in range(5)]
    assert [type(each) for each in held] == [memoryview, memoryview, bytes, bytes, bytes]
    assert len({bytes(each) for each in held}) == 1
    held.clear()
    gc.collect()
    assert type(log.read(0, 1_000_000, 100)) is memoryview


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOMEM])
def test_a_map_that_cannot_be_had_is_no_fault_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    log = open_log(tmp_path / "log")
    fill(log, 100)
    expected = bytes(log.read(0, 1_000_000, 100))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr("mmap.mmap", refuse)
    assert log.read(0, 1_000_000, 100) == expected


def test_few_files_are_open_however_many_logs_there_are(tmp_path: Path) -> None:
    handles = Handles(OsFiles(), limit=8)
    logs = [
        Log.open(
            str(tmp_path / str(n)), PARTITION, settings(), files=handles.files, now_ms=NOW, handles=handles
        )
        for n in range(40)
    ]
    for turn in range(3):
        for number, log in enumerate(logs):
            append(log, b"%d" % (number + turn))
            log.write()
            assert len(handles) <= 8
    for number, log in enumerate(logs):
        assert list(read_all(log).values()) == [b"%d" % (number + turn) for turn in range(3)]
        log.close(NOW)
    assert len(handles) == 0


def test_a_damaged_index_of_a_closed_segment_is_rebuilt_when_it_is_needed(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    log = open_log(directory, **SMALL_SEGMENTS)
    fill(log, 40)
    expected = read_all(log)
    log.close(NOW)
    good = content(directory)
    for damage in (b"", b"x", Random(1).randbytes(24), bytes(16), good[f"{0:020d}.index"][:-3]):
        (directory / f"{0:020d}.index").write_bytes(damage)
        log = open_log(directory, clean=True, **SMALL_SEGMENTS)
        assert read_all(log) == expected
        for offset in range(40):
            assert read_header(log.read(offset, 1, 40)).base_offset == offset
        log.close(NOW)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", [b"x", bytes(24), b"", Random(2).randbytes(24), Random(3).randbytes(240)])
@pytest.mark.parametrize("base", [0, 36])
def test_a_damaged_index_is_never_believed(tmp_path: Path, suffix: str, damage: bytes, base: int) -> None:
    directory = tmp_path / "log"
    log = open_log(directory, **SMALL_SEGMENTS)
    fill(log, 40)
    log.close(NOW)
    (directory / f"{base:020d}{suffix}").write_bytes(damage)
    log = open_log(directory, clean=True, **SMALL_SEGMENTS, retention_ms=39_500)
    assert len(read_all(log)) == 40
    assert log.max_timestamp() == (39, NOW + 39_000, 0)
    assert log.offset_for_timestamp(NOW + 5000, 40) == (5, NOW + 5000, 0)
    assert log.offset_for_timestamp(NOW + 37_000, 40) == (37, NOW + 37_000, 0)
    log.advance_high_watermark(40)
    assert log.enforce_retention(NOW + 47_000) == 0
    assert log.enforce_retention(NOW + 48_000) == 1
    log.truncate_to(37)
    assert sorted(read_all(log)) == list(range(9, 37))


def test_a_time_is_found_to_the_record(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    stamps: list[int] = []
    for number in range(40):
        stamps += [NOW + 100 * number + late for late in (0, 50, 20)]
        log.append(
            write_batch([Record(timestamp=at, value=bytes(300)) for at in stamps[-3:]], codec=number % 5),
            3,
            NOW,
        )
    for wanted in range(NOW - 50, NOW + 4000, 35):
        expected = next((offset for offset, at in enumerate(stamps) if at >= wanted), None)
        found = log.offset_for_timestamp(wanted, log.end_offset)
        if expected is None:
            assert found is None
        else:
            assert found == (expected, stamps[expected], 3)
    assert log.offset_for_timestamp(NOW + 150, 4) is None
    assert log.max_timestamp() == (118, NOW + 3950, 3)


def test_the_greatest_time_is_that_of_the_first_record_that_has_it(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    assert log.max_timestamp() is None
    append(log, b"a", timestamp=-1)
    assert log.max_timestamp() is None
    for stamps in ([NOW, NOW + 9, NOW + 9], [NOW + 9], [NOW + 3]):
        log.append(write_batch([Record(timestamp=at, value=b"v") for at in stamps]), 0, NOW)
    assert log.max_timestamp() == (2, NOW + 9, 0)


def test_records_before_the_start_are_not_found_by_time(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    fill(log, 10)
    log.advance_high_watermark(10)
    log.delete_records(5)
    found = log.offset_for_timestamp(NOW, 10)
    assert found is not None and found.offset == 5


@pytest.mark.parametrize(("size", "interval"), [(20_000, 4096), (3000, 20_000), (9000, 20_000), (500, 4096)])
def test_every_record_is_found_by_the_index_however_large_batches_are(
    tmp_path: Path, size: int, interval: int
) -> None:
    changes = {"index_interval_bytes": interval, "segment_bytes": 400_000}
    log = open_log(tmp_path / "log", **changes)
    for number in range(60):
        append(log, b"%d a" % number + bytes(size // 2), b"%d b" % number + bytes(size // 2))
    log.close(NOW)
    again = open_log(tmp_path / "log", clean=True, **changes)
    for offset in [*range(0, 120, 7), *range(119, 0, -11)]:
        data = again.read(offset, 1, again.end_offset)
        assert read_header(data).base_offset == offset - offset % 2
        assert len(values(data)) == 2
