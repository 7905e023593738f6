"""Offset checkpoint files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.core.types import TopicPartition
from ottla.storage.checkpoints import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    CheckpointError,
    Checkpoints,
    format_offsets,
    parse_offsets,
    read_offsets,
    read_offsets_or_none,
    write_offsets,
)
from ottla.storage.files import OS_FILES
from ottla.testing.disk import FaultyFiles, RecordingFiles, Rename, Sync, SyncDirectory

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)


def test_the_text_is_the_one_kafka_writes() -> None:
    assert format_offsets({ORDERS_0: 4711, ORDERS_1: 0}) == b"0\n2\norders 0 4711\norders 1 0\n"
    assert format_offsets({}) == b"0\n0\n"


def test_what_was_written_reads_back(tmp_path: Path) -> None:
    path = str(tmp_path / RECOVERY_POINTS)
    offsets = {TopicPartition("a.b_c-d", 12): 2**62, ORDERS_0: 0}
    write_offsets(OS_FILES, path, offsets)
    assert read_offsets(path) == offsets
    assert [entry.name for entry in tmp_path.iterdir()] == [RECOVERY_POINTS]


def test_an_empty_file_has_no_entries_and_a_missing_one_no_meaning(tmp_path: Path) -> None:
    assert parse_offsets(b"") == {}
    assert read_offsets_or_none(str(tmp_path / "nothing")) is None


def test_kafka_s_tolerance_for_white_space_is_ours() -> None:
    assert parse_offsets(b"0\n1\norders\t0   17\n") == {ORDERS_0: 17}
    assert parse_offsets(b"0\n1\norders 0 17") == {ORDERS_0: 17}


@pytest.mark.parametrize(
    "text",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"0\n",
        b"0\nmany\n",
        b"0\n2\norders 0 1\n",
        b"0\n0\norders 0 1\n",
        b"0\n1\norders 0\n",
        b"0\n1\norders 0 1 2\n",
        b"0\n1\norders zero 1\n",
        b"0\n1\norders 0 1_000\n",
        b"0\n1\norders -1 1\n",
        b"\0\0\0\0",
        b"0\n1\norders 0 \xff\n",
    ],
)
def test_a_damaged_file_is_an_error_or_counts_as_missing(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / RECOVERY_POINTS
    path.write_bytes(text)
    with pytest.raises(CheckpointError):
        read_offsets(str(path))
    assert read_offsets_or_none(str(path)) is None


def test_a_replacement_is_synced_before_it_gets_its_name_and_the_name_after(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    write_offsets(files, str(tmp_path / RECOVERY_POINTS), {ORDERS_0: 1})
    kinds = [type(operation) for operation in files.operations]
    assert kinds.index(Sync) < kinds.index(Rename) < len(kinds) - 1
    assert kinds[-1] is SyncDirectory


def test_checkpoints_that_say_the_same_are_not_written_again(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    checkpoints = Checkpoints(str(tmp_path), files)
    checkpoints.collect({HIGH_WATERMARKS: {ORDERS_0: 5}}).write()
    operations = len(files.operations)
    checkpoints.collect({HIGH_WATERMARKS: {ORDERS_0: 5}}).write()
    assert len(files.operations) == operations
    checkpoints.collect({HIGH_WATERMARKS: {ORDERS_0: 6}}).write()
    assert read_offsets(str(tmp_path / HIGH_WATERMARKS)) == {ORDERS_0: 6}


def test_a_late_write_of_older_offsets_changes_nothing(tmp_path: Path) -> None:
    checkpoints = Checkpoints(str(tmp_path), OS_FILES)
    older = checkpoints.collect({RECOVERY_POINTS: {ORDERS_0: 9}})
    checkpoints.collect({RECOVERY_POINTS: {ORDERS_0: 4}}).write()
    older.write()
    assert read_offsets(str(tmp_path / RECOVERY_POINTS)) == {ORDERS_0: 4}


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    files = FaultyFiles(OS_FILES)
    checkpoints = Checkpoints(str(tmp_path), files)
    checkpoints.collect({RECOVERY_POINTS: {ORDERS_0: 1}}).write()
    files.fail(on="fsync", path="*recovery-point*")
    with pytest.raises(OSError, match="Input/output"):
        checkpoints.collect({RECOVERY_POINTS: {ORDERS_0: 2}}).write()
    assert Checkpoints(str(tmp_path), OS_FILES).recovery_points == {ORDERS_0: 1}
