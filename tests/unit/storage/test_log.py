from __future__ import annotations

import errno
import gc
import os
import struct
from pathlib import Path
from random import Random

import pytest
from tests.unit.storage.logs import (
    NOW,
    PARTITION,
    SMALL_SEGMENTS,
    append,
    batch,
    content,
    fill,
    open_log,
    read_all,
    settings,
    values,
)

from ottla.core.files import Buffer
from ottla.protocol.batch import Record, iter_batches, read_header, write_batch
from ottla.protocol.errors import (
    CorruptMessage,
    InvalidRecord,
    KafkaError,
    KafkaStorageError,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    RecordListTooLarge,
)
from ottla.storage.files import OsFiles
from ottla.storage.handles import Handles
from ottla.storage.log import Log, Origin
from ottla.testing.disk import FaultyFiles


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


# Append


def test_batches_get_consecutive_offsets_and_the_leaders_epoch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    assert append(log, b"a", b"b") == 0
    appended = log.append(batch(b"c", b"d", b"e"), 3, NOW)
    assert (appended.base_offset, appended.last_offset, appended.duplicate) == (2, 4, False)
    assert appended.log_append_time_ms == -1
    headers = [header for header, _ in iter_batches(log.read(0, 10_000, 5))]
    assert [(h.base_offset, h.last_offset, h.partition_leader_epoch) for h in headers] == [
        (0, 1, 0),
        (2, 4, 3),
    ]
    assert log.epochs.entries == [(0, 0), (3, 2)]
    assert log.end_offset == 5


def test_a_batch_is_patched_where_it_lies(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    append(log, b"a")
    frame = bytearray(b"head") + batch(b"b") + b"tail"
    log.append(memoryview(frame)[4:-4], 0, NOW)
    log.write()
    assert read_header(frame, 4).base_offset == 1
    assert frame.startswith(b"head") and frame.endswith(b"tail")
    frame[4:] = bytes(len(frame) - 4)
    assert read_all(log) == {0: b"a", 1: b"b"}


def test_thousands_of_small_batches_are_written_in_one_go(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    for number in range(3000):
        append(log, b"%d" % number)
    log.write()
    assert read_all(log, 100_000) == {number: b"%d" % number for number in range(3000)}


def test_the_kernel_may_take_a_gather_write_in_pieces(tmp_path: Path) -> None:
    class Hesitant(OsFiles):
        def writev(self, fd: int, buffers: list[Buffer]) -> int:  # type: ignore[override]
            return os.writev(fd, [b"".join(buffers)[: 3 + sum(map(len, buffers)) // 2]])

        def write(self, fd: int, data: Buffer) -> int:  # type: ignore[override]
            return os.write(fd, data[:7])

    log = open_log(tmp_path / "log", files=Hesitant())
    for _ in range(3):
        for number in range(10):
            append(log, b"%d" % number * 30)
        log.write()
    assert list(read_all(log).values()) == [b"%d" % number * 30 for number in range(10)] * 3


def test_an_append_time_is_answered_where_the_topic_stamps_it(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", message_timestamp_type="LogAppendTime")
    assert log.append(batch(b"a", timestamp=5), 0, NOW).log_append_time_ms == NOW


@pytest.mark.parametrize(
    "bad",
    [batch(b"a", producer_id=1, producer_epoch=0, base_sequence=5), bytearray(10), batch(b"x", b"y")[:-1]],
)
def test_a_refused_append_leaves_no_trace(tmp_path: Path, bad: bytearray) -> None:
    log = open_log(tmp_path / "log")
    append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    log.write()
    before = content(tmp_path / "log"), log.end_offset, log.size, log.epochs.entries
    with pytest.raises(KafkaError):
        log.append(bad, 7, NOW)
    log.write()
    assert (content(tmp_path / "log"), log.end_offset, log.size, log.epochs.entries) == before
    assert append(log, b"b", producer_id=1, producer_epoch=0, base_sequence=1) == 1


def test_a_duplicate_is_answered_with_its_first_offset_and_not_written(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    fields = {"producer_id": 1, "producer_epoch": 0}
    append(log, b"a", b"b", base_sequence=0, **fields)
    append(log, b"c", base_sequence=2, **fields)
    size = log.size
    appended = log.append(batch(b"a", b"b", base_sequence=0, **fields), 0, NOW + 5)
    assert (appended.base_offset, appended.last_offset, appended.duplicate) == (0, 1, True)
    assert appended.log_append_time_ms == NOW
    assert (log.size, log.end_offset) == (size, 3)


def test_coordinators_and_the_quorum_bring_any_number_of_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    append(log, b"a")
    appended = log.append(bytes(batch(b"b", b"c") + batch(b"d")), 2, NOW, origin=Origin.RAFT)
    assert (appended.base_offset, appended.last_offset) == (1, 3)
    assert list(read_all(log).values()) == [b"a", b"b", b"c", b"d"]
    for records in (b"", bytes(batch(b"x"))[:-1]):
        with pytest.raises((InvalidRecord, CorruptMessage)):
            log.append(records, 2, NOW, origin=Origin.COORDINATOR)
    assert log.end_offset == 4


def test_a_follower_takes_offsets_and_epochs_from_its_leader(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    append(leader, b"a", b"b")
    leader.append(batch(b"c"), 4, NOW)
    sent = bytes(leader.read(0, 10_000, 3))
    follower.append_as_follower(sent + sent[:20])
    assert bytes(follower.read(0, 10_000, 3)) == sent
    assert follower.epochs.entries == [(0, 0), (4, 2)]
    with pytest.raises(OffsetOutOfRange):
        follower.append_as_follower(sent)
    damaged = bytearray(write_batch([Record(value=b"d", timestamp=NOW)], base_offset=10))
    damaged[-1] ^= 1
    with pytest.raises(CorruptMessage):
        follower.append_as_follower(damaged)
    assert follower.end_offset == 3


def test_a_follower_of_a_compacted_log_has_the_same_gaps(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    for offset in (3, 10):
        log.append_as_follower(write_batch([Record(timestamp=NOW, value=b"%d" % offset)], base_offset=offset))
    assert log.end_offset == 11
    for asked, found in [(0, 3), (3, 3), (4, 10), (10, 10)]:
        assert read_header(log.read(asked, 1, 11)).base_offset == found


# Roll


def test_a_segment_is_no_larger_than_segment_bytes(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    fill(log, 40)
    assert len(log.segments) > 3
    assert all(9000 < segment.size <= 10_000 for segment in list(log.segments)[:-1])
    assert len(read_all(log)) == 40
    for segment in list(log.segments)[1:]:
        assert (tmp_path / "log" / f"{segment.base_offset:020d}.snapshot").stat().st_size == 10
    with pytest.raises(RecordListTooLarge):
        append(log, bytes(10_000))


def test_time_is_that_of_the_records(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", segment_ms=1000, message_timestamp_after_max_ms=10**12)
    append(log, b"a", timestamp=NOW)
    append(log, b"b", timestamp=NOW + 1000)
    append(log, b"c", timestamp=NOW - 10**9)
    assert bases(log) == [0]
    append(log, b"d", timestamp=NOW + 1001)
    assert bases(log) == [0, 3]
    append(log, b"e", timestamp=NOW + 5000)
    assert bases(log) == [0, 3, 4]


def test_without_timestamps_time_is_that_of_the_clock(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", segment_ms=1000)
    log.append(batch(b"a", timestamp=-1), 0, NOW)
    log.append(batch(b"b", timestamp=-1), 0, NOW + 1000)
    assert bases(log) == [0]
    log.append(batch(b"c", timestamp=-1), 0, NOW + 1001)
    assert bases(log) == [0, 2]


def test_jitter_makes_segments_roll_earlier(tmp_path: Path) -> None:
    drawn: list[int] = []

    def jitter(bound: int) -> int:
        drawn.append(bound)
        return 400

    log = open_log(tmp_path / "log", segment_ms=1000, segment_jitter_ms=500, jitter=jitter)
    append(log, b"a", timestamp=NOW)
    append(log, b"b", timestamp=NOW + 600)
    append(log, b"c", timestamp=NOW + 601)
    append(log, b"d", timestamp=NOW + 1201)
    append(log, b"e", timestamp=NOW + 1202)
    assert bases(log) == [0, 2, 4]
    assert drawn == [500, 500, 500]


def test_a_full_index_ends_a_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", segment_index_bytes=60, index_interval_bytes=100)
    fill(log, 14)
    # Room for five times, of which one is kept for the end: four entries after the first batch.
    assert bases(log) == [0, 5, 10]
    for segment in log.segments:
        assert len(segment.time_index) <= 5


def test_an_offset_too_far_from_the_base_ends_a_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    for offset in (0, 2**31 - 1, 2**31):
        log.append_as_follower(write_batch([Record(timestamp=NOW, value=b"v")], base_offset=offset))
    assert bases(log) == [0, 2**31]


def test_settings_change_while_the_log_is_open(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    fill(log, 20)
    assert bases(log) == [0]
    log.settings = settings(segment_bytes=5000)
    fill(log, 5, first=20)
    assert bases(log) == [0, 20, 24]
    log.settings = settings(max_message_bytes=100)
    with pytest.raises(KafkaError):
        append(log, bytes(1000))


def test_index_entries_follow_kafkas_rule(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    sizes = []
    for number in range(60):
        sizes.append(len(batch(bytes(300 + 50 * (number % 7)))))
        append(log, bytes(300 + 50 * (number % 7)), timestamp=NOW + number)
    expected_offsets, expected_times, since, position = [], [], 0, 0
    for number, size in enumerate(sizes):
        if since > 4096:
            expected_offsets.append((number, position))
            expected_times.append((NOW + number, number))
            since = 0
        since += size
        position += size
    assert log.segments[0].offset_index.entries() == expected_offsets
    assert log.segments[0].time_index.entries() == expected_times
    log.close(NOW)
    found = (tmp_path / "log" / f"{0:020d}.timeindex").read_bytes()
    assert list(struct.iter_unpack(">qi", found)) == [*expected_times, (NOW + 59, 59)]


# Read


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


# Time


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


# Flush


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


# Shorten


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


# End


def test_a_closed_log_is_what_kafka_leaves(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    log = open_log(directory, **SMALL_SEGMENTS)
    fill(log, 15)
    append(log, b"x", producer_id=3, producer_epoch=0, base_sequence=0, timestamp=NOW + 15_000)
    log.close(NOW)
    found = {name: len(data) for name, data in content(directory).items()}
    assert found == {
        f"{0:020d}.log": found[f"{0:020d}.log"],
        f"{0:020d}.index": 8 * 4,
        f"{0:020d}.timeindex": 12 * 4,
        f"{9:020d}.log": found[f"{9:020d}.log"],
        f"{9:020d}.index": 8 * 3,
        f"{9:020d}.timeindex": 12 * 3,
        f"{9:020d}.snapshot": 10,
        f"{16:020d}.snapshot": 56,
        "leader-epoch-checkpoint": 8,
    }


def test_an_empty_log_leaves_no_snapshot(tmp_path: Path) -> None:
    open_log(tmp_path / "log").close(NOW)
    assert {name: len(data) for name, data in content(tmp_path / "log").items()} == {
        f"{0:020d}.log": 0,
        f"{0:020d}.index": 0,
        f"{0:020d}.timeindex": 0,
    }


def test_a_log_that_was_not_touched_is_closed_without_a_write(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    fill(log, 30)
    log.close(NOW)
    files = FaultyFiles(OsFiles())
    for on in ("write", "fsync", "ftruncate", "rename", "sync_directory"):
        files.fail(on=on, error=errno.EIO)
    open_log(tmp_path / "log", clean=True, files=files, **SMALL_SEGMENTS).close(NOW)


def test_a_directory_may_be_renamed_under_an_open_log(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    fill(log, 25)
    log.write()
    (tmp_path / "log").rename(tmp_path / "moved")
    log.moved(str(tmp_path / "moved"))
    fill(log, 20, first=25)
    log.segments.close_files()
    assert len(read_all(log)) == 45
    log.close(NOW)
