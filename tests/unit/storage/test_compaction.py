from __future__ import annotations

from pathlib import Path

import pytest

from ottla.protocol.batch import (
    TRANSACTIONAL,
    Record,
    crc_ok,
    iter_batches,
    read_header,
    read_records,
    write_batch,
)
from ottla.protocol.compression import NAMES
from ottla.protocol.errors import CorruptMessage
from ottla.storage.cleaner import Cleaner
from ottla.storage.log import Log
from tests.unit.storage.compacting import COMPACTED, DAY_MS, compact, compacted_log, pairs, put, records_of
from tests.unit.storage.logs import NOW, end_transaction, open_log


def headers(log: Log) -> list[tuple[int, int, int]]:
    """Base offset, last offset and record count of every batch in the files."""
    found = []
    for segment in log.segments:
        log.write()
        data = Path(segment.path(".log")).read_bytes()
        for header, batch in iter_batches(data):
            assert crc_ok(batch)
            found.append((header.base_offset, header.last_offset, header.record_count))
    return found


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_only_the_last_record_of_a_key_stays_and_offsets_do_not_change(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    for number in range(30):
        put(log, b"key %d" % (number % 3), b"%d" % number)
    log.roll(NOW)
    put(log, b"key 0", b"not compacted")
    assert compact(log) == 1
    assert pairs(log) == [
        (27, b"key 0", b"27"),
        (28, b"key 1", b"28"),
        (29, b"key 2", b"29"),
        (30, b"key 0", b"not compacted"),
    ]
    assert (log.start_offset, log.end_offset) == (0, 31)


def test_a_batch_keeps_its_header_and_the_records_that_stay(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    keys = [b"a", b"b", b"a", b"c"]
    log.append(
        write_batch([Record(timestamp=NOW + at, key=key, value=b"%d" % at) for at, key in enumerate(keys)]),
        0,
        NOW,
    )
    put(log, b"c", b"new")
    log.roll(NOW)
    compact(log)
    data = log.read(0, 10_000, log.end_offset)
    (first, batch), _ = iter_batches(data)
    assert (first.base_offset, first.last_offset, first.record_count) == (0, 3, 2)
    assert (first.base_timestamp, first.max_timestamp) == (NOW, NOW + 2)
    assert [(record.offset, record.timestamp) for record in read_records(batch)] == [
        (1, NOW + 1),
        (2, NOW + 2),
    ]


@pytest.mark.parametrize("codec", range(len(NAMES)), ids=NAMES)
def test_what_was_compressed_stays_compressed(tmp_path: Path, codec: int) -> None:
    log = compacted_log(tmp_path / "log")
    records = [Record(timestamp=NOW, key=b"%d" % (at % 5), value=b"%d" % at * 20) for at in range(20)]
    log.append(write_batch(records, codec=codec), 0, NOW)
    log.advance_high_watermark(log.end_offset)
    log.roll(NOW)
    compact(log)
    assert read_header(log.read(0, 10_000, log.end_offset)).codec == codec
    assert [offset for offset, _, _ in pairs(log)] == [15, 16, 17, 18, 19]


def test_small_segments_become_one_and_the_old_ones_are_removed_later(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    log = compacted_log(directory)
    for number in range(40):
        put(log, b"key %d" % (number % 4), bytes(1000))
    before = len(log.segments)
    assert before > 4
    assert compact(log) == before - 1
    put(log, b"key 0", b"the last")
    log.roll(NOW)
    # What the first compaction left of them is little enough for one.
    assert compact(log) == before
    assert [segment.base_offset for segment in log.segments] == [0, log.end_offset]
    doomed = [name for name in names(directory) if name.endswith(".deleted")]
    assert doomed
    assert log.reap(NOW + 61_000) == len(doomed)
    log.close(NOW)
    bases = {name.split(".")[0] for name in names(directory) if name[0].isdigit()}
    kept = {f"{segment.base_offset:020d}" for segment in log.segments}
    assert bases == kept | {f"{log.end_offset:020d}"}
    again = compacted_log(directory, clean=True)
    assert pairs(again) == pairs(log)


def test_segments_are_not_joined_beyond_the_size_of_one(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    for number in range(60):
        put(log, b"key %d" % number, bytes(1000))
    before = [segment.base_offset for segment in log.segments]
    content = pairs(log)
    compact(log)
    assert [segment.base_offset for segment in log.segments] == before
    assert pairs(log) == content


def test_nothing_is_compacted_twice_and_new_records_are_held_against_old_ones(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    put(log, b"a", b"1")
    put(log, b"b", b"1")
    log.roll(NOW)
    compact(log)
    cleanable = log.cleanable(NOW)
    assert cleanable is not None
    assert (cleanable.first_dirty, cleanable.dirty_bytes) == (2, 0)
    put(log, b"a", b"2")
    log.roll(NOW)
    compact(log)
    assert pairs(log) == [(1, b"b", b"1"), (2, b"a", b"2")]


def test_records_without_a_key_are_dropped(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **{**COMPACTED, "cleanup_policy": ("delete",)})
    put(log, None, b"nobody can ask for this")
    put(log, b"", b"an empty key is one")
    log.settings = compacted_log(tmp_path / "other").settings
    log.roll(NOW)
    compact(log)
    assert pairs(log) == [(1, b"", b"an empty key is one")]


def test_a_deletion_stays_for_a_while_after_its_first_compaction(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    put(log, b"a", b"1")
    put(log, b"b", b"1")
    put(log, b"a", None, timestamp=NOW + 5)
    put(log, b"c", b"1")
    log.roll(NOW)
    compact(log, NOW)
    left = [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    assert pairs(log) == left
    assert [record.timestamp for record in records_of(log)] == [NOW, NOW + 5, NOW]
    horizons = [header.delete_horizon_ms for header, _ in iter_batches(log.read(0, 10_000, 4))]
    assert horizons == [None, NOW + DAY_MS, None]

    put(log, b"d", b"1")
    log.roll(NOW)
    compact(log, NOW + DAY_MS - 1)
    assert pairs(log) == [*left, (4, b"d", b"1")]
    assert [header.delete_horizon_ms for header, _ in iter_batches(log.read(0, 10_000, 4))] == horizons

    put(log, b"e", b"1")
    log.roll(NOW)
    compact(log, NOW + DAY_MS)
    assert pairs(log) == [left[0], left[2], (4, b"d", b"1"), (5, b"e", b"1")]


def test_deletions_may_be_kept_for_ever(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log", delete_retention_ms=2**63 - 1)
    put(log, b"a", b"1")
    put(log, b"a", None, timestamp=NOW - 5)
    log.roll(NOW)
    compact(log)
    put(log, b"b", b"1")
    log.roll(NOW)
    compact(log, NOW + 1000 * 365 * DAY_MS)
    assert pairs(log) == [(1, b"a", None), (2, b"b", b"1")]
    assert records_of(log)[0].timestamp == NOW - 5


def test_the_end_of_what_was_cleaned_is_kept_even_if_its_record_is_not(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    put(log, b"a", b"1")
    put(log, b"b", b"1")
    log.roll(NOW)
    put(log, b"b", b"2")
    log.roll(NOW)
    compact(log)
    compact(log)
    put(log, b"b", b"3")
    log.roll(NOW)
    put(log, b"b", b"4")
    compact(log)
    assert pairs(log) == [(0, b"a", b"1"), (3, b"b", b"3"), (4, b"b", b"4")]


def test_the_last_batch_of_a_producer_stays_as_a_header(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    put(log, b"a", b"1", producer_id=7, producer_epoch=0, base_sequence=0)
    put(log, b"a", b"2", producer_id=7, producer_epoch=0, base_sequence=1)
    put(log, b"a", b"3")
    log.roll(NOW)
    compact(log)
    assert headers(log) == [(1, 1, 0), (2, 2, 1)]
    assert pairs(log) == [(2, b"a", b"3")]
    # Also to one who has nothing but the files: a repeated batch is recognised, the next is in order.
    log.close_files()
    for snapshot in (tmp_path / "log").glob("*.snapshot"):
        snapshot.unlink()
    again = compacted_log(tmp_path / "log")
    again_put = write_batch(
        [Record(timestamp=NOW, key=b"a", value=b"2")], producer_id=7, producer_epoch=0, base_sequence=1
    )
    assert again.append(again_put, 0, NOW).duplicate
    put(again, b"b", b"1", producer_id=7, producer_epoch=0, base_sequence=2)


def in_transaction(log: Log, producer: int, key: bytes, value: bytes, sequence: int = 0) -> int:
    return put(
        log,
        key,
        value,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=sequence,
        attributes=TRANSACTIONAL,
    )


def test_what_was_aborted_goes_and_its_marker_once_nothing_of_it_is_left(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    put(log, b"a", b"kept")
    in_transaction(log, 1, b"a", b"aborted")
    end_transaction(log, 1, commit=False)
    in_transaction(log, 1, b"b", b"committed", sequence=1)
    end_transaction(log, 1, commit=True)
    log.advance_high_watermark(log.end_offset)
    log.roll(NOW)
    compact(log)
    assert pairs(log) == [(0, b"a", b"kept"), (3, b"b", b"committed")]
    assert headers(log) == [(0, 0, 1), (2, 2, 1), (3, 3, 1), (4, 4, 1)]
    assert [each.first_offset for each in log.aborted_transactions(0, 5)] == [1]

    put(log, b"c", b"1")
    log.roll(NOW)
    compact(log)
    (marker,) = [header for header, _ in iter_batches(log.read(0, 10_000, 5)) if header.base_offset == 2]
    assert marker.delete_horizon_ms == NOW + DAY_MS
    assert log.aborted_transactions(0, 5) == []

    put(log, b"d", b"1")
    log.roll(NOW)
    compact(log, NOW + DAY_MS)
    assert [header for header in headers(log) if header[0] < 5] == [(0, 0, 1), (3, 3, 1), (4, 4, 1)]
    assert pairs(log) == [(0, b"a", b"kept"), (3, b"b", b"committed"), (5, b"c", b"1"), (6, b"d", b"1")]


def test_a_transaction_that_was_aborted_before_the_dirty_part_hides_nothing_in_it(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    put(log, b"a", b"1")
    in_transaction(log, 1, b"b", b"aborted")
    end_transaction(log, 1, commit=False)
    log.advance_high_watermark(log.end_offset)
    log.roll(NOW)
    compact(log)
    in_transaction(log, 1, b"a", None, sequence=1)
    end_transaction(log, 1, commit=True)
    log.advance_high_watermark(log.end_offset)
    log.roll(NOW)
    compact(log)
    assert pairs(log) == [(3, b"a", None)]
    # Otherwise the value would outlive the deletion.
    put(log, b"c", b"1")
    log.roll(NOW)
    compact(log, NOW + DAY_MS)
    assert pairs(log) == [(5, b"c", b"1")]


def test_an_open_transaction_holds_compaction_back(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    put(log, b"a", b"1")
    log.roll(NOW)
    in_transaction(log, 1, b"a", b"2")
    log.roll(NOW)
    put(log, b"b", b"1")
    log.flush()
    cleanable = log.cleanable(NOW)
    assert cleanable is not None and cleanable.end == 1
    compact(log)
    assert [offset for offset, _, _ in pairs(log)] == [0, 1, 2]


def test_what_is_not_synced_makes_nothing_go(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    put(log, b"a", b"1")
    log.roll(NOW)
    log.flush()
    put(log, b"a", b"2")
    log.roll(NOW)
    cleanable = log.cleanable(NOW)
    assert cleanable is not None and cleanable.end == 1
    log.flush()
    compact(log)
    assert pairs(log) == [(1, b"a", b"2")]


def test_keys_that_do_not_fit_into_memory_are_compacted_in_several_turns(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    for number in range(200):
        put(log, b"key %d" % (number % 50), b"%d" % number)
    log.roll(NOW)
    turns = 0
    while compact(log, memory=24 * 7):
        turns += 1
    assert turns > 1
    assert [offset for offset, _, _ in pairs(log)] == list(range(150, 200))


def test_a_log_that_was_changed_meanwhile_keeps_its_segments(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log", cleanup_policy=("compact", "delete"), retention_ms=1000)
    for number in range(30):
        put(log, b"a", bytes(1000), timestamp=NOW + number)
    log.flush()
    cleanable = log.cleanable(NOW)
    assert cleanable is not None
    job = log.cleaning_job(cleanable, NOW)
    cleaner = Cleaner(log.files, job, memory=1 << 20, pause=lambda size: None)
    cleaner.map_keys()
    group = cleaner.groups()[0]
    cleaner.clean(group)
    assert log.enforce_retention(NOW + 5000)
    assert not log.take_cleaned(job, group, NOW)
    cleaner.discard(group)
    assert not [name for name in names(tmp_path / "log") if ".cleaned" in name]
    log.close_files()
    compacted_log(tmp_path / "log")


def test_a_damaged_segment_is_not_compacted(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "log")
    for number in range(5):
        put(log, b"a", b"%d" % number)
    log.roll(NOW)
    path = Path(log.segments[0].path(".log"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptMessage, match="no batch at"):
        compact(log)
    assert not list((tmp_path / "log").glob("*.cleaned"))
    assert len(log.segments) == 2


def swapped(directory: Path, *suffixes: str) -> Log:
    """A log of three segments that was killed while a compaction put its first one in place."""
    log = compacted_log(directory)
    for number in range(30):
        put(log, b"key %d" % (number % 20), bytes(1000))
    log.flush()
    recovery_point = log.recovery_point
    log.close_files()
    for suffix in suffixes:
        path = directory / f"{log.segments[1].base_offset:020d}{suffix}"
        path.rename(f"{path}.swap")
    return compacted_log(directory, recovery_point=recovery_point)


@pytest.mark.parametrize(
    "left", [(".log", ".index", ".timeindex"), (".log", ".timeindex"), (".log",), (".index", ".timeindex")]
)
def test_a_swap_that_was_not_finished_is_finished_however_far_it_came(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    log = swapped(tmp_path / "log", *left)
    assert [offset for offset, _, _ in pairs(log)] == list(range(30))
    assert log.offset_for_timestamp(NOW, log.end_offset) is not None
    assert not list((tmp_path / "log").glob("*.swap"))
    assert len(list((tmp_path / "log").glob("*.index"))) == len(log.segments)


def test_the_first_half_of_a_split_is_not_taken_for_what_the_second_replaces(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    log = compacted_log(directory)
    for number in range(30):
        put(log, b"key %d" % number, bytes(1000))
    log.flush()
    log.close_files()
    first, second = (f"{segment.base_offset:020d}" for segment in list(log.segments)[:2])
    (directory / f"{first}.index").rename(directory / f"{first}.index.swap")
    for suffix in (".log", ".index", ".timeindex"):
        (directory / f"{second}{suffix}").rename(directory / f"{second}{suffix}.swap")
    again = compacted_log(directory, recovery_point=log.recovery_point)
    assert [offset for offset, _, _ in pairs(again)] == list(range(30))
