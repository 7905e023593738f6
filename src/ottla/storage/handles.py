"""Open files, and never too many of them.

A broker with thousands of partitions has many more files than a process may open. A `Handle` stands for a
file whether or not it is open at the moment; `Handles` closes those that were not used lately to make room.
The choice is the clock algorithm: a use sets a flag, which costs the hot path one attribute, and a hand that
goes round clears flags until it finds a handle nobody used since it last came by.
"""

from __future__ import annotations

import mmap
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from ottla.core.files import Files
from ottla.storage.files import is_of_the_disk

MOST_OPEN: Final = 4096
# For what is open only for a moment: directories and small files that are synced, modules.
RESERVED: Final = 64
# Beside the open files there may be a quarter as many maps.
MAPS_SHARE: Final = 4
NO_LIMIT: Final = 1 << 31

T = TypeVar("T")


class Handle:
    """One file that is opened when it is needed. Reads and appends; a write always lands at the end."""

    __slots__ = ("_closing", "_handles", "_pins", "fd", "path", "used")

    def __init__(self, handles: Handles, path: str) -> None:
        self._handles = handles
        self._pins = 0
        self._closing = False
        self.fd = -1
        self.path = path
        self.used = False

    def get(self) -> int:
        """A file descriptor that is good until the next handle is asked for; `pin` keeps it for longer."""
        self.used = True
        fd = self.fd
        return fd if fd >= 0 else self._handles._open(self, os.O_RDWR | os.O_APPEND)

    def create(self) -> int:
        """As `get`, for a file that may not be there yet."""
        self.used = True
        fd = self.fd
        return fd if fd >= 0 else self._handles._open(self, os.O_RDWR | os.O_APPEND | os.O_CREAT)

    def pin(self) -> int:
        """A file descriptor that stays open, for another thread, until `unpin`."""
        fd = self.get()
        self._pins += 1
        return fd

    def unpin(self) -> None:
        self._pins -= 1
        if self._closing and not self._pins:
            self.close()

    def close(self) -> None:
        """Close the file now, or at the last `unpin`. The handle can be used again."""
        if self.fd < 0:
            return
        if self._pins:
            self._closing = True
        else:
            self._handles._close(self)


class Handles:
    """The files that are open, at most `limit` of them as long as that many are not pinned."""

    def __init__(self, files: Files, limit: int | None = None) -> None:
        self.files = files
        self.limit = _default_limit() if limit is None else limit
        # Maps of files that readers still hold. Each of them keeps a file descriptor, too.
        self.maps: WeakSet[mmap.mmap] = WeakSet()
        self.maps_limit = self.limit // MAPS_SHARE
        # Blocks of indexes (`index_file`) by their file and number, the oldest first.
        self.index_blocks: OrderedDict[tuple[object, int], Any] = OrderedDict()
        # In the order in which the hand comes by.
        self._ring: dict[Handle, None] = {}

    def __len__(self) -> int:
        return len(self._ring)

    def _open(self, handle: Handle, flags: int) -> int:
        if len(self._ring) >= self.limit:
            self.make_room()
        handle._closing = False
        handle.fd = self.with_room(lambda: self.files.open(handle.path, flags))
        self._ring[handle] = None
        return handle.fd

    def with_room(self, act: Callable[[], T]) -> T:
        """Do what opens files; when the process can open no more, close some of ours and do it again.

        Connections may have taken more than their share. If nothing of ours is left to close, the error is
        the caller's, and not one of the disk (`is_of_the_disk`).
        """
        wanted = 0
        while True:
            try:
                return act()
            except OSError as error:
                # More every time: it may open again, by handles, what was just closed for it.
                wanted += 1
                if is_of_the_disk(error) or not all(self.make_room() for _ in range(wanted)):
                    raise

    def _close(self, handle: Handle) -> None:
        fd, handle.fd = handle.fd, -1
        handle._closing = False
        del self._ring[handle]
        self.files.close(fd)

    def make_room(self) -> bool:
        """Close a file; False if all are pinned."""
        # Twice round clears every flag and comes back, unless all are pinned. A file may be closed with data
        # that is not synced: the data stays with the kernel, and so does an error of writing it back, which
        # the next fsync of the file reports even when it was reopened in between.
        for _ in range(2 * len(self._ring)):
            handle = next(iter(self._ring))
            if not handle._pins and not handle.used:
                self._close(handle)
                return True
            handle.used = False
            del self._ring[handle]
            self._ring[handle] = None
        return False


def _default_limit() -> int:
    """Half of what the process may open: the other half is for connections."""
    return max(16, min(MOST_OPEN, _files_of_process() // 2))


def files_for_connections() -> int:
    """How many connections there may be, so that logs and threads can always open what they need.

    A process without a file descriptor left cannot even import a module, and puts its clients off.
    """
    ours = _default_limit()
    return max(16, _files_of_process() - ours - ours // MAPS_SHARE - RESERVED)


def _files_of_process() -> int:
    try:
        import resource
    except ImportError:
        return NO_LIMIT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return NO_LIMIT if soft == resource.RLIM_INFINITY else soft


_shared: WeakKeyDictionary[Files, Handles] = WeakKeyDictionary()


def shared_handles(files: Files) -> Handles:
    """The handles of all logs that use these file operations: the limit of open files is one per process."""
    handles = _shared.get(files)
    if handles is None:
        handles = _shared[files] = Handles(files)
    return handles
