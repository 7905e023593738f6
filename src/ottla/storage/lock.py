"""`.lock`: one process at a time works in a log directory.

The lock is a POSIX record lock, which is what Java's `FileLock` takes: a running Apache Kafka and we exclude
each other. Such a lock belongs to the process and not to the descriptor, with two consequences: a second
lock from the same process would succeed, and closing *any* descriptor of the file gives the lock up. Both
are answered by remembering, per process, which lock files are held.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from pathlib import Path

LOCK_FILE = ".lock"

_held: set[tuple[int, int]] = set()  # device and inode of every lock file that this process holds
_held_guard = threading.Lock()


class DirectoryInUse(Exception):
    """Another broker works in the directory."""

    def __init__(self, directory: str) -> None:
        super().__init__(f"{directory} is in use by another broker (its .lock is held)")


class DirectoryLock:
    """Held from construction until `release`, or until the process ends, however it ends."""

    def __init__(self, directory: str) -> None:
        path = str(Path(directory, LOCK_FILE))
        with _held_guard:
            # Asked before opening: closing a second descriptor would release the first one's lock.
            if _identity(path) in _held:
                raise DirectoryInUse(directory)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found = os.fstat(fd)
            except OSError as error:
                os.close(fd)
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise DirectoryInUse(directory) from None
                raise
            self._fd = fd
            self._key = (found.st_dev, found.st_ino)
            _held.add(self._key)

    def release(self) -> None:
        """Give the directory up. The file stays, as with Kafka: removing it would race with a new holder."""
        with _held_guard:
            if self._fd >= 0:
                _held.discard(self._key)
                os.close(self._fd)
                self._fd = -1


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
