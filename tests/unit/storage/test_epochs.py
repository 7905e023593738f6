from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.epochs import CorruptEpochs, Epochs, format_epochs, parse_epochs
from ottla.storage.files import OS_FILES
from ottla.testing.disk import RecordingFiles


def epochs(directory: Path, *entries: tuple[int, int]) -> Epochs:
    result = Epochs.empty(OS_FILES, str(directory))
    for epoch, offset in entries:
        result.assign(epoch, offset)
    return result


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    epochs(tmp_path, (0, 0), (3, 40))
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n0 0\n3 40\n"
    assert Epochs.load(OS_FILES, str(tmp_path)).entries == [(0, 0), (3, 40)]


def test_a_leader_that_wrote_nothing_is_replaced(tmp_path: Path) -> None:
    assert epochs(tmp_path, (0, 0), (1, 40), (2, 40)).entries == [(0, 0), (2, 40)]


def test_an_epoch_that_is_known_keeps_its_start(tmp_path: Path) -> None:
    known = epochs(tmp_path, (0, 0), (2, 40), (2, 50))
    assert known.entries == [(0, 0), (2, 40)]
    known.assign(2, 30)
    assert known.entries == [(0, 0), (2, 30)]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (0, (0, 0)),
        (1, (1, 20)),
        (2, (1, 20)),
        (3, (3, 40)),
        (4, (3, 40)),
        (5, (5, 99)),
        (6, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_the_end_of_an_epoch_is_the_start_of_the_next(
    tmp_path: Path, asked: int, answer: tuple[int, int]
) -> None:
    known = epochs(tmp_path, (1, 0), (3, 20), (5, 40))
    assert known.end_offset_for(asked, 99) == answer


def test_nothing_is_known_of_an_empty_log(tmp_path: Path) -> None:
    known = epochs(tmp_path)
    assert known.latest == -1
    assert known.end_offset_for(0, 0) == (-1, -1)
    assert known.epoch_for(0) == -1


def test_the_epoch_of_an_offset_is_the_one_that_wrote_it(tmp_path: Path) -> None:
    known = epochs(tmp_path, (1, 5), (3, 20))
    assert [known.epoch_for(offset) for offset in (4, 5, 19, 20, 99)] == [-1, 1, 1, 3, 3]


def test_truncation_forgets_what_begins_at_the_end_or_later(tmp_path: Path) -> None:
    known = epochs(tmp_path, (1, 0), (3, 20), (5, 40))
    known.truncate_to(20)
    assert known.entries == [(1, 0)]
    assert known.latest == 1
    known.save()
    assert parse_epochs((tmp_path / "leader-epoch-checkpoint").read_bytes()) == [(1, 0)]


def test_a_later_start_keeps_the_epoch_that_wrote_it(tmp_path: Path) -> None:
    known = epochs(tmp_path, (1, 0), (3, 20), (5, 40))
    known.start_from(30)
    assert known.entries == [(3, 30), (5, 40)]
    known.start_from(40)
    assert known.entries == [(5, 40)]
    known.start_from(10)
    assert known.entries == [(5, 40)]


@pytest.mark.parametrize(
    "damaged",
    [
        b"1\n0\n",
        b"0\n",
        b"0\n2\n0 0\n",
        b"0\n1\n0\n",
        b"0\n1\n0 -3\n",
        b"0\n2\n3 0\n1 5\n",
        b"0\nx\n",
        b"\xff",
    ],
)
def test_a_damaged_file_is_refused(damaged: bytes) -> None:
    with pytest.raises(CorruptEpochs):
        parse_epochs(damaged)


def test_what_was_written_is_read() -> None:
    assert parse_epochs(format_epochs([(0, 0), (7, 12)])) == [(0, 0), (7, 12)]
    assert parse_epochs(b"") == []


def test_an_epoch_of_a_log_with_synced_records_is_left_to_a_flush_that_has_records_of_it(
    tmp_path: Path,
) -> None:
    files = RecordingFiles(str(tmp_path))
    known = Epochs.empty(files, str(tmp_path))
    known.assign(0, 0)
    assert known.unsynced
    known.durable, known.unsynced = True, False
    written = len(files.operations)
    known.assign(1, 10)
    assert known.stale and not known.unsynced
    assert len(files.operations) == written
    assert known.take_unsaved(10) is None
    assert known.stale
    assert known.take_unsaved(11) == b"0\n2\n0 0\n1 10\n"
    assert not known.stale
    assert known.take_unsaved(11) is None
