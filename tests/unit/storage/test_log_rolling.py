from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import (
    KafkaError,
    RecordListTooLarge,
)
from ottla.storage.log import Log
from tests.unit.storage.logs import (
    NOW,
    SMALL_SEGMENTS,
    append,
    batch,
    fill,
    open_log,
    read_all,
    settings,
)


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


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


def test_the_active_segment_of_a_compacted_topic_ends_in_time_to_be_compacted(tmp_path: Path) -> None:
    compacted = {"cleanup_policy": frozenset({"compact"}), "max_compaction_lag_ms": 1000}
    log = open_log(tmp_path / "log", **compacted)
    for late in (0, 1000, 1001):
        append(log, b"a", timestamp=NOW + late)
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
