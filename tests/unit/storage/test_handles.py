from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ottla.storage.files import OsFiles
from ottla.storage.handles import Handle, Handles, shared_handles
from ottla.testing.disk import FaultyFiles


def made(directory: Path, handles: Handles, count: int) -> list[Handle]:
    result = []
    for number in range(count):
        (directory / str(number)).write_bytes(b"%d" % number)
        result.append(Handle(handles, str(directory / str(number))))
    return result


def test_no_more_files_are_open_than_the_limit(tmp_path: Path) -> None:
    handles = Handles(OsFiles(), limit=4)
    for handle in made(tmp_path, handles, 20) * 3:
        assert os.pread(handle.get(), 10, 0).decode() == Path(handle.path).name
        assert len(handles) <= 4


def test_a_file_in_use_stays_open_and_an_idle_one_is_closed(tmp_path: Path) -> None:
    handles = Handles(OsFiles(), limit=3)
    busy, *others = made(tmp_path, handles, 10)
    busy.get()
    for other in others:
        fd = busy.get()
        other.get()
        other.used = False
        assert busy.fd == fd


def test_a_pinned_file_is_not_closed_before_its_last_unpin(tmp_path: Path) -> None:
    handles = Handles(OsFiles(), limit=2)
    pinned, *others = made(tmp_path, handles, 6)
    fd = pinned.pin()
    pinned.used = False
    for other in others:
        other.get()
    pinned.close()
    assert os.pread(fd, 10, 0) == b"0"
    pinned.unpin()
    assert pinned.fd == -1
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)


def test_files_over_the_limit_are_opened_when_all_others_are_pinned(tmp_path: Path) -> None:
    handles = Handles(OsFiles(), limit=2)
    opened = made(tmp_path, handles, 4)
    assert len({handle.pin() for handle in opened}) == 4


def test_when_the_process_has_no_more_files_to_give_one_of_ours_is_closed(tmp_path: Path) -> None:
    files = FaultyFiles(OsFiles())
    handles = Handles(files)
    first, second, third = made(tmp_path, handles, 3)
    first.get()
    files.fail(on="open", error=errno.EMFILE)
    assert os.pread(second.get(), 1, 0) == b"1"
    assert first.fd == -1
    second.pin()
    files.fail(on="open", error=errno.EMFILE)
    with pytest.raises(OSError, match="Too many open files"):
        third.get()


def test_what_takes_the_room_that_was_made_for_it_gets_more_or_gives_up(tmp_path: Path) -> None:
    files = FaultyFiles(OsFiles())
    handles = Handles(files)
    opened = made(tmp_path, handles, 4)
    for handle in opened[:3]:
        handle.get()

    def act(most: int) -> int:
        """Opens a file of ours, and then another, for which there is room if we have no more than so many."""
        opened[3].get()
        if len(handles) > most:
            raise OSError(errno.EMFILE, "Too many open files")
        return len(handles)

    assert handles.with_room(lambda: act(2)) <= 2
    with pytest.raises(OSError, match="Too many open files"):
        handles.with_room(lambda: act(0))


def test_a_file_that_is_gone_is_not_made_again_by_reading_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Handle(Handles(OsFiles()), str(tmp_path / "gone")).get()
    assert not (tmp_path / "gone").exists()


def test_logs_over_the_same_files_share_one_limit() -> None:
    files = OsFiles()
    assert shared_handles(files) is shared_handles(files)
    assert shared_handles(files) is not shared_handles(OsFiles())
