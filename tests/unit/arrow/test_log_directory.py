"""Partitions read from the files of a broker that may be running, or may have been killed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ottla.arrow import log_directory
from ottla.arrow.decode import Decoder
from ottla.arrow.log_directory import PartitionLog, topic_partitions
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import CorruptMessage, OffsetOutOfRange, UnknownTopicOrPartition
from ottla.protocol.message_set import write_message_set
from tests.unit.storage.logs import (
    NOW,
    PARTITION,
    SMALL_SEGMENTS,
    append,
    content,
    end_transaction,
    fill,
    open_log,
    read_all,
    transactional,
)


def partition(tmp_path: Path) -> PartitionLog:
    return topic_partitions(tmp_path, PARTITION.topic)[PARTITION.partition]


def values(
    log: PartitionLog, start: int = 0, end: int | None = None, *, read_committed: bool = False
) -> dict[int, bytes]:
    decoder = Decoder(*PARTITION, columns=["offset", "value"], read_committed=read_committed)
    end = log.end_offset(read_committed=read_committed) if end is None else end
    found: dict[int, bytes] = {}
    position = start
    for records, aborted in log.read(start, end, read_committed=read_committed):
        batch = decoder.decode(records, start=position, end=end, aborted=aborted)
        found.update(zip(batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True))
        position = decoder.next_offset
    return found


def test_every_record_is_read_from_any_offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    fill(log, 40)
    log.close(NOW)
    expected = {number: b"%d" % number + bytes(1000) for number in range(40)}
    before = content(tmp_path / "orders-0")
    files = partition(tmp_path)
    assert log.segment_count > 3
    assert (files.start_offset, files.end_offset()) == (0, 40)
    for read_bytes in (log_directory.READ_BYTES, 2500, 100):
        monkeypatch.setattr(log_directory, "READ_BYTES", read_bytes)
        assert values(files) == expected
        for start in range(0, 40, 3):
            assert values(files, start, 37) == {at: expected[at] for at in range(start, 37)}
    assert content(tmp_path / "orders-0") == before


def test_a_log_that_is_being_written_is_read_as_far_as_it_is(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    files = partition(tmp_path)
    assert files.end_offset() == 0
    for number in range(0, 30, 3):
        fill(log, 3, first=number)
        log.write()
        assert files.end_offset() == number + 3
        assert values(files, number) == {at: b"%d" % at + bytes(1000) for at in range(number, number + 3)}


@pytest.mark.parametrize("suffixes", [("index",), ("timeindex",), ("index", "timeindex")])
def test_a_missing_index_costs_only_time(tmp_path: Path, suffixes: Sequence[str]) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    fill(log, 25)
    log.close(NOW)
    for suffix in suffixes:
        for path in (tmp_path / "orders-0").glob(f"*.{suffix}"):
            path.unlink()
    files = partition(tmp_path)
    assert list(values(files, 17)) == list(range(17, 25))
    assert files.offset_at(NOW + 12_000) == 12


def test_an_index_with_the_room_that_kafka_sets_aside_is_searched(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    fill(log, 25)
    log.close(NOW)
    for path in (tmp_path / "orders-0").glob("*index"):
        with path.open("ab") as file:
            file.write(bytes(120_000))
    files = partition(tmp_path)
    assert files.end_offset() == 25
    for start in range(25):
        assert list(values(files, start)) == list(range(start, 25))
        assert files.offset_at(NOW + 1000 * start - 1) == start


def test_an_index_that_lies_is_not_followed(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    fill(log, 25)
    log.close(NOW)
    for path in (tmp_path / "orders-0").glob("*.index"):
        path.write_bytes(bytes.fromhex("00000001000000070000000200000100"))
    files = partition(tmp_path)
    assert files.end_offset() == 25
    assert list(values(files, 6)) == list(range(6, 25))


@pytest.mark.parametrize("cut", [1, 40, 1000, 1100])
def test_the_log_ends_before_a_torn_tail(tmp_path: Path, cut: int) -> None:
    log = open_log(tmp_path / "orders-0")
    fill(log, 10)
    log.close(NOW)
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-cut])
    files = partition(tmp_path)
    last = 9 if cut < 1070 else 8
    assert files.end_offset() == last
    assert list(values(files)) == list(range(last))


def test_the_log_ends_before_a_batch_that_a_power_loss_left_half_empty(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    fill(log, 10)
    log.close(NOW)
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    # What the disk had in the last block, and room that was set aside after it.
    path.write_bytes(path.read_bytes()[:-500] + b"x" * 500 + bytes(3000))
    files = partition(tmp_path)
    assert files.end_offset() == 9
    assert list(values(files)) == list(range(9))


def test_damage_before_the_end_is_an_error_and_not_a_gap(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    fill(log, 25)
    log.close(NOW)
    path = sorted((tmp_path / "orders-0").glob("*.log"))[0]
    data = bytearray(path.read_bytes())
    data[2000:2100] = b"\xff" * 100
    path.write_bytes(data)
    files = partition(tmp_path)
    assert files.end_offset() == 25
    with pytest.raises(CorruptMessage, match="orders-0, the batch at offset 1: the CRC"):
        values(files)
    path.write_bytes(path.read_bytes()[:3500])
    with pytest.raises(CorruptMessage, match=r"\.log has no whole batch at byte"):
        values(files, 2)


def test_the_first_record_of_a_time_is_found(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    fill(log, 30)
    log.close(NOW)
    files = partition(tmp_path)
    assert files.offset_at(0) == 0
    assert [files.offset_at(NOW + 1000 * number) for number in range(30)] == list(range(30))
    assert files.offset_at(NOW + 12_345) == 13
    assert files.offset_at(NOW + 30_000) == -1


def test_deleted_records_are_before_the_start(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    fill(log, 12)
    log.close(NOW)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    files = partition(tmp_path)
    assert files.start_offset == 5
    assert files.offset_at(0) == 5
    (tmp_path / "log-start-offset-checkpoint").write_text("nonsense")
    assert files.start_offset == 0


def test_segments_that_retention_removes_meanwhile_are_out_of_range(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    fill(log, 25)
    log.close(NOW)
    files = partition(tmp_path)
    reading = files.read(0, 25)
    next(reading)
    for path in sorted((tmp_path / "orders-0").glob("*.log"))[:2]:
        path.unlink()
    with pytest.raises(OffsetOutOfRange, match="is gone"):
        list(reading)


def test_committed_records_are_read_up_to_an_open_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    append(log, b"0")
    log.append(transactional(b"1", producer=1, sequence=0), 0, NOW)
    log.append(transactional(b"2", producer=2, sequence=0), 0, NOW)
    end_transaction(log, 1, commit=False)
    end_transaction(log, 2, commit=True)
    fill(log, 20, first=5)
    log.append(transactional(b"25", producer=1, sequence=1), 0, NOW)
    append(log, b"26")
    fill(log, 10, first=27)
    log.append(transactional(b"37", producer=3, sequence=0), 0, NOW)
    log.write()
    files = partition(tmp_path)
    assert files.end_offset() == 38
    assert files.end_offset(read_committed=True) == 25
    committed = values(files, read_committed=True)
    assert list(committed) == [0, 2, *range(5, 25)]
    # The marker may be the next thing in the log, or far away in another segment.
    end_transaction(log, 1, commit=True)
    end_transaction(log, 3, commit=False)
    log.close(NOW)
    assert files.end_offset(read_committed=True) == 40
    assert list(values(files, read_committed=True)) == [0, 2, *range(5, 37)]
    assert list(values(files, 26, read_committed=True)) == [*range(26, 37)]
    assert list(values(files)) == list(read_all(log))
    # Without snapshots of the producers the log itself tells.
    for path in (tmp_path / "orders-0").glob("*.snapshot"):
        path.write_bytes(b"nonsense")
    assert files.end_offset(read_committed=True) == 40


def test_messages_of_old_formats_are_read_too(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    old = [Record(number, NOW, b"k", b"%d" % number) for number in range(4)]
    data = write_message_set(old[:2], 0, 1) + write_message_set(old[2:], 1, 0)
    data += write_batch([Record(4, NOW, None, b"4")], base_offset=4)
    (directory / f"{0:020d}.log").write_bytes(data)
    assert values(partition(tmp_path), 0, 5) == {number: b"%d" % number for number in range(5)}


def test_a_topic_is_found_in_several_directories(tmp_path: Path) -> None:
    for directory, name in (("a", "orders-10"), ("a", "orders-2"), ("b", "orders-0"), ("b", "others-1")):
        (tmp_path / directory).mkdir(exist_ok=True)
        log = open_log(tmp_path / directory / name)
        append(log, b"v")
        log.close(NOW)
    deleted = "orders-5.6d0f5e8a0c5b4b0b8f1f6f2d3c4b5a69-delete"
    (tmp_path / "a" / deleted).mkdir()
    found = topic_partitions(f"{tmp_path / 'a'},{tmp_path / 'b'}", "orders")
    assert list(found) == [0, 2, 10]
    assert found[10].partition == TopicPartition("orders", 10)
    with pytest.raises(UnknownTopicOrPartition, match="holds no partition of payments"):
        topic_partitions(tmp_path / "a", "payments")
    with pytest.raises(UnknownTopicOrPartition, match="is not a directory"):
        topic_partitions(tmp_path / "c", "payments")
