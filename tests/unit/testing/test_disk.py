"""The test disk keeps its own promises: synced means there, and not synced means anything."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random

import pytest

from ottla.core.files import Files
from ottla.storage.files import OS_FILES
from ottla.testing.disk import (
    FaultyFiles,
    Image,
    RecordingFiles,
    SyncDirectory,
    crash_images,
    read_image,
    write_image,
)

FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND


def images(files: RecordingFiles, count: int = 200) -> list[Image]:
    return list(crash_images(files.operations, len(files.operations), Random(1), count))


def put(files: Files, path: Path, data: bytes, *, sync: bool = False) -> int:
    fd = files.open(str(path), FLAGS)
    files.write(fd, data)
    if sync:
        files.fdatasync(fd)
    return fd


def contents(found: list[Image], path: str) -> set[bytes | None]:
    return {image[path] for image in found if path in image}


def test_bytes_that_were_synced_under_a_synced_name_are_in_every_image(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    put(files, tmp_path / "f", b"x" * 3000, sync=True)
    files.sync_directory(str(tmp_path))
    assert all(image == {"f": b"x" * 3000} for image in images(files))


def test_a_file_whose_directory_was_not_synced_may_be_missing_though_its_bytes_were(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    put(files, tmp_path / "f", b"x", sync=True)
    found = images(files)
    assert {tuple(image) for image in found} == {(), ("f",)}


def test_bytes_that_were_not_synced_are_lost_kept_torn_by_sector_or_zero(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    fd = put(files, tmp_path / "f", b"a" * 700, sync=True)
    files.sync_directory(str(tmp_path))
    files.write(fd, b"b" * 2000)
    found = contents(images(files, 500), "f")
    assert b"a" * 700 in found
    assert b"a" * 700 + b"b" * 2000 in found
    assert b"a" * 700 + bytes(324) + b"b" * 512 in found  # a later sector without the one before it
    assert b"a" * 700 + bytes(2000) in found  # only the length
    for content in found:
        assert content is not None
        assert content.startswith(b"a" * 700)
        for start in range(1024, len(content), 512):
            assert len(set(content[start : start + 512])) <= 1, "a sector is whole or it is not"


def test_sectors_keep_any_version_that_they_ever_had(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    fd = put(files, tmp_path / "f", b"1" * 1024, sync=True)
    files.sync_directory(str(tmp_path))
    files.pwrite(fd, b"2" * 1024, 0)
    files.pwrite(fd, b"3" * 1024, 0)
    found = contents(images(files, 500), "f")
    pairs = {(content[0:1], content[512:513]) for content in found if content is not None}
    assert len(pairs) == 9


def test_a_rename_happens_whole_or_not_at_all(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    put(files, tmp_path / "f", b"old", sync=True)
    files.sync_directory(str(tmp_path))
    put(files, tmp_path / "f.tmp", b"new", sync=True)
    files.rename(str(tmp_path / "f.tmp"), str(tmp_path / "f"))
    assert {tuple(sorted(image.items())) for image in images(files)} == {
        (("f", b"old"),),
        (("f", b"old"), ("f.tmp", b"new")),
        (("f", b"new"),),
    }
    files.sync_directory(str(tmp_path))
    assert all(image == {"f": b"new"} for image in images(files))


def test_a_directory_and_all_in_it_depend_on_the_parent_being_synced(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    files.mkdir(str(tmp_path / "d"))
    put(files, tmp_path / "d" / "f", b"x", sync=True)
    files.sync_directory(str(tmp_path / "d"))
    assert {tuple(image) for image in images(files)} == {(), ("d", "d/f")}
    files.sync_directory(str(tmp_path))
    assert all(set(image) == {"d", "d/f"} for image in images(files))
    files.rename(str(tmp_path / "d"), str(tmp_path / "e"))
    files.sync_directory(str(tmp_path))
    fd = files.open(str(tmp_path / "e" / "f"), os.O_WRONLY)
    files.write(fd, b"y")
    files.fsync(fd)
    assert all(image == {"e": None, "e/f": b"y"} for image in images(files))


def test_names_of_one_directory_come_and_go_in_order(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    for name in "abc":
        put(files, tmp_path / name, b"")
    assert {tuple(image) for image in images(files)} == {(), ("a",), ("a", "b"), ("a", "b", "c")}


def test_a_truncation_that_was_not_synced_may_be_undone(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    fd = put(files, tmp_path / "f", b"a" * 1500, sync=True)
    files.sync_directory(str(tmp_path))
    files.ftruncate(fd, 600)
    files.write(fd, b"b" * 100)
    found = contents(images(files, 500), "f")
    assert {b"a" * 1500, b"a" * 600, b"a" * 600 + b"b" * 100} <= found
    files.fsync(fd)
    assert contents(images(files), "f") == {b"a" * 600 + b"b" * 100}


def test_a_name_that_is_used_again_is_another_file(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    fd = put(files, tmp_path / "f", b"one", sync=True)
    files.unlink(str(tmp_path / "f"))
    files.close(fd)
    put(files, tmp_path / "f", b"two")
    files.sync_directory(str(tmp_path))
    found = contents(images(files), "f")
    assert b"two" in found
    assert b"one" not in found


def test_what_was_there_before_the_recording_is_safe(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"x")
    files = RecordingFiles(str(tmp_path))
    assert isinstance(files.operations[-1], SyncDirectory)
    assert all(image == {"d": None, "d/f": b"x"} for image in images(files))


def test_gathered_writes_and_offsets_are_recorded_as_they_happened(tmp_path: Path) -> None:
    files = RecordingFiles(str(tmp_path))
    fd = files.open(str(tmp_path / "f"), os.O_RDWR | os.O_CREAT)
    files.writev(fd, [b"ab", b"cd"])
    files.pwrite(fd, b"X", 1)
    files.write(fd, b"e")
    kept = next(crash_images(files.operations, len(files.operations), Random(1)))
    assert kept == {"f": b"aXcde"} == {"f": (tmp_path / "f").read_bytes()}


def test_an_image_can_be_written_and_read(tmp_path: Path) -> None:
    image: Image = {"d": None, "d/f": b"x", "g": b""}
    write_image(image, str(tmp_path))
    assert read_image(str(tmp_path)) == image


def test_the_asked_for_operation_fails_and_no_other(tmp_path: Path) -> None:
    files = FaultyFiles(OS_FILES)
    files.fail(on="fsync", path="*.log", after=1)
    log, index = put(files, tmp_path / "a.log", b"x"), put(files, tmp_path / "a.index", b"x")
    files.fsync(index)
    files.fdatasync(log)
    with pytest.raises(OSError, match="Input/output error"):
        files.fdatasync(log)
    files.fsync(log)


def test_a_write_can_be_cut_short_or_find_the_disk_full(tmp_path: Path) -> None:
    files = FaultyFiles(OS_FILES)
    files.fail(on="write", short=3)
    files.fail(on="write", error=errno.ENOSPC, after=1, times=2)
    fd = files.open(str(tmp_path / "f"), FLAGS)
    assert files.writev(fd, [b"ab", b"cd"]) == 3
    assert files.write(fd, b"efgh") == 4
    for _ in range(2):
        with pytest.raises(OSError) as caught:
            files.write(fd, b"x")
        assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / "f").read_bytes() == b"abcefgh"
