"""One process at a time in a log directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.storage.lock import DirectoryInUse, DirectoryLock

HOLDER = """
import sys
from ottla.storage.lock import DirectoryLock
lock = DirectoryLock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""
JAVA_LIKE_HOLDER = """
import fcntl, sys
file = open(sys.argv[1] + "/.lock", "w")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("holder", [HOLDER, JAVA_LIKE_HOLDER])
def test_a_directory_that_another_process_holds_is_refused_until_that_ends(
    holder: str, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(DirectoryInUse, match="in use by another broker"):
            DirectoryLock(str(tmp_path))
        process.kill()
    DirectoryLock(str(tmp_path)).release()


def test_a_second_lock_in_this_process_is_refused_and_does_not_weaken_the_first(tmp_path: Path) -> None:
    lock = DirectoryLock(str(tmp_path))
    with pytest.raises(DirectoryInUse):
        DirectoryLock(str(tmp_path))
    (tmp_path / "alias").symlink_to(tmp_path)
    with pytest.raises(DirectoryInUse):
        DirectoryLock(str(tmp_path / "alias"))
    taken = subprocess.run([sys.executable, "-c", HOLDER, str(tmp_path)], capture_output=True, check=False)
    assert b"DirectoryInUse" in taken.stderr
    lock.release()
    second = DirectoryLock(str(tmp_path))
    lock.release()  # again: it must not give up what the second one holds
    with pytest.raises(DirectoryInUse):
        DirectoryLock(str(tmp_path))
    second.release()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        DirectoryLock(str(tmp_path / "d"))
    assert not (tmp_path / "elsewhere").exists()
