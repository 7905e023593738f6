"""The real file operations: `core.files.Files` as the operating system gives them."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from ottla.core.files import Buffer, Files

# The process, or the machine, has as many files open as it may. Nothing but an attempt to open another one
# ends like this, so nothing was changed by it.
OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE})
# IOV_MAX on Linux, the BSDs and macOS: one gather write takes no more buffers than this.
MOST_BUFFERS = 1024


class OsFiles:
    """`core.files.Files` made of the functions of `os` themselves, so that a call costs nothing extra."""

    close = staticmethod(os.close)
    write = staticmethod(os.write)
    writev = staticmethod(os.writev)
    pwrite = staticmethod(os.pwrite)
    ftruncate = staticmethod(os.ftruncate)
    fsync = staticmethod(os.fsync)
    # macOS has no fdatasync.
    fdatasync = staticmethod(getattr(os, "fdatasync", os.fsync))
    rename = staticmethod(os.rename)
    unlink = staticmethod(os.unlink)
    rmdir = staticmethod(os.rmdir)

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        try:
            return os.open(path, flags | os.O_CLOEXEC, mode)
        except OSError as error:
            if error.errno == errno.ENOMEM:
                # From a write or a sync this would mean the worst; here the machine just cannot open it.
                raise OSError(errno.ENFILE, os.strerror(errno.ENFILE), path) from error
            raise

    def mkdir(self, path: str) -> None:
        Path(path).mkdir(mode=0o755)

    def sync_directory(self, path: str) -> None:
        fd = self.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


OS_FILES: Files = OsFiles()


def is_of_the_disk(error: BaseException) -> bool:
    """Whether an error says something about the disk, and not that no more files can be opened."""
    return not (isinstance(error, OSError) and error.errno in OUT_OF_FILES)


def write_whole(files: Files, fd: int, data: Buffer) -> None:
    """Write all of `data` where the file descriptor stands; the kernel may take it in pieces."""
    written = files.write(fd, data)
    if written < len(data):
        rest = memoryview(data)[written:]
        while rest:
            rest = rest[files.write(fd, rest) :]


def gather_whole(files: Files, fd: int, buffers: Sequence[Buffer]) -> None:
    """Write all of `buffers`, one after the other, with as few calls as the kernel allows."""
    for first in range(0, len(buffers), MOST_BUFFERS):
        chunk = buffers[first : first + MOST_BUFFERS]
        written = files.writev(fd, chunk)
        for buffer in chunk:
            # Short writes are rare (a full disk, a signal): what was left out goes buffer by buffer.
            if written >= len(buffer):
                written -= len(buffer)
            else:
                write_whole(files, fd, memoryview(buffer)[written:])
                written = 0


def write_file(files: Files, path: str, data: Buffer, *, sync: bool) -> None:
    """Create or replace the content of a file, not atomically."""
    fd = files.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_whole(files, fd, data)
        if sync:
            files.fsync(fd)
    finally:
        files.close(fd)


def write_atomically(files: Files, path: str, data: Buffer) -> None:
    """Replace a file so that a crash leaves the old or the new content, and after return the new one."""
    temporary = path + ".tmp"
    write_file(files, temporary, data, sync=True)
    files.rename(temporary, path)
    files.sync_directory(str(Path(path).parent))
