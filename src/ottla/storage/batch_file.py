"""`.log`: the batches of a segment, one after the other, and nothing else.

Batches wait in memory until `write` hands them to the kernel in one call. Small reads are copies; large ones
are memory maps that live as long as their reader keeps the view. A map of a file that shrinks would kill the
process at the next touch (SIGBUS), so a file with live maps is never cut: it is replaced by a shorter copy,
and the old one stays with its maps until they are gone. Deleting a file under a map is harmless.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple
from weakref import WeakSet

from ottla.core.files import Buffer
from ottla.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader
from ottla.protocol.errors import CorruptMessage
from ottla.storage.files import gather_whole, write_whole
from ottla.storage.handles import Handle, Handles
from ottla.storage.index_file import CorruptIndex

# From here on a map costs less than a copy.
MAPPED_BYTES: Final = 64 * 1024
# Slow readers hold many maps, and each holds a file descriptor. That is no fault of the disk.
SHORT_OF_MAPS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
# Headers are walked in blocks of this size: two index intervals, so that most walks read one block.
WALK_BYTES: Final = 8 * 1024
COPY_BYTES: Final = 1024 * 1024
_HEADER: Final = Struct(">qiibIhiqqqhii")
# Of a header only what says where the batch ends: base offset, length, magic, last offset delta.
_PLACE: Final = Struct(">qi4xb6xi")
_POPULATE: Final = getattr(mmap, "MAP_POPULATE", 0)


class FileBatch(NamedTuple):
    """A batch as its header describes it, and where it is."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def end_position(self) -> int:
        return self.position + self.size

    @classmethod
    def of(cls, header: BatchHeader, place: tuple[int, int] | None = None) -> FileBatch:
        """The batch of a header, which a leader may give another place: its base offset and leader epoch."""
        first, leader_epoch = place or (header.base_offset, header.partition_leader_epoch)
        return cls(
            0,
            header.size,
            first,
            first + header.last_offset_delta,
            leader_epoch,
            header.attributes,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
        )


class Place(NamedTuple):
    """Where a batch is, which is all that a search has to know of it."""

    position: int
    end_position: int
    base_offset: int
    last_offset: int
    # What the search has read of the file from `position` on: all that is wanted, or less, or more.
    read: bytes = b""


class BatchFile:
    __slots__ = ("_maps", "handle", "handles", "pending", "size")

    def __init__(self, handles: Handles, path: str) -> None:
        self.handles = handles
        self.handle = Handle(handles, path)
        # Bytes of the file, with those that are pending.
        self.size = 0
        self.pending: list[Buffer] = []
        self._maps: WeakSet[mmap.mmap] | None = None

    def create(self) -> None:
        self.handle.create()

    def load(self) -> None:
        self.size = os.stat(self.handle.path).st_size  # noqa: PTH116

    def write(self) -> None:
        """Hand what is pending to the kernel."""
        pending = self.pending
        if len(pending) == 1:
            write_whole(self.handles.files, self.handle.get(), pending[0])
        elif pending:
            gather_whole(self.handles.files, self.handle.get(), pending)
        self.pending = []

    def read(self, position: int, length: int) -> Buffer:
        """Bytes that were written; a large piece is a view that stays good whatever becomes of the file."""
        maps = self.handles.maps
        if length < MAPPED_BYTES or len(maps) >= self.handles.maps_limit:
            return os.pread(self.handle.get(), length, position)
        skipped = position % mmap.ALLOCATIONGRANULARITY
        try:
            mapped = mmap.mmap(
                self.handle.get(),
                length + skipped,
                flags=mmap.MAP_SHARED | _POPULATE,
                prot=mmap.PROT_READ,
                offset=position - skipped,
            )
        except OSError as error:
            if error.errno not in SHORT_OF_MAPS:
                raise
            return os.pread(self.handle.get(), length, position)
        if self._maps is None:
            self._maps = WeakSet()
        self._maps.add(mapped)
        maps.add(mapped)
        return memoryview(mapped)[skipped:]

    def walk(self, position: int = 0) -> Iterator[FileBatch]:
        """Every batch from `position`, which is the start of one, by its header alone.

        Raises CorruptMessage for what cannot be a header.
        """
        block = b""
        start = position
        while position < self.size:
            at = position - start
            if at + HEADER_SIZE > len(block):
                block = os.pread(self.handle.get(), min(WALK_BYTES, self.size - position), position)
                start = position
                at = 0
                if len(block) < HEADER_SIZE:
                    raise CorruptMessage(f"{self.handle.path} ends within the batch header at {position}")
            (
                base_offset,
                length,
                leader_epoch,
                magic,
                _,
                attributes,
                last_offset_delta,
                _,
                max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                record_count,
            ) = _HEADER.unpack_from(block, at)
            size = LOG_OVERHEAD + length
            if magic != 2 or size < HEADER_SIZE or position + size > self.size or last_offset_delta < 0:
                raise CorruptMessage(f"{self.handle.path} has no batch at {position}")
            yield FileBatch(
                position,
                size,
                base_offset,
                base_offset + last_offset_delta,
                leader_epoch,
                attributes,
                max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                record_count,
            )
            position += size

    def find(
        self,
        position: int,
        offset: int,
        end_position: int,
        entry_offset: int | None = None,
        *,
        block_bytes: int = WALK_BYTES,
    ) -> Place:
        """The first batch that ends at or after `offset`, or past `end_position`; if there is none, the last.

        The search starts at `position`, where a batch starts. If that comes from an index, `entry_offset` is
        what the index has for the batch there (CorruptIndex if it is another). A search meets many batches
        for the sake of one, so it looks at less of each than `walk`, and reads `block_bytes` at a time.
        Raises CorruptMessage as `walk` does.
        """
        if entry_offset is not None and not 0 <= position < self.size:
            raise CorruptIndex(f"the index of {self.handle.path} points to {position}, which is not in it")
        size = self.size
        block = b""
        start = position
        while True:
            at = position - start
            if at + HEADER_SIZE > len(block):
                block = os.pread(self.handle.get(), min(block_bytes, size - position), position)
                start, at = position, 0
            if len(block) < HEADER_SIZE:
                end = last_offset = -1
            else:
                base_offset, length, magic, last_offset_delta = _PLACE.unpack_from(block, at)
                end = position + LOG_OVERHEAD + length
                last_offset = base_offset + last_offset_delta
                if magic != 2 or length < HEADER_SIZE - LOG_OVERHEAD or end > size or last_offset_delta < 0:
                    end = -1
            if entry_offset is not None:
                if end < 0 or last_offset != entry_offset:
                    raise CorruptIndex(f"the index of {self.handle.path} has another batch at {position}")
                entry_offset = None
            if end < 0:
                raise CorruptMessage(f"{self.handle.path} has no batch at {position}")
            if last_offset >= offset or end > end_position or end == size:
                return Place(position, end, base_offset, last_offset, block[at:] if at else block)
            position = end

    def batch_at(self, position: int) -> FileBatch:
        """The batch that starts at `position`."""
        return next(self.walk(position))

    def truncate(self, size: int) -> None:
        """Cut the file. What is pending must have been written."""
        if self._maps:
            self._replace_by_copy(size)
        else:
            self.handles.files.ftruncate(self.handle.get(), size)
        self.size = size

    def _replace_by_copy(self, size: int) -> None:
        files = self.handles.files
        temporary = self.handle.path + ".tmp"
        source = self.handle.get()
        target = files.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            for position in range(0, size, COPY_BYTES):
                write_whole(files, target, os.pread(source, min(COPY_BYTES, size - position), position))
            # The name must not come to stand for less than what was synced before.
            files.fsync(target)
        finally:
            files.close(target)
        files.rename(temporary, self.handle.path)
        # A sync may be under way on the old file: its handle closes when that is over.
        self.handle.close()
        self.handle = Handle(self.handles, self.handle.path)
        self._maps = None
