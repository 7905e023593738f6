"""A segment: a stretch of the log in one file of batches, and the indexes into it.

Only the last segment of a log is appended to. The indexes are sparse, by Kafka's rule: a batch gets an entry
when more than `index.interval.bytes` were written since the last one that did. The last few hundred batches
are remembered one by one, so that a consumer at the tail of the log is found without the index.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ottla.core.files import Buffer
from ottla.protocol import batch as batches
from ottla.protocol.errors import CorruptMessage
from ottla.storage.batch_file import MAPPED_BYTES, WALK_BYTES, BatchFile, FileBatch, Place
from ottla.storage.files import is_of_the_disk
from ottla.storage.handles import Handle, Handles
from ottla.storage.index_file import CorruptIndex
from ottla.storage.offset_index import OffsetIndex
from ottla.storage.time_index import NO_TIMESTAMP, TimeIndex
from ottla.storage.transaction_index import TransactionIndex

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
# A segment that compaction is writing, and one that is about to take the place of others.
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)

MOST_RECENT: Final = 1024
MOST_BOOKMARKS: Final = 16
UNKNOWN: Final = NO_TIMESTAMP - 1
GREATEST_RELATIVE_OFFSET: Final = 0x7FFFFFFF
# Before every position, and after every offset.
UNKNOWN_POSITION: Final = -1
NO_OFFSET: Final = 1 << 63


def file_name(offset: int, suffix: str) -> str:
    """`00000000000000000042.log`: names sort as their offsets do."""
    return f"{offset:020d}{suffix}"


class TimestampOffset(NamedTuple):
    """A record found by its time."""

    offset: int
    timestamp: int
    leader_epoch: int


class Segment:
    __slots__ = (
        "_bookmarks",
        "_first_timestamp",
        "_recent_offsets",
        "_recent_positions",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "directory",
        "end_timestamp",
        "entries_left",
        "jitter_ms",
        "log",
        "max_timestamp",
        "max_timestamp_offset",
        "name_suffix",
        "offset_index",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self, handles: Handles, directory: str, base_offset: int, created_ms: int, name_suffix: str = ""
    ) -> None:
        self.directory = directory
        self.name_suffix = name_suffix
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.jitter_ms = 0
        self.log = BatchFile(handles, self.path(LOG))
        self.offset_index = OffsetIndex(handles, self.path(INDEX), base_offset)
        self.time_index = TimeIndex(handles, self.path(TIME_INDEX), base_offset)
        self.transaction_index = TransactionIndex(handles, self.path(TRANSACTION_INDEX), base_offset)
        self.bytes_since_index = 0
        # A batch with a timestamp above this begins a new segment; UNKNOWN when it takes a closer look.
        self.end_timestamp = UNKNOWN
        # How many entries the indexes still have room for.
        self.entries_left = 0
        # The greatest timestamp and the last offset of the batch that has it; None until the index was read.
        self.max_timestamp: int | None = None
        self.max_timestamp_offset = base_offset
        # The max timestamp of the first batch, which decides when the segment is old enough to roll.
        self._first_timestamp: int | None = None
        # Last offsets and positions of the batches at the end of the file, without a gap.
        self._recent_offsets: list[int] = []
        self._recent_positions: list[int] = []
        # Base offsets and positions of batches where readers stopped.
        self._bookmarks: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}, {self.log.size} bytes)"

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{file_name(self.base_offset, suffix)}{self.name_suffix}"

    @property
    def size(self) -> int:
        return self.log.size

    # Life

    @classmethod
    def create(
        cls, handles: Handles, directory: str, base_offset: int, created_ms: int, name_suffix: str = ""
    ) -> Segment:
        """A new, empty segment; files that happen to have its names are replaced."""
        segment = cls(handles, directory, base_offset, created_ms, name_suffix)
        if Path(segment.log.handle.path).exists():
            # Not emptied: somebody may still have a map of it.
            handles.files.unlink(segment.log.handle.path)
        try:
            segment.log.create()
            segment.clear_indexes()
        except OSError:
            with suppress(OSError):
                segment.delete()  # the log may go on without it
            raise
        # Index files are written rarely: they need not take up open files until then.
        segment.offset_index.file.handle.close()
        segment.time_index.file.handle.close()
        return segment

    def activate(self, max_index_bytes: int) -> None:
        """Prepare for appends."""
        try:
            self.count_entries_left(max_index_bytes)
        except CorruptIndex:
            self.rebuild_indexes()
            self.count_entries_left(max_index_bytes)
        self.greatest_timestamp()

    def count_entries_left(self, max_index_bytes: int) -> None:
        # One slot of the time index is kept for the entry that closing the segment adds.
        self.entries_left = min(
            max_index_bytes // 8 - len(self.offset_index), max_index_bytes // 12 - 1 - len(self.time_index)
        )

    def close_indexes(self) -> None:
        """The segment ends here: the indexes get their last entry and are written."""
        timestamp, offset = self.greatest_timestamp()
        self.time_index.append(timestamp, offset)
        self.offset_index.write()
        self.time_index.write()
        self.offset_index.file.trim()
        self.time_index.file.trim()

    def deactivate(self) -> None:
        """The segment is complete: what only appends need is dropped."""
        self.close_indexes()
        self._recent_offsets = []
        self._recent_positions = []

    def close_files(self) -> None:
        for handle in self.all_handles():
            handle.close()

    def all_handles(self) -> list[Handle]:
        return [
            self.log.handle,
            self.offset_index.file.handle,
            self.time_index.file.handle,
            self.transaction_index.file.handle,
        ]

    def written_handles(self) -> list[Handle]:
        """The files of a complete segment, for a sync."""
        handles = self.all_handles()
        return handles if self.transaction_index.exists else handles[:-1]

    @property
    def has_unwritten_indexes(self) -> bool:
        """Whether closing the segment would change its indexes."""
        return bool(
            self.offset_index.offsets
            or self.time_index.waiting
            or self.greatest_timestamp()[0] > self.time_index.last()[0]
        )

    def moved(self, directory: str) -> None:
        """The directory has a new name."""
        self.directory = directory
        for handle, suffix in zip(self.all_handles(), SUFFIXES, strict=True):
            handle.path = self.path(suffix)

    def rename(self, name_suffix: str) -> None:
        """Give the files another suffix, first the batches. Only a transaction index need not be there."""
        self.name_suffix = name_suffix
        for handle, kind in zip(self.all_handles(), SUFFIXES, strict=True):
            if kind != TRANSACTION_INDEX or Path(handle.path).exists():
                self.log.handles.files.rename(handle.path, self.path(kind))
            handle.path = self.path(kind)

    # Append

    def append(
        self, batch: Buffer, size: int, last_offset: int, max_timestamp: int, index_interval_bytes: int
    ) -> None:
        """Add a batch that has its offsets. It is pending until the log is written."""
        greatest = self.max_timestamp
        assert greatest is not None, "a segment is activated before it is appended to"
        if max_timestamp > greatest:
            self.max_timestamp = greatest = max_timestamp
            self.max_timestamp_offset = last_offset
        log = self.log
        position = log.size
        if self.bytes_since_index > index_interval_bytes:
            try:
                self.offset_index.append(last_offset, position)
                self.time_index.append(greatest, self.max_timestamp_offset)
            except OSError as error:
                # While no more files can be opened the entries wait in memory, or are left out.
                if is_of_the_disk(error):
                    raise
            self.bytes_since_index = size
            self.entries_left -= 1
        else:
            self.bytes_since_index += size
            if position == 0:
                self._first_timestamp = max_timestamp
        recent = self._recent_offsets
        recent.append(last_offset)
        self._recent_positions.append(position)
        if len(recent) > MOST_RECENT:
            del recent[: MOST_RECENT // 2], self._recent_positions[: MOST_RECENT // 2]
        log.pending.append(batch)
        log.size = position + size

    def first_timestamp(self) -> int:
        """The max timestamp of the first batch, `NO_TIMESTAMP` in an empty segment."""
        if self._first_timestamp is None:
            if not self.log.size:
                return NO_TIMESTAMP
            self._first_timestamp = self.log.batch_at(0).max_timestamp
        return self._first_timestamp

    def greatest_timestamp(self) -> tuple[int, int]:
        """The greatest timestamp, and the last offset of the batch that has it."""
        if self.max_timestamp is None:
            try:
                self.max_timestamp, self.max_timestamp_offset = self._indexed_timestamp()
            except CorruptIndex:
                self.rebuild_indexes()
                return self.greatest_timestamp()
        return self.max_timestamp, self.max_timestamp_offset

    def _indexed_timestamp(self) -> tuple[int, int]:
        """The last entry of the time index, compared with its batch: retention deletes because of it."""
        timestamp, offset = self.time_index.last()
        if timestamp == NO_TIMESTAMP:
            if self.first_timestamp() > timestamp:
                raise CorruptIndex(f"{self.path(TIME_INDEX)} has no entry")
            return timestamp, offset
        for batch in self._walk_from(offset):
            if batch.last_offset >= offset:
                if batch.base_offset <= offset and batch.max_timestamp == timestamp:
                    return timestamp, offset
                break
        raise CorruptIndex(f"{self.path(TIME_INDEX)} has {timestamp} at {offset}, where it is not")

    def retention_timestamp(self) -> int:
        """The greatest timestamp, or when the file was last changed if no record has one."""
        timestamp = self.greatest_timestamp()[0]
        if timestamp >= 0:
            return timestamp
        return int(Path(self.log.handle.path).stat().st_mtime * 1000)

    # Read

    def position_of(self, offset: int) -> int:
        """Where the first batch starts that ends at or after `offset`, or the end of the file."""
        return self._locate(offset)[0]

    def _locate(self, offset: int, max_bytes: int = 0) -> tuple[int, int, int, bytes]:
        """Where the first batch starts that ends at or after `offset`, where it ends, and its last offset.

        The end of the file if there is none; of a bookmarked batch only the start is known. Last, what of the
        batch and of `max_bytes` from its start was read on the way.
        """
        recent = self._recent_offsets
        if recent and offset >= recent[0]:
            at = bisect_left(recent, offset)
            positions = self._recent_positions
            if at + 1 < len(recent):
                return positions[at], positions[at + 1], recent[at], b""
            return (positions[at] if at < len(recent) else self.log.size), self.log.size, recent[-1], b""
        bookmark = self._bookmarks.get(offset)
        if bookmark is not None:
            return bookmark, UNKNOWN_POSITION, offset, b""
        size = self.log.size
        if not size:
            return 0, 0, offset, b""
        position, end_position, _, last_offset, read = self._find(offset, max_bytes)
        if last_offset < offset:
            return size, size, last_offset, b""
        return position, end_position, last_offset, read

    def _find(self, offset: int, max_bytes: int) -> Place:
        """From the last index entry before `offset` on, once it is seen that it speaks of the batch there."""
        log = self.log
        try:
            entry_offset, position, next_offset, next_position, after = self.offset_index.around(offset)
            if entry_offset < offset and next_position - position >= WALK_BYTES:
                # Large batches have an entry each, so the next entry is most likely what is looked for, and
                # the one after it most likely tells where it ends.
                size = after - next_position
                few = 0 < max_bytes <= size < MAPPED_BYTES
                place = log.find(
                    next_position,
                    next_offset,
                    log.size,
                    next_offset,
                    block_bytes=size if few else batches.HEADER_SIZE,
                )
                if place.base_offset <= offset:
                    return place
            return log.find(position, offset, log.size, entry_offset if position else None)
        except CorruptIndex:
            self.rebuild_indexes()
            return log.find(self.offset_index.floor(offset)[1], offset, log.size)

    def _walk_from(self, offset: int) -> Iterator[FileBatch]:
        """The batches from the last index entry before `offset` on."""
        try:
            entry_offset, position = self.offset_index.floor(offset)
            return self._walk_checked(entry_offset, position)
        except CorruptIndex:
            self.rebuild_indexes()
            return self.log.walk(self.offset_index.floor(offset)[1])

    def _walk_checked(self, entry_offset: int, position: int) -> Iterator[FileBatch]:
        """Walk from an index entry, once it is seen that the entry speaks of the batch at its position."""
        if position:
            try:
                found = (
                    0 <= position < self.log.size and self.log.batch_at(position).last_offset == entry_offset
                )
            except CorruptMessage:
                found = False
            if not found:
                raise CorruptIndex(f"{self.path(INDEX)} points to {position}, where its batch is not")
        return self.log.walk(position)

    def boundary_before(self, position: int, start: int) -> int:
        """The last position up to `position` where a batch starts, or the end of the file.

        `start` is a position before it where one does.
        """
        log = self.log
        if position >= log.size:
            return log.size
        recent = self._recent_positions
        if recent and recent[0] <= position:
            return recent[bisect_right(recent, position) - 1]
        try:
            entry_offset, at = self.offset_index.floor_position(position)
            if at <= start:
                place = log.find(start, NO_OFFSET, position)
            else:
                place = log.find(at, NO_OFFSET, position, entry_offset)
        except CorruptIndex:
            self.rebuild_indexes()
            place = log.find(start, NO_OFFSET, position)
        # The reader that stops here comes back for what follows.
        self._remember(place.base_offset, place.position)
        return place.position

    def _remember(self, offset: int, position: int) -> None:
        if len(self._bookmarks) >= MOST_BOOKMARKS:
            del self._bookmarks[next(iter(self._bookmarks))]
        self._bookmarks[offset] = position

    def read(self, offset: int, max_bytes: int, end_position: int, min_one_batch: bool) -> Buffer | None:
        """Whole batches from the one with `offset` to `end_position`; None if all end before `offset`.

        What is pending must have been written.
        """
        start, first_end, last_offset, read = self._locate(offset, max_bytes)
        if start >= self.log.size:
            return None
        if start >= end_position:
            return b""
        end = start + max_bytes
        if end >= end_position:
            end = end_position
        elif end <= first_end:
            # The first batch is all that there is room for, if there is.
            if end < first_end and not min_one_batch:
                return b""
            end = first_end
            self._remember(last_offset + 1, end)
        else:
            end = self.boundary_before(end, start)
            if end <= start:
                if not min_one_batch:
                    return b""
                end = self.log.batch_at(start).end_position
        length = end - start
        return read[:length] if length <= len(read) else self.log.read(start, length)

    def next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry on."""
        try:
            walk = self._walk_checked(*self.offset_index.last())
        except CorruptIndex:
            self.rebuild_indexes()
            walk = self.log.walk(self.offset_index.last()[1])
        end = self.base_offset
        for batch in walk:
            end = batch.last_offset + 1
        return end

    def offset_for_timestamp(self, timestamp: int, start_offset: int) -> TimestampOffset | None:
        """The first record from `start_offset` on that is not before `timestamp`."""
        try:
            offset = self.time_index.floor(timestamp)[1]
        except CorruptIndex:
            self.rebuild_indexes()
            offset = self.time_index.floor(timestamp)[1]
        for batch in self._walk_from(max(offset, start_offset)):
            if batch.max_timestamp >= timestamp and batch.last_offset >= start_offset:
                data = self.log.read(batch.position, batch.size)
                found = batches.first_at_or_after(data, timestamp, start_offset)
                if found is not None:
                    return TimestampOffset(found[0], found[1], batch.leader_epoch)
        return None

    # Change

    def clear_indexes(self) -> None:
        self.offset_index.clear()
        self.time_index.clear()
        self.transaction_index.clear()
        self.bytes_since_index = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset

    def index_batch(self, batch: FileBatch, index_interval_bytes: int) -> None:
        """Index a batch that is in the file already; batches come in order, after `clear_indexes`."""
        greatest = self.max_timestamp
        assert greatest is not None
        if batch.max_timestamp > greatest:
            self.max_timestamp, self.max_timestamp_offset = batch.max_timestamp, batch.last_offset
            greatest = batch.max_timestamp
        if self.bytes_since_index > index_interval_bytes:
            self.offset_index.append(batch.last_offset, batch.position)
            self.time_index.append(greatest, self.max_timestamp_offset)
            self.bytes_since_index = 0
        self.bytes_since_index += batch.size

    def rebuild_indexes(self, index_interval_bytes: int = 4096) -> None:
        """Make the offset and time index anew from the batches, when they turn out to be damaged."""
        self.offset_index.clear()
        self.time_index.clear()
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        self.bytes_since_index = 0
        for batch in self.log.walk():
            self.index_batch(batch, index_interval_bytes)
        self.close_indexes()

    def truncate_to(self, offset: int) -> int | None:
        """Drop the batches that end at or after `offset`; the base offset of the first of them, if any."""
        position = self.position_of(offset)
        if position >= self.log.size:
            return None
        dropped = self.log.batch_at(position).base_offset
        self.log.truncate(position)
        self.transaction_index.truncate(offset)
        self._bookmarks.clear()
        kept = bisect_left(self._recent_positions, position)
        del self._recent_offsets[kept:], self._recent_positions[kept:]
        if not position:
            self._first_timestamp = None
            self.end_timestamp = UNKNOWN
        try:
            self.offset_index.truncate(offset)
            self.time_index.truncate(offset)
        except CorruptIndex:
            self.rebuild_indexes()
            return dropped
        self.bytes_since_index = 0
        # Of what is left the index knows the greatest timestamp up to its last entry.
        timestamp, offset = self.time_index.last()
        for batch in self._walk_from(offset):
            if batch.max_timestamp > timestamp:
                timestamp, offset = batch.max_timestamp, batch.last_offset
        self.max_timestamp, self.max_timestamp_offset = timestamp, offset
        return dropped

    def delete(self) -> None:
        """Remove the files at once; views of them stay good."""
        files = self.log.handles.files
        for handle in self.all_handles():
            handle.close()
            if Path(handle.path).exists():
                files.unlink(handle.path)

    def doom(self) -> list[str]:
        """Rename the files so that they are deleted later, or at the next start; their new names."""
        files = self.log.handles.files
        doomed = []
        for handle in self.all_handles():
            if Path(handle.path).exists():
                files.rename(handle.path, handle.path + DELETED)
                handle.path += DELETED
                doomed.append(handle.path)
            handle.close()
        return doomed
