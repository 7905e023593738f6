"""What the three index files of a segment have in common: entries of one size, appended, read by number.

An index is plain reads and writes, never a memory map. Entries wait in memory until there are enough of
them to write, or until the segment is closed: losing them costs nothing, because a start after a crash
rebuilds the indexes of every segment that was not completely synced.
"""

from __future__ import annotations

import os
from struct import Struct
from typing import Final

from ottla.storage.files import write_whole
from ottla.storage.handles import Handle, Handles

# Entries are searched in blocks of about a page.
BLOCK_ENTRIES: Final = 512
Block = tuple[int, bytes]


class CorruptIndex(Exception):
    """The file does not hold what an index holds. It is rebuilt from the log."""


class IndexFile:
    """A file of entries.

    Kafka gives the index of its active segment its full size in advance, filled with zeros, and cuts it when
    the segment is closed. A file that stopped growing because its broker was killed still has them, so the
    number of entries is not simply the size of the file.
    """

    __slots__ = ("_block", "_count", "entry", "handle", "handles")

    def __init__(self, handles: Handles, path: str, entry: Struct) -> None:
        self.handles = handles
        self.handle = Handle(handles, path)
        self.entry = entry
        self._count = -1
        # The entries that were searched last, as they are in the file, and the number of the first of them.
        self._block: Block = 0, b""

    @property
    def count(self) -> int:
        """How many entries the file has. Raises `CorruptIndex` for a file of an impossible size."""
        if self._count < 0:
            size = os.fstat(self.handle.get()).st_size
            if size % self.entry.size:
                raise CorruptIndex(
                    f"{self.handle.path} has {size} bytes, not a multiple of {self.entry.size}"
                )
            self._count = self._without_padding(size // self.entry.size)
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
        return any(os.pread(self.handle.get(), self.entry.size, number * self.entry.size))

    def read(self, number: int) -> tuple[int, ...]:
        """The entry of that number, counted from 0."""
        first, block = self._block
        at = (number - first) * self.entry.size
        if 0 <= at < len(block):
            return self.entry.unpack_from(block, at)
        data = os.pread(self.handle.get(), self.entry.size, number * self.entry.size)
        if len(data) != self.entry.size:
            raise CorruptIndex(f"{self.handle.path} ends before entry {number}")
        return self.entry.unpack(data)

    def read_all(self) -> bytes:
        return os.pread(self.handle.get(), self.count * self.entry.size, 0)

    def last_up_to(self, column: int, bound: int) -> int:
        """The number of the last entry with at most `bound` in a column, -1 if none; the column ascends."""
        first, block = self._block
        size, unpack_from = self.entry.size, self.entry.unpack_from
        if not (
            block
            and (first == 0 or unpack_from(block)[column] <= bound)
            and (
                first + len(block) // size == self.count
                or unpack_from(block, len(block) - size)[column] > bound
            )
        ):
            first, block = self._load_block(column, bound)
        low, high = 0, len(block) // size
        while low < high:
            middle = (low + high) // 2
            if unpack_from(block, middle * size)[column] <= bound:
                low = middle + 1
            else:
                high = middle
        return first + low - 1

    def _load_block(self, column: int, bound: int) -> Block:
        """Find and keep the block that a search ends in: one reader asks for the same block many times."""
        fd, size, unpack_from, count = self.handle.get(), self.entry.size, self.entry.unpack_from, self.count
        low, high = 0, (count + BLOCK_ENTRIES - 1) // BLOCK_ENTRIES
        middle = self._guess(column, bound, high)
        while low < high:
            first = middle * BLOCK_ENTRIES
            # One more than a block, to see that the block after it is not needed.
            length = min(BLOCK_ENTRIES + 1, count - first) * size
            data = os.pread(fd, length, first * size)
            if len(data) != length:
                raise CorruptIndex(f"{self.handle.path} ends within {length} bytes after entry {first}")
            if middle and unpack_from(data)[column] > bound:
                high = middle
            elif first + length // size < count and unpack_from(data, length - size)[column] <= bound:
                low = middle + 1
            else:
                self._block = first, data
                return self._block
            middle = (low + high) // 2
        if count:
            raise CorruptIndex(f"{self.handle.path} does not ascend")
        return 0, b""

    def _guess(self, column: int, bound: int, blocks: int) -> int:
        """The block that has `bound` if the column ascends everywhere as it does in the block at hand."""
        first, block = self._block
        steps = len(block) // self.entry.size - 1
        if steps > 0:
            start: int = self.entry.unpack_from(block)[column]
            rise: int = self.entry.unpack_from(block, steps * self.entry.size)[column] - start
            if rise > 0:
                guess = (first + (bound - start) * steps // rise) // BLOCK_ENTRIES
                return min(max(guess, 0), blocks - 1)
        return blocks // 2

    def append(self, entries: bytes) -> None:
        count = self.count
        fd = self.handle.get()
        if os.fstat(fd).st_size != count * self.entry.size:
            self.handles.files.ftruncate(fd, count * self.entry.size)
        write_whole(self.handles.files, fd, entries)
        self._count = count + len(entries) // self.entry.size

    def create(self) -> None:
        """Make the file, or make it empty."""
        fd = self.handle.create()
        if os.fstat(fd).st_size:
            self.handles.files.ftruncate(fd, 0)
        self._count = 0
        self._block = 0, b""

    def truncate(self, count: int) -> None:
        if count < self.count:
            self.handles.files.ftruncate(self.handle.get(), count * self.entry.size)
            self._count = count
            self._block = 0, b""

    def trim(self) -> None:
        """Cut off padding."""
        size = self.count * self.entry.size
        fd = self.handle.get()
        if os.fstat(fd).st_size != size:
            self.handles.files.ftruncate(fd, size)
