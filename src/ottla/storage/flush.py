"""One sync of a log to disk.

It is begun on the loop, which decides what it covers, carried out in a thread or, if it is of one file only,
by the kernel, and finished on the loop, which then knows that everything up to `end_offset` survives a power
cut. An error while syncing is final: the kernel may have dropped the pages it could not write, so the same
sync is never tried again. But a file that could not be opened, because the process has too many open, is no
sync that failed, and then the flush may be tried again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ottla.core.files import Files
from ottla.storage.files import OsFiles, is_of_the_disk, write_atomically
from ottla.storage.handles import Handle


class Flush:
    __slots__ = (
        "_directories",
        "_failed",
        "_fds",
        "_files",
        "_handles",
        "_paths",
        "_replaced",
        "end_offset",
        "truncations",
    )

    def __init__(
        self,
        files: Files,
        *,
        end_offset: int,
        truncations: int,
        handles: Sequence[Handle],
        fds: Sequence[int],
        paths: Sequence[str],
        directories: Sequence[str],
        replaced: Mapping[str, bytes],
        failed: Callable[[], None],
    ) -> None:
        self._files = files
        self.end_offset = end_offset
        # How often the log had been truncated at the beginning; if it is again, `end_offset` means nothing.
        self.truncations = truncations
        self._handles = handles
        self._fds = fds
        self._paths = paths
        self._directories = directories
        # Small files that get a new content, which is on the disk before it has the name.
        self._replaced = replaced
        self._failed = failed

    @property
    def only_file(self) -> int | None:
        """The open file whose sync is all that there is to do; None if there is more, or in a test."""
        if type(self._files) is not OsFiles or self._replaced or self._paths or self._directories:
            return None
        return self._fds[0] if len(self._fds) == 1 else None

    def fail(self) -> None:
        """Take note that it could not be synced, of which `sync` itself takes note."""
        self._failed()

    def sync(self) -> None:
        """Sync everything. Runs in a thread; OSError means that the log directory has failed.

        If it is not of the disk (`is_of_the_disk`), no sync has failed and it may be called again.
        """
        try:
            for path, data in self._replaced.items():
                with suppress(FileNotFoundError):  # the partition has been deleted
                    write_atomically(self._files, path, data)
            for fd in self._fds:
                self._files.fdatasync(fd)
            for path in self._paths:
                self._sync_file(path)
            # Names last: a name that survives then stands for content that does.
            for directory in self._directories:
                self._files.sync_directory(directory)
        except OSError as error:
            if is_of_the_disk(error):
                self._failed()
            raise

    def _sync_file(self, path: str) -> None:
        try:
            fd = self._files.open(path, os.O_RDWR)
        except FileNotFoundError:
            # Retention was faster.
            return
        try:
            self._files.fsync(fd)
        finally:
            self._files.close(fd)

    def release(self) -> None:
        """Give the files back. They may be closed then, without which others might not be opened."""
        if self._fds:
            unpin_all(self._handles)
        self._fds = ()

    def pin_again(self) -> None:
        """Take the files that were given back, for a sync after all. OSError and it has none."""
        # Retention may have been faster.
        self._handles = [each for each in self._handles if each.fd >= 0 or Path(each.path).exists()]
        self._fds = pin_all(self._handles)


def pin_all(handles: Sequence[Handle]) -> list[int]:
    """The open files of handles; all of them, or OSError and none is pinned."""
    fds: list[int] = []
    try:
        fds.extend(handle.pin() for handle in handles)
    except OSError:
        unpin_all(handles[: len(fds)])
        raise
    return fds


def unpin_all(handles: Sequence[Handle]) -> None:
    for handle in handles:
        handle.unpin()
