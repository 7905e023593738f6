"""Power may go at any moment: whatever is left of a log directory, nothing that was synced is missing.

Every operation of a recorded workload is followed by crash images of what the disk may hold right then; each
is recovered and checked. `OTTLA_CRASH_IMAGES=100000` looks at that many instead of a few thousand
(`make crash`). A failure names the seed, the operation and the image, which are the same every time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from random import Random

import pytest

from ottla.storage.clean_shutdown import CLEAN_SHUTDOWN
from ottla.testing.disk import Disk, Note, RecordingFiles, write_image
from tests.crash.checker import Promises, check, recovered
from tests.crash.workload import Workload

IMAGES = int(os.environ.get("OTTLA_CRASH_IMAGES", "4800"))
STEPS = 45
IMAGES_PER_SEED = 600
SEEDS = range(max(1, IMAGES // IMAGES_PER_SEED))


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Memory, where there is such a thing: thousands of directories come and go."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="ottla-crash-", dir=memory if memory.is_dir() else None))
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_crash_loses_what_was_synced(seed: int, scratch: Path) -> None:
    explore(scratch, seed, recording(scratch))


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_crash_during_recovery_is_a_crash_like_any_other(seed: int, scratch: Path) -> None:
    files = recording(scratch)
    workload = Workload(files.root, seed, files)
    workload.run(STEPS)
    disk, promises = Disk(), Promises()
    every = len(files.operations) // 12
    for number, operation in enumerate(files.operations):
        disk.apply(operation)
        if isinstance(operation, Note):
            promises.note(operation.what)
        if number % every:
            continue
        first = scratch / "first"
        first.mkdir()
        write_image(disk.image(Random(f"{seed}/{number}")), str(first))
        recovery = RecordingFiles(str(first))
        begun = len(recovery.operations)
        with recovered(str(first), workload.settings, recovery):
            pass
        second = Disk()
        for step, repair in enumerate(recovery.operations):
            second.apply(repair)
            if step >= begun:
                root = scratch / "second"
                root.mkdir()
                write_image(second.image(Random(f"{seed}/{number}/{step}")), str(root))
                examine(root, workload, promises, f"seed {seed}, operation {number}, repair {step}", True)
        shutil.rmtree(first)


class ForgetfulFiles(RecordingFiles):
    """A disk, or a program, that leaves some syncs out."""

    def __init__(self, root: str, forgets: str) -> None:
        super().__init__(root)
        self.forgets = forgets
        self.paths: dict[int, str] = {}

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        fd = super().open(path, flags, mode)
        self.paths[fd] = path
        return fd

    def fsync(self, fd: int) -> None:
        if not fnmatch(self.paths[fd], self.forgets):
            super().fsync(fd)

    def sync_directory(self, path: str) -> None:
        if not fnmatch(path + "/", self.forgets):
            super().sync_directory(path)


@pytest.mark.parametrize("forgets", ["*.log", "*/partition.metadata", "*/orders-0/", "*/live/"])
def test_a_sync_that_is_left_out_is_noticed(forgets: str, scratch: Path) -> None:
    (scratch / "live").mkdir()
    files = ForgetfulFiles(str(scratch / "live"), forgets)
    with pytest.raises(AssertionError, match="seed 1, operation"):
        explore(scratch, 1, files)


def test_a_recovery_that_trusts_a_crashed_log_is_noticed(scratch: Path) -> None:
    with pytest.raises(AssertionError, match="seed 1, operation"):
        explore(scratch, 1, recording(scratch), claim_clean_stop=True)


def recording(scratch: Path) -> RecordingFiles:
    (scratch / "live").mkdir()
    return RecordingFiles(str(scratch / "live"))


def explore(
    scratch: Path,
    seed: int,
    files: RecordingFiles,
    *,
    images: int = IMAGES_PER_SEED,
    claim_clean_stop: bool = False,
) -> None:
    """Run a workload, then look at about `images` crashes, spread evenly over all of its operations."""
    workload = Workload(files.root, seed, files)
    workload.run(STEPS)
    disk, promises = Disk(), Promises()
    seen: set[int] = set()
    drawn = 0
    for number, operation in enumerate(files.operations, start=1):
        disk.apply(operation)
        if isinstance(operation, Note):
            promises.note(operation.what)
            seen.clear()  # the same image may now break a promise
        while drawn * len(files.operations) < images * number:
            kind = ("kept", "lost", "mixed", "mixed")[drawn % 4]
            drawn += 1
            rng = Random(f"{seed}/{number}/{drawn}")
            image = disk.kept() if kind == "kept" else disk.lost() if kind == "lost" else disk.image(rng)
            if claim_clean_stop:
                image[CLEAN_SHUTDOWN] = b""
            look = hash(frozenset(image.items()))
            if look in seen:
                continue
            seen.add(look)
            root = scratch / "image"
            root.mkdir()
            write_image(image, str(root))
            what = f"seed {seed}, operation {number}, image {drawn} ({kind})"
            examine(root, workload, promises, what, drawn % 5 == 0)


def examine(root: Path, workload: Workload, promises: Promises, what: str, thorough: bool) -> None:
    try:
        check(str(root), workload, promises, thorough=thorough)
    except Exception as error:
        raise AssertionError(f"{what}: {error!r}") from error
    shutil.rmtree(root)
