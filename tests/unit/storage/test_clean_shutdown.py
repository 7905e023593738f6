"""The file that says that the last run stopped cleanly."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.clean_shutdown import (
    CLEAN_SHUTDOWN,
    UNKNOWN_EPOCH,
    take_clean_shutdown,
    write_clean_shutdown,
)
from ottla.storage.files import OS_FILES
from ottla.testing.disk import RecordingFiles, SyncDirectory, Unlink


def test_the_text_is_the_one_kafka_writes(tmp_path: Path) -> None:
    write_clean_shutdown(OS_FILES, str(tmp_path), 17)
    assert (tmp_path / CLEAN_SHUTDOWN).read_bytes() == b'{"version":0,"brokerEpoch":17}'


def test_it_is_believed_once(tmp_path: Path) -> None:
    write_clean_shutdown(OS_FILES, str(tmp_path), 17)
    assert take_clean_shutdown(OS_FILES, str(tmp_path)) == 17
    assert take_clean_shutdown(OS_FILES, str(tmp_path)) is None


def test_no_file_means_a_crash(tmp_path: Path) -> None:
    assert take_clean_shutdown(OS_FILES, str(tmp_path)) is None


def test_the_empty_file_of_an_older_kafka_is_a_clean_stop(tmp_path: Path) -> None:
    (tmp_path / CLEAN_SHUTDOWN).touch()
    assert take_clean_shutdown(OS_FILES, str(tmp_path)) == UNKNOWN_EPOCH


@pytest.mark.parametrize("text", [b"\0" * 30, b"{", b"[]", b'{"version":0,"brokerEpoch":"x"}'])
def test_a_damaged_file_counts_as_a_crash_and_is_removed(text: bytes, tmp_path: Path) -> None:
    (tmp_path / CLEAN_SHUTDOWN).write_bytes(text)
    assert take_clean_shutdown(OS_FILES, str(tmp_path)) is None
    assert not (tmp_path / CLEAN_SHUTDOWN).exists()


def test_its_removal_is_synced_before_anything_else_happens(tmp_path: Path) -> None:
    write_clean_shutdown(OS_FILES, str(tmp_path), 17)
    files = RecordingFiles(str(tmp_path))
    before = len(files.operations)
    take_clean_shutdown(files, str(tmp_path))
    assert [type(operation) for operation in files.operations[before:]] == [Unlink, SyncDirectory]
