from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ottla.core.files import Buffer
from ottla.protocol.batch import Record, iter_batches, read_header, write_batch
from ottla.protocol.errors import (
    CorruptMessage,
    InvalidRecord,
    KafkaError,
    OffsetOutOfRange,
)
from ottla.storage.files import OsFiles
from ottla.storage.log import Origin
from ottla.testing.disk import FaultyFiles
from tests.unit.storage.logs import (
    NOW,
    SMALL_SEGMENTS,
    append,
    batch,
    content,
    fill,
    open_log,
    read_all,
    values,
)


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
    for number in range(0, 3000, 17):
        assert values(log.read(number, 1, 3000)) == [b"%d" % number]


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
