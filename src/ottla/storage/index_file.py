"""What the three index files of a segment have in common: entries of one size, appended, read by number.

An index is plain reads and writes, never a memory map. Entries wait in memory until there are enough of
them to write, or until the segment is closed: losing them costs nothing, because a start after a crash
rebuilds the indexes of every segment that was not completely synced.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ottla.storage.files import write_whole
from ottla.storage.handles import Handle, Handles


class CorruptIndex(Exception):
    """The file does not hold what an index holds. It is rebuilt from the log."""


class IndexFile:
    """A file of entries of `entry_bytes` each.

    Kafka gives the index of its active segment its full size in advance, filled with zeros, and cuts it when
    the segment is closed. A file that stopped growing because its broker was killed still has them, so the
    number of entries is not simply the size of the file.
    """

    __slots__ = ("_count", "entry_bytes", "handle", "handles")

    def __init__(self, handles: Handles, path: str, entry_bytes: int) -> None:
        self.handles = handles
        self.handle = Handle(handles, path)
        self.entry_bytes = entry_bytes
        self._count = -1

    @property
    def count(self) -> int:
        """How many entries the file has. Raises `CorruptIndex` for a file of an impossible size."""
        if self._count < 0:
            size = os.fstat(self.handle.get()).st_size
            if size % self.entry_bytes:
                raise CorruptIndex(
                    f"{self.handle.path} has {size} bytes, not a multiple of {self.entry_bytes}"
                )
            self._count = self._without_padding(size // self.entry_bytes)
        return self._count

    def _without_padding(self, count: int) -> int:
        """The number of entries before the zeros that a file may end in; entries come first, so bisect."""
        if count < 2 or self._has_entry(count - 1):
            return count
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if self._has_entry(middle):
                low = middle + 1
            else:
                high = middle
        return low

    def _has_entry(self, number: int) -> bool:
        return any(os.pread(self.handle.get(), self.entry_bytes, number * self.entry_bytes))

    def read(self, number: int) -> bytes:
        entry = os.pread(self.handle.get(), self.entry_bytes, number * self.entry_bytes)
        if len(entry) != self.entry_bytes:
            raise CorruptIndex(f"{self.handle.path} ends before entry {number}")
        return entry

    def read_all(self) -> bytes:
        return os.pread(self.handle.get(), self.count * self.entry_bytes, 0)

    def last_where(self, matches: Callable[[bytes], bool]) -> int:
        """The number of the last entry that matches, -1 if none. Those that match come first."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if matches(self.read(middle)):
                low = middle + 1
            else:
                high = middle
        return low - 1

    def append(self, entries: bytes) -> None:
        count = self.count
        fd = self.handle.get()
        if os.fstat(fd).st_size != count * self.entry_bytes:
            self.handles.files.ftruncate(fd, count * self.entry_bytes)
        write_whole(self.handles.files, fd, entries)
        self._count = count + len(entries) // self.entry_bytes

    def create(self) -> None:
        """Make the file, or make it empty."""
        fd = self.handle.create()
        if os.fstat(fd).st_size:
            self.handles.files.ftruncate(fd, 0)
        self._count = 0

    def truncate(self, count: int) -> None:
        if count < self.count:
            self.handles.files.ftruncate(self.handle.get(), count * self.entry_bytes)
            self._count = count

    def trim(self) -> None:
        """Cut off padding."""
        size = self.count * self.entry_bytes
        fd = self.handle.get()
        if os.fstat(fd).st_size != size:
            self.handles.files.ftruncate(fd, size)
