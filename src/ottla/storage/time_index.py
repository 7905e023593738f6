"""`.timeindex`: how the greatest timestamp of a segment grew.

An entry is twelve bytes: the greatest timestamp seen so far and the last offset, relative to the segment's
base offset, of the batch that has it. Timestamps grow from entry to entry. The last entry of a closed
segment is the greatest timestamp of the segment.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.storage.handles import Handles
from ottla.storage.index_file import IndexFile

ENTRY: Final = Struct(">qi")
NO_TIMESTAMP: Final = -1
# How many entries wait in memory before they are written: about a page of them.
MOST_WAITING: Final = 341


class TimeIndex:
    __slots__ = ("base_offset", "file", "last_timestamp", "waiting")

    def __init__(self, handles: Handles, path: str, base_offset: int) -> None:
        self.file = IndexFile(handles, path, ENTRY)
        self.base_offset = base_offset
        self.waiting: list[tuple[int, int]] = []
        # Of the last entry, None until the file was looked at.
        self.last_timestamp: int | None = None

    def __len__(self) -> int:
        return self.file.count + len(self.waiting)

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless `timestamp` is not above that of the last one."""
        last = self.last_timestamp
        if last is None:
            last = self.last()[0]
        if timestamp > last:
            self.waiting.append((timestamp, offset))
            self.last_timestamp = timestamp
            if len(self.waiting) >= MOST_WAITING:
                self.write()

    def write(self) -> None:
        """Hand the waiting entries to the kernel."""
        if self.waiting:
            base = self.base_offset
            self.file.append(
                b"".join([ENTRY.pack(timestamp, offset - base) for timestamp, offset in self.waiting])
            )
            self.waiting.clear()

    def last(self) -> tuple[int, int]:
        """The last entry (timestamp, offset); `NO_TIMESTAMP` when there is none."""
        return self.waiting[-1] if self.waiting else self._entry(self.file.count - 1)

    def floor(self, timestamp: int) -> tuple[int, int]:
        """The last entry (timestamp, offset) that is not after `timestamp`."""
        for entry in reversed(self.waiting):
            if entry[0] <= timestamp:
                return entry
        return self._entry(self.file.last_up_to(0, timestamp))

    def _entry(self, number: int) -> tuple[int, int]:
        if number < 0:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = self.file.read(number)
        return timestamp, self.base_offset + relative

    def entries(self) -> list[tuple[int, int]]:
        """Every entry (timestamp, offset)."""
        written = [(at, self.base_offset + offset) for at, offset in ENTRY.iter_unpack(self.file.read_all())]
        return written + self.waiting

    def truncate(self, end_offset: int) -> None:
        """Forget entries of batches that end at or after `end_offset`."""
        self.write()
        self.file.truncate(self.file.last_up_to(1, end_offset - self.base_offset - 1) + 1)
        self.last_timestamp = None

    def clear(self) -> None:
        self.waiting.clear()
        self.last_timestamp = None
        self.file.create()
