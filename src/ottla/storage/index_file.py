"""What the three index files of a segment have in common: entries of one size, appended, read by number.

An index is plain reads and writes, never a memory map. Entries wait in memory until there are enough of
them to write, or until the segment is closed: losing them costs nothing, because a start after a crash
rebuilds the indexes of every segment that was not completely synced. Blocks that were searched are kept for a
while, all files together so many (`Handles.index_blocks`): readers come back to where they were.
"""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import Final

from ottla.storage.files import write_whole
from ottla.storage.handles import Handle, Handles

# Entries are searched in blocks of about a page.
BLOCK_ENTRIES: Final = 512
# How many blocks are kept, of all files: little more than a megabyte.
BLOCKS_KEPT: Final = 256
# Two numbers of 32 bits, which can be taken from the file many at a time.
_WORDS: Final = ">ii"

# The number of a block's first entry, and the columns of its entries and of the one that follows them.
Block = tuple[int, tuple[Sequence[int], ...]]
NO_BLOCK: Final[Block] = 0, ((), ())


class CorruptIndex(Exception):
    """The file does not hold what an index holds. It is rebuilt from the log."""


class IndexFile:
    """A file of entries.

    Kafka gives the index of its active segment its full size in advance, filled with zeros, and cuts it when
    the segment is closed. A file that stopped growing because its broker was killed still has them, so the
    number of entries is not simply the size of the file.
    """

    __slots__ = ("_count", "block", "entry", "handle", "handles")

    def __init__(self, handles: Handles, path: str, entry: Struct) -> None:
        self.handles = handles
        self.handle = Handle(handles, path)
        self.entry = entry
        self._count = -1
        self.block = NO_BLOCK  # that was searched last

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
        first, columns = self.block
        if 0 <= number - first < len(columns[0]):
            return tuple([column[number - first] for column in columns])
        data = os.pread(self.handle.get(), self.entry.size, number * self.entry.size)
        if len(data) != self.entry.size:
            raise CorruptIndex(f"{self.handle.path} ends before entry {number}")
        return self.entry.unpack(data)

    def read_all(self) -> bytes:
        return os.pread(self.handle.get(), self.count * self.entry.size, 0)

    def last_up_to(self, column: int, bound: int) -> int:
        """The number of the last entry with at most `bound` in a column, -1 if none; the column ascends."""
        count = self.count
        first, columns = self.block
        values = columns[column]
        if values and (first == 0 or values[0] <= bound):
            if bound < values[-1]:
                return first + bisect_right(values, bound) - 1
            if first + len(values) == count:
                return count - 1
        low, high = 0, (count + BLOCK_ENTRIES - 1) // BLOCK_ENTRIES
        middle = self._guess(values, bound, first, high)
        while low < high:
            block = first, columns = self._load(middle, count)
            values = columns[column]
            found = bisect_right(values, bound)
            if middle and not found:
                high = middle
            elif found == len(values) and first + found < count:
                low = middle + 1
            else:
                self.block = block
                return first + found - 1
            middle = (low + high) // 2
        if count:
            raise CorruptIndex(f"{self.handle.path} does not ascend")
        return -1

    def _load(self, number: int, count: int) -> Block:
        """A block, with one entry more, to see that the block after it is not needed."""
        kept = self.handles.index_blocks
        block = kept.get((self, number))
        if block is None:
            first, size = number * BLOCK_ENTRIES, self.entry.size
            entries = min(BLOCK_ENTRIES + 1, count - first)
            data = os.pread(self.handle.get(), entries * size, first * size)
            if len(data) != entries * size:
                raise CorruptIndex(f"{self.handle.path} ends within {entries} entries after entry {first}")
            block = first, self._columns(data)
            # A block with all its entries does not change. Others than of words would take more memory.
            if entries > BLOCK_ENTRIES and self.entry.format == _WORDS:
                if len(kept) >= BLOCKS_KEPT:
                    kept.popitem(last=False)
                kept[self, number] = block
        return block

    def _columns(self, data: bytes) -> tuple[Sequence[int], ...]:
        if self.entry.format != _WORDS:
            return tuple(zip(*self.entry.iter_unpack(data), strict=True))
        words = array("i", data)
        if sys.byteorder == "little":
            words.byteswap()
        return words[::2], words[1::2]

    def _guess(self, values: Sequence[int], bound: int, first: int, blocks: int) -> int:
        """The block that has `bound` if a column ascends everywhere as it does in the block at hand."""
        steps = len(values) - 1
        if steps > 0 and (rise := values[steps] - values[0]) > 0:
            guess = (first + (bound - values[0]) * steps // rise) // BLOCK_ENTRIES
            if guess < blocks:
                return guess if guess > 0 else 0
            return blocks - 1
        return blocks // 2

    def _forget(self) -> None:
        self.block = NO_BLOCK
        kept = self.handles.index_blocks
        for key in list(kept):  # at once: logs are recovered by several threads
            if key[0] is self:
                kept.pop(key, None)

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
        self._forget()

    def truncate(self, count: int) -> None:
        if count < self.count:
            self.handles.files.ftruncate(self.handle.get(), count * self.entry.size)
            self._count = count
            self._forget()

    def trim(self) -> None:
        """Cut off padding."""
        size = self.count * self.entry.size
        fd = self.handle.get()
        if os.fstat(fd).st_size != size:
            self.handles.files.ftruncate(fd, size)
