"""`.index`: where in a segment's file a batch is found, for every few kilobytes of it.

An entry is eight bytes: the last offset of a batch, relative to the segment's base offset, and the position
of that batch in the file. Both grow from entry to entry, so a batch can be looked up by either.
"""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct
from typing import Final

from ottla.storage.handles import Handles
from ottla.storage.index_file import IndexFile

ENTRY: Final = Struct(">ii")
# How many entries wait in memory before they are written: one page of them.
MOST_WAITING: Final = 512


class OffsetIndex:
    __slots__ = ("base_offset", "file", "offsets", "positions")

    def __init__(self, handles: Handles, path: str, base_offset: int) -> None:
        self.file = IndexFile(handles, path, ENTRY)
        self.base_offset = base_offset
        # The entries that are not in the file yet.
        self.offsets: list[int] = []
        self.positions: list[int] = []

    def __len__(self) -> int:
        return self.file.count + len(self.offsets)

    def append(self, offset: int, position: int) -> None:
        self.offsets.append(offset)
        self.positions.append(position)
        if len(self.offsets) >= MOST_WAITING:
            self.write()

    def write(self) -> None:
        """Hand the waiting entries to the kernel."""
        if self.offsets:
            base = self.base_offset
            entries = zip(self.offsets, self.positions, strict=True)
            self.file.append(b"".join([ENTRY.pack(offset - base, position) for offset, position in entries]))
            self.offsets.clear()
            self.positions.clear()

    def floor(self, offset: int) -> tuple[int, int]:
        """The last entry (offset, position) that is not after `offset`; position 0 when there is none."""
        if self.offsets and self.offsets[0] <= offset:
            at = bisect_right(self.offsets, offset) - 1
            return self.offsets[at], self.positions[at]
        return self._entry(self.file.last_up_to(0, offset - self.base_offset))

    def around(self, offset: int) -> tuple[int, int, int, int, int]:
        """As `floor`, then the entry that follows, then where the one after that points.

        -1 stands for what is not there.
        """
        file, base, waiting = self.file, self.base_offset, self.offsets
        if waiting and waiting[0] <= offset:
            at = bisect_right(waiting, offset) - 1
            found = list(zip(waiting[at : at + 3], self.positions[at : at + 3], strict=True))
        else:
            number = file.last_up_to(0, offset - base)
            first, (offsets, positions) = file.block
            at = number - first
            if 0 <= at < len(offsets) - 2:
                return (
                    base + offsets[at],
                    positions[at],
                    base + offsets[at + 1],
                    positions[at + 1],
                    positions[at + 2],
                )
            found = [self._entry(there) for there in range(number, min(number + 3, file.count))]
            found += zip(waiting[: 3 - len(found)], self.positions[: 3 - len(found)], strict=True)
        found += [(-1, -1)] * (3 - len(found))
        return *found[0], *found[1], found[2][1]

    def floor_position(self, position: int) -> tuple[int, int]:
        """The last entry (offset, position) whose batch does not start after `position`."""
        if self.positions and self.positions[0] <= position:
            at = bisect_right(self.positions, position) - 1
            return self.offsets[at], self.positions[at]
        return self._entry(self.file.last_up_to(1, position))

    def last(self) -> tuple[int, int]:
        """The last entry (offset, position); position 0 when there is none."""
        if self.offsets:
            return self.offsets[-1], self.positions[-1]
        return self._entry(self.file.count - 1)

    def _entry(self, number: int) -> tuple[int, int]:
        if number < 0:
            return self.base_offset, 0
        relative, position = self.file.read(number)
        return self.base_offset + relative, position

    def entries(self) -> list[tuple[int, int]]:
        """Every entry (offset, position)."""
        written = [(self.base_offset + offset, at) for offset, at in ENTRY.iter_unpack(self.file.read_all())]
        return written + list(zip(self.offsets, self.positions, strict=True))

    def truncate(self, end_offset: int) -> None:
        """Forget the batches that end at or after `end_offset`."""
        self.write()
        self.file.truncate(self.file.last_up_to(0, end_offset - self.base_offset - 1) + 1)

    def clear(self) -> None:
        self.offsets.clear()
        self.positions.clear()
        self.file.create()
