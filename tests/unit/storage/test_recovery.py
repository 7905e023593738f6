from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from ottla.protocol.batch import iter_batches
from ottla.protocol.errors import KafkaStorageError, OutOfOrderSequenceNumber
from ottla.storage.log import Log
from tests.unit.storage.logs import (
    NOW,
    SMALL_SEGMENTS,
    append,
    batch,
    content,
    end_transaction,
    fill,
    open_log,
    read_all,
    transactional,
)


def name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log of five segments of nine batches, as a kill leaves it: all written, nothing closed."""
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    fill(log, 40)
    log.write()
    log.close_files()
    return tmp_path / "log"


def recover(directory: Path, **changes: object) -> Log:
    return open_log(directory, **{**SMALL_SEGMENTS, **changes})


def test_everything_that_was_written_is_there_after_a_kill(directory: Path) -> None:
    log = recover(directory)
    assert len(read_all(log)) == 40
    assert log.recovery_point == 0


def test_recovery_makes_what_a_clean_stop_leaves(directory: Path, tmp_path: Path) -> None:
    log = open_log(tmp_path / "clean", **SMALL_SEGMENTS)
    fill(log, 40)
    log.close(NOW)
    log = recover(directory)
    log.flush()
    log.close_files()
    assert content(directory) == content(tmp_path / "clean")


def test_recovering_twice_is_recovering_once(directory: Path) -> None:
    path = directory / name(36, ".log")
    path.write_bytes(path.read_bytes()[:-10])
    recover(directory).close_files()
    once = content(directory)
    recover(directory).close_files()
    assert content(directory) == once


@pytest.mark.parametrize("cut", [1, 60, 61, 100, 1000, 2000])
def test_a_torn_tail_is_cut_off(directory: Path, cut: int) -> None:
    path = directory / name(36, ".log")
    size = path.stat().st_size
    os.truncate(path, size - cut)
    log = recover(directory)
    whole = 4 - -(-cut // (size // 4))
    assert log.end_offset == 36 + whole
    assert len(read_all(log)) == log.end_offset
    assert path.stat().st_size == whole * (size // 4)
    fill(log, 40 - log.end_offset, first=log.end_offset)
    assert len(read_all(log)) == 40


@pytest.mark.parametrize(
    "tail",
    [bytes(5000), b"\xff" * 5000, Random(1).randbytes(5000), bytes(8) + b"\x7f\xff\xff\xff" + b"\2" * 60],
)
def test_garbage_after_the_last_batch_is_cut_off(directory: Path, tail: bytes) -> None:
    path = directory / name(36, ".log")
    before = path.read_bytes()
    path.write_bytes(before + tail)
    assert recover(directory).end_offset == 40
    assert path.read_bytes() == before


def test_an_old_batch_that_follows_a_newer_one_is_garbage(directory: Path) -> None:
    path = directory / name(36, ".log")
    before = path.read_bytes()
    path.write_bytes(before + before[: len(before) // 4])
    assert recover(directory).end_offset == 40
    assert path.read_bytes() == before


def test_the_log_ends_at_the_first_damaged_byte(directory: Path) -> None:
    path = directory / name(18, ".log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    log = recover(directory)
    assert 18 < log.end_offset < 27
    assert [segment.base_offset for segment in log.segments] == [0, 9, 18]
    assert len(read_all(log)) == log.end_offset
    assert not (directory / name(27, ".log")).exists()
    assert not (directory / name(27, ".snapshot")).exists()


def test_segments_before_the_recovery_point_are_not_read(directory: Path) -> None:
    path = directory / name(0, ".log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    index = (directory / name(0, ".index")).stat()
    log = recover(directory, recovery_point=20)
    assert log.end_offset == 40
    assert (directory / name(0, ".index")).stat().st_mtime_ns == index.st_mtime_ns
    assert log.recovery_point == 20


def test_what_was_recovered_is_synced_before_the_recovery_point_moves(directory: Path) -> None:
    log = recover(directory, recovery_point=20)
    assert log.needs_flush
    assert [segment.base_offset for segment in log.segments.unsynced] == [18, 27]
    log.flush()
    assert log.recovery_point == 40


def test_a_clean_start_reads_no_batches_but_the_last(directory: Path) -> None:
    log = recover(directory)
    log.close(NOW)
    for base in (0, 9, 18, 27):
        path = directory / name(base, ".log")
        path.write_bytes(b"\xee" * path.stat().st_size)
    log = recover(directory, clean=True)
    assert (log.end_offset, log.recovery_point) == (40, 40)


def test_a_clean_stop_that_is_not_believable_is_recovered(directory: Path) -> None:
    recover(directory).close(NOW)
    path = directory / name(36, ".log")
    path.write_bytes(path.read_bytes() + b"\xee" * 100)
    log = recover(directory, clean=True)
    assert log.end_offset == 40
    assert log.recovery_point == 0


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_rebuilt(directory: Path, clean: bool, suffix: str) -> None:
    recover(directory).close(NOW)
    before = content(directory)
    for base in (0, 18, 36):
        (directory / name(base, suffix)).unlink()
    log = recover(directory, clean=clean)
    assert len(read_all(log)) == 40
    log.close(NOW)
    assert content(directory) == before


def test_a_damaged_transaction_index_is_rebuilt(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    log.append(transactional(b"v", producer=1, sequence=0), 0, NOW)
    end_transaction(log, 1, commit=False)
    log.close(NOW)
    path = tmp_path / "log" / name(0, ".txnindex")
    before = path.read_bytes()
    path.write_bytes(before[:20])
    log = open_log(tmp_path / "log", clean=True)
    assert log.aborted_transactions(0, 2) == [(1, 0)]
    assert path.read_bytes() == before


def test_indexes_that_kafka_allotted_in_advance_are_understood(directory: Path) -> None:
    recover(directory).close(NOW)
    before = content(directory)
    for suffix, size in ((".index", 1_048_576), (".timeindex", 1_048_572)):
        os.truncate(directory / name(36, suffix), size)
    log = recover(directory, clean=True)
    assert len(read_all(log)) == 40
    log.close(NOW)
    recover(directory).close(NOW)
    assert content(directory) == before


def test_files_without_a_segment_are_removed(directory: Path) -> None:
    for stray in (
        name(5, ".index"),
        name(5, ".timeindex"),
        name(5, ".snapshot"),
        name(99, ".txnindex"),
        name(3, ".log.deleted"),
        name(3, ".snapshot.deleted"),
        name(9, ".log.tmp"),
        "leader-epoch-checkpoint.tmp",
    ):
        (directory / stray).write_bytes(b"x" * 8)
    kept = "00000000000000000000-0000000000.checkpoint.deleted"
    (directory / kept).write_bytes(b"x")
    log = recover(directory)
    assert len(read_all(log)) == 40
    names = set(content(directory))
    assert kept in names
    assert not any(int(found[:20]) not in (0, 9, 18, 27, 36, 40) for found in names if found[0] == "0")
    assert not any(found.endswith((".tmp", ".log.deleted")) for found in names)


def test_a_compaction_that_was_not_finished_is_undone(directory: Path) -> None:
    before = recover_and_close(directory)
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(directory / name(9, suffix), directory / name(0, suffix + ".cleaned"))
        shutil.copy(directory / name(9, suffix), directory / name(18, suffix + ".swap"))
    assert recover_and_close(directory) == before


def test_a_compaction_that_was_decided_is_finished(directory: Path) -> None:
    before = recover_and_close(directory)
    # The first two segments were rewritten into one that keeps the last batch of the second.
    for suffix in (".log", ".index", ".timeindex"):
        (directory / name(0, suffix)).rename(directory / name(0, suffix + ".swap"))
    *_, (_, last) = iter_batches((directory / name(9, ".log")).read_bytes())
    (directory / name(0, ".log.swap")).write_bytes(last)
    (directory / name(0, ".index.swap")).write_bytes(b"")
    log = recover(directory, recovery_point=36, cleanup_policy=frozenset({"compact"}))
    assert [segment.base_offset for segment in log.segments] == [0, 18, 27, 36]
    assert sorted(read_all(log)) == list(range(17, 40))
    assert not any("swap" in found for found in content(directory))
    assert before[name(18, ".log")] == content(directory)[name(18, ".log")]


def recover_and_close(directory: Path) -> dict[str, bytes]:
    recover(directory).close(NOW)
    return content(directory)


def test_a_log_that_ends_before_its_start_begins_again(directory: Path) -> None:
    log = recover(directory, start_offset=1000)
    assert (log.start_offset, log.end_offset) == (1000, 1000)
    assert append(log, b"a") == 1000
    assert log.epochs.entries == [(0, 1000)]


def test_the_start_of_a_log_is_at_least_its_first_segment(directory: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        (directory / name(0, suffix)).unlink()
    assert recover(directory).start_offset == 9
    assert recover(directory, start_offset=30).start_offset == 30


def test_an_empty_directory_becomes_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    log = open_log(tmp_path / "log", clean=True, start_offset=7)
    assert (log.start_offset, log.end_offset) == (7, 7)
    assert append(log, b"a") == 7


def test_segments_that_a_power_cut_brought_back_are_deleted(directory: Path) -> None:
    """The log was truncated into its second segment and went on, then the removal of the third was lost."""
    third = {
        suffix: (directory / name(18, suffix)).read_bytes() for suffix in (".log", ".index", ".timeindex")
    }
    log = recover(directory)
    log.truncate_to(12)
    log.settings = open_log(directory.parent / "other").settings
    fill(log, 20, first=12)
    log.write()
    log.close_files()
    for suffix, data in third.items():
        (directory / name(18, suffix)).write_bytes(data)
    log = recover(directory)
    assert [segment.base_offset for segment in log.segments] == [0, 9]
    assert log.end_offset == 32


def test_batches_lost_from_the_end_of_a_segment_take_the_later_ones_with_them(directory: Path) -> None:
    path = directory / name(18, ".log")
    size = path.stat().st_size
    os.truncate(path, size - size // 9)
    assert recover(directory).end_offset == 26


def test_a_gap_below_the_recovery_point_is_no_loss(directory: Path) -> None:
    path = directory / name(18, ".log")
    size = path.stat().st_size
    os.truncate(path, size - size // 9)
    log = recover(directory, recovery_point=27)
    assert log.end_offset == 40
    log.close_files()
    assert recover(directory, cleanup_policy=frozenset({"compact"})).end_offset == 40


def test_records_of_an_old_format_are_not_taken_for_damage(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    body = struct.pack(">bbq", 1, 0, NOW) + struct.pack(">i", -1) + struct.pack(">i", 5) + b"hello"
    message = struct.pack(">qiI", 0, 4 + len(body), crc32(body)) + body
    path = tmp_path / "log" / name(0, ".log")
    path.write_bytes(message * 3)
    with pytest.raises(KafkaStorageError, match="before version 2"):
        open_log(tmp_path / "log")
    assert path.read_bytes() == message * 3


# Producers and epochs


@pytest.fixture
def produced(tmp_path: Path) -> Path:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    for number in range(40):
        fields = {"producer_id": 1 + number % 2, "producer_epoch": 0, "base_sequence": number // 2}
        append(log, bytes(900), **fields)
    log.write()
    log.close_files()
    return tmp_path / "log"


def check_producers(log: Log) -> None:
    for producer in (1, 2):
        fields = {"producer_id": producer, "producer_epoch": 0}
        with pytest.raises(OutOfOrderSequenceNumber):
            append(log, b"v", base_sequence=21, **fields)
        append(log, b"v", base_sequence=20, **fields)


@pytest.mark.parametrize("recovery_point", [0, 20, 40])
def test_producers_are_remembered_over_a_kill(produced: Path, recovery_point: int) -> None:
    check_producers(recover(produced, recovery_point=recovery_point))


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_snapshot_is_replaced_by_an_older_one_and_the_log(produced: Path, clean: bool) -> None:
    recover(produced).close(NOW)
    snapshots = sorted(produced.glob("*.snapshot"))
    for path in snapshots[-2:]:
        path.write_bytes(path.read_bytes()[:-1] + b"\xee")
    log = recover(produced, clean=clean, recovery_point=40)
    check_producers(log)
    log.close(NOW)


def test_without_any_snapshot_a_clean_start_knows_no_producers(produced: Path) -> None:
    """As in Kafka: such a log was closed by a version that had none, and is not read for them."""
    recover(produced).close(NOW)
    for path in produced.glob("*.snapshot"):
        path.unlink()
    log = recover(produced, clean=True)
    assert len(log.producers) == 0
    append(log, b"v", producer_id=1, producer_epoch=0, base_sequence=77)


def test_producers_that_expired_meanwhile_are_not_loaded(produced: Path) -> None:
    recover(produced).close(NOW)
    assert len(recover(produced, clean=True, now_ms=NOW + 86_400_000).producers) == 0


def test_a_damaged_epoch_file_is_made_from_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log", **SMALL_SEGMENTS)
    for number in range(30):
        log.append(batch(bytes(900)), number // 10, NOW)
    log.close(NOW)
    (tmp_path / "log" / "leader-epoch-checkpoint").write_bytes(b"0\n7\n")
    log = open_log(tmp_path / "log", clean=True, **SMALL_SEGMENTS)
    assert log.epochs.entries == [(0, 0), (1, 10), (2, 20)]


def test_epochs_of_lost_batches_are_forgotten_and_of_kept_ones_found(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    for number in range(6):
        log.append(batch(bytes(900)), number // 2, NOW)
    log.write()
    log.close_files()
    path = tmp_path / "log" / name(0, ".log")
    os.truncate(path, path.stat().st_size * 2 // 3)
    assert open_log(tmp_path / "log").epochs.entries == [(0, 0), (1, 2)]
    (tmp_path / "log" / "leader-epoch-checkpoint").unlink()
    assert open_log(tmp_path / "log").epochs.entries == [(0, 0), (1, 2)]
