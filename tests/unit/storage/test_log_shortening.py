from __future__ import annotations

from pathlib import Path

import pytest

from ottla.protocol.batch import iter_batches, read_header
from ottla.protocol.errors import (
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
)
from ottla.storage.log import Log
from tests.unit.storage.logs import (
    NOW,
    SMALL_SEGMENTS,
    append,
    batch,
    content,
    fill,
    open_log,
    read_all,
)


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_deleted_records_cannot_be_read_and_their_segments_go_with_retention(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS, file_delete_delay_ms=1000)
    fill(log, 40)
    with pytest.raises(OffsetOutOfRange):
        log.delete_records(25)
    log.advance_high_watermark(40)
    log.delete_records(25)
    assert log.start_offset == 25
    with pytest.raises(OffsetOutOfRange):
        log.read(24, 100, 40)
    assert log.epochs.entries == [(0, 25)]
    first = [base for base in bases(log) if base <= 25][-1]
    assert log.enforce_retention(NOW) == bases_before(first)
    assert bases(log)[0] == first
    assert log.start_offset == 25
    names = list(content(tmp_path / "log"))
    assert any(name.endswith(".log.deleted") for name in names)
    assert any(name.endswith(".snapshot.deleted") for name in names)
    assert log.reap(NOW + 999) == 0
    log.reap(NOW + 1000)
    assert not any(name.endswith(".deleted") for name in content(tmp_path / "log"))
    assert len(read_all(log)) == 15


def bases_before(offset: int) -> int:
    """Segments of nine batches each."""
    return offset // 9


def test_old_segments_go_even_the_active_one(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS, retention_ms=60_000)
    fill(log, 40)
    log.advance_high_watermark(40)
    assert log.enforce_retention(NOW + 20_000) == 0
    assert log.enforce_retention(NOW + 80_000) == 2
    assert log.start_offset == 18
    assert log.enforce_retention(NOW + 1_000_000) == 3
    assert (log.start_offset, log.end_offset, bases(log)) == (40, 40, [40])
    assert log.enforce_retention(NOW + 10**9) == 0
    assert append(log, b"a") == 40


@pytest.mark.parametrize("offset", [0, 1, 8, 9, 10, 17, 18, 35, 36, 39])
@pytest.mark.parametrize("reopened", [False, True])
def test_a_truncated_log_ends_at_the_offset_and_goes_on_from_there(
    tmp_path: Path, offset: int, reopened: bool
) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    fill(log, 40)
    log.flush()
    if reopened:
        log.close(NOW)
        log = open_log(tmp_path / "log", clean=True, **SMALL_SEGMENTS)
    log.advance_high_watermark(40)
    log.truncate_to(offset)
    assert (log.end_offset, log.high_watermark, log.recovery_point) == (offset, offset, offset)
    assert sorted(read_all(log)) == list(range(offset))
    fill(log, 40 - offset, first=offset)
    assert [value.rstrip(b"\0") for value in read_all(log).values()] == [
        b"%d" % number for number in range(40)
    ]
    log.close(NOW)
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    assert len(read_all(log)) == 40


def test_where_readers_stopped_before_a_truncation_is_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    fill(log, 20)
    log.close(NOW)
    log = open_log(tmp_path / "log", clean=True)
    *_, (stopped_at, _) = iter_batches(log.read(0, 7000, 20))
    following = stopped_at.last_offset + 1
    log.truncate_to(following - 1)
    append(log, b"x", b"y", b"z")
    append(log, b"last")
    assert read_header(log.read(following, 1, log.end_offset)).base_offset == following - 1


def test_truncation_takes_producers_and_epochs_back(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    fields = {"producer_id": 1, "producer_epoch": 0}
    for number in range(6):
        log.append(batch(b"v", base_sequence=number, **fields), number, NOW)
    log.truncate_to(3)
    assert log.epochs.entries == [(0, 0), (1, 1), (2, 2)]
    with pytest.raises(OutOfOrderSequenceNumber):
        append(log, b"v", base_sequence=6, **fields)
    assert append(log, b"v", base_sequence=3, **fields) == 3


def test_a_log_can_begin_again_elsewhere(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    fill(log, 40)
    log.truncate_fully(1000)
    assert (log.start_offset, log.end_offset, log.high_watermark, bases(log)) == (1000, 1000, 1000, [1000])
    assert append(log, b"a") == 1000
    log.close(NOW)
    log = open_log(tmp_path / "log", clean=True)
    assert read_all(log) == {1000: b"a"}
