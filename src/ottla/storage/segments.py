"""The segments of a log, in order: the last is appended to, the first are deleted, any is read.

What belongs to the log as a whole (offsets, producers, epochs) is in `log`; here are files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.core.files import Buffer
from ottla.protocol.errors import RecordListTooLarge
from ottla.storage.cleaning import SegmentSummary, SourceSegment
from ottla.storage.handles import Handle, Handles
from ottla.storage.offset_index import ENTRY as OFFSET_ENTRY
from ottla.storage.segment import (
    CLEANED,
    DELETED,
    GREATEST_RELATIVE_OFFSET,
    SNAPSHOT,
    SWAP,
    UNKNOWN,
    Segment,
    TimestampOffset,
)
from ottla.storage.time_index import ENTRY as TIME_ENTRY
from ottla.storage.transaction_index import AbortedEntry

if TYPE_CHECKING:
    from ottla.config.topic import TopicSettings


class Segments:
    __slots__ = (
        "_bases",
        "_handles",
        "_jitter",
        "_segments",
        "active",
        "directory",
        "doomed",
        "index_interval_bytes",
        "max_bytes",
        "max_index_bytes",
        "max_jitter_ms",
        "max_ms",
        "unsynced",
    )

    def __init__(
        self,
        handles: Handles,
        directory: str,
        segments: list[Segment],
        unsynced: list[Segment],
        jitter: Callable[[int], int],
        settings: TopicSettings,
    ) -> None:
        self._handles = handles
        self.directory = directory
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self._jitter = jitter
        self.active = segments[-1]
        # Segments that are complete and not known to be synced.
        self.unsynced = unsynced
        # Files that were renamed for deletion, and when they are due.
        self.doomed: deque[tuple[int, str]] = deque()
        self.configure(settings)
        self._draw_jitter(self.active)

    def _draw_jitter(self, segment: Segment) -> None:
        if self.max_jitter_ms:
            segment.jitter_ms = self._jitter(self.max_jitter_ms)

    def configure(self, settings: TopicSettings) -> None:
        """Take over settings; the active segment follows the new ones from now on."""
        self.max_bytes = settings.segment_bytes
        self.max_index_bytes = settings.segment_index_bytes
        self.index_interval_bytes = settings.index_interval_bytes
        self.max_ms = settings.segment_ms
        if "compact" in settings.cleanup_policy:
            # Compaction leaves the active segment alone, so it must not stay active for too long.
            self.max_ms = min(self.max_ms, settings.max_compaction_lag_ms)
        self.max_jitter_ms = min(settings.segment_jitter_ms, settings.segment_ms)
        self.active.activate(self.max_index_bytes)
        self.active.end_timestamp = UNKNOWN

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, number: int) -> Segment:
        return self._segments[number]

    def __repr__(self) -> str:
        return repr(self._segments)

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def start_offset(self) -> int:
        return self._bases[0]

    # Roll

    def is_roll_due(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether a batch is to begin a new segment. Time is that of the records, not of the clock.

        Raises RecordListTooLarge if no segment can hold it.
        """
        active = self.active
        active_size = active.log.size
        if active_size + size > self.max_bytes:
            if size > self.max_bytes:
                raise RecordListTooLarge(f"a batch of {size} bytes is larger than segment.bytes")
            return True
        if last_offset - active.base_offset > GREATEST_RELATIVE_OFFSET:
            return True
        if active.entries_left <= 0:
            active.count_entries_left(self.max_index_bytes)
            if active.entries_left <= 0:
                return True
        if not active_size:
            return False
        longest_ms = self.max_ms - active.jitter_ms
        first_timestamp = active.first_timestamp()
        if first_timestamp < 0:
            return now_ms - active.created_ms > longest_ms
        active.end_timestamp = first_timestamp + longest_ms
        return max_timestamp > active.end_timestamp

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """Begin a new segment. What is pending must have been written."""
        self.active.deactivate()
        segment = Segment.create(self._handles, self.directory, base_offset, now_ms)
        segment.activate(self.max_index_bytes)
        self._draw_jitter(segment)
        self.unsynced.append(self.active)
        self._segments.append(segment)
        self._bases.append(base_offset)
        self.active = segment
        return segment

    # Read

    def read(
        self, offset: int, max_bytes: int, end_offset: int, log_end_offset: int, min_one_batch: bool
    ) -> Buffer:
        """Whole batches from the one with `offset` on, of one segment, none at or past `end_offset`."""
        active = self.active
        if offset >= active.base_offset:
            end_position = active.log.size if end_offset == log_end_offset else active.position_of(end_offset)
            return active.read(offset, max_bytes, end_position, min_one_batch) or b""
        for number in range(max(0, bisect_right(self._bases, offset) - 1), len(self._segments)):
            segment = self._segments[number]
            segment_end = log_end_offset if segment is active else self._bases[number + 1]
            end_position = segment.size if end_offset >= segment_end else segment.position_of(end_offset)
            # A segment has nothing at `offset` where compaction has emptied its end.
            data = segment.read(offset, max_bytes, end_position, min_one_batch)
            if data is not None:
                return data
        return b""

    def aborted(self, start_offset: int, end_offset: int) -> Iterator[AbortedEntry]:
        """The aborted transactions that have records in the range."""
        for number in range(max(0, bisect_right(self._bases, start_offset) - 1), len(self._segments)):
            for entry in self._segments[number].transaction_index.entries():
                if entry.last_offset >= start_offset and entry.first_offset < end_offset:
                    yield entry
                if entry.last_stable_offset >= end_offset:
                    # All transactions that were open below the end are over by then.
                    return

    def offset_for_timestamp(self, timestamp: int, start_offset: int) -> TimestampOffset | None:
        for segment in self._segments:
            if segment.greatest_timestamp()[0] >= timestamp:
                found = segment.offset_for_timestamp(timestamp, start_offset)
                if found is not None:
                    return found
        return None

    def greatest_timestamp(self) -> int:
        return max(segment.greatest_timestamp()[0] for segment in self._segments)

    def summaries(self, log_end_offset: int) -> list[SegmentSummary]:
        """What retention asks about."""
        return [
            SegmentSummary(segment.base_offset, end, segment.size, segment.retention_timestamp())
            for segment, end in zip(self._segments, [*self._bases[1:], log_end_offset], strict=True)
        ]

    def sources(self, end_offset: int) -> list[SourceSegment]:
        """What compaction asks about, of the segments that begin before `end_offset`."""
        return [
            SourceSegment(
                segment.base_offset,
                following,
                segment.size,
                len(segment.offset_index) * OFFSET_ENTRY.size,
                len(segment.time_index) * TIME_ENTRY.size,
            )
            for segment, following in zip(self._segments[:-1], self._bases[1:], strict=True)
            if segment.base_offset < end_offset
        ]

    # Delete

    def truncate_to(self, offset: int) -> int:
        """Drop every batch that ends at or after `offset`; where the log ends then, durably.

        What is pending must have been written, and `offset` not be before the first segment.
        """
        kept = bisect_right(self._bases, offset)
        # The last first: a crash in between leaves a log without a gap.
        for segment in reversed(self._segments[kept:]):
            segment.delete()
        del self._segments[kept:], self._bases[kept:]
        self.active = self._segments[-1]
        self.unsynced = [segment for segment in self.unsynced if segment.base_offset < self._bases[-1]]
        dropped = self.active.truncate_to(offset)
        # A segment that came back after a power loss would stand for batches that are not in the log.
        self._handles.files.fdatasync(self.active.log.handle.get())
        self._handles.files.sync_directory(self.directory)
        self.active.activate(self.max_index_bytes)
        return offset if dropped is None else min(offset, dropped)

    def replace(self, start_offset: int) -> None:
        """Drop everything and begin again at `start_offset`, durably."""
        for segment in reversed(self._segments):
            segment.delete()
        # The time matters only until there are records, which bring their own.
        self.active = Segment.create(self._handles, self.directory, start_offset, self.active.created_ms)
        self._handles.files.sync_directory(self.directory)
        self.active.activate(self.max_index_bytes)
        self._segments = [self.active]
        self._bases = [start_offset]
        self.unsynced = []

    def doom(self, count: int, due_ms: int) -> None:
        """Rename the files of the first segments, and of their snapshots, to be removed when they are due."""
        doomed, self._segments = self._segments[:count], self._segments[count:]
        del self._bases[:count]
        self._doom_files(doomed, due_ms)
        for segment in doomed:
            self._doom_snapshot(segment, due_ms)

    def _doom_files(self, segments: list[Segment], due_ms: int) -> None:
        self.unsynced = [segment for segment in self.unsynced if segment not in segments]
        for segment in segments:
            self.doomed.extend((due_ms, path) for path in segment.doom())

    def _doom_snapshot(self, segment: Segment, due_ms: int) -> None:
        snapshot = segment.path(SNAPSHOT)
        if Path(snapshot).exists():
            self._handles.files.rename(snapshot, snapshot + DELETED)
            self.doomed.append((due_ms, snapshot + DELETED))

    def swap(self, bases: list[int], due_ms: int) -> bool:
        """Put the `.cleaned` segment in the place of those it was made of; False if they are not all there.

        A crash on the way leaves the old segments or the new one: `recovery` finishes a swap once the whole
        new segment is called `.swap`.
        """
        first = bisect_right(self._bases, bases[0]) - 1
        end = first + len(bases)
        if self._bases[max(first, 0) : end] != bases or end >= len(self._bases):
            return False
        replaced = self._segments[first:end]
        cleaned = Segment(self._handles, self.directory, bases[0], replaced[0].created_ms, CLEANED)
        cleaned.rename(SWAP)
        self._doom_files(replaced, due_ms)
        cleaned.rename("")
        cleaned.log.load()
        for segment in replaced[1:]:
            self._doom_snapshot(segment, due_ms)
        self._segments[first:end] = [cleaned]
        self._bases[first:end] = bases[:1]
        return True

    def reap(self, now_ms: int) -> int:
        """Remove the files that are due; how many."""
        count = 0
        while self.doomed and self.doomed[0][0] <= now_ms:
            path = self.doomed.popleft()[1]
            if Path(path).exists():
                self._handles.files.unlink(path)
                count += 1
        return count

    # End

    def take_unsynced(self) -> list[Handle]:
        """The files of complete segments that have to be synced."""
        segments, self.unsynced = self.unsynced, []
        return [handle for segment in segments for handle in segment.written_handles()]

    def finish(self) -> None:
        """Write the indexes of the active segment as those of a complete one."""
        if self.active.has_unwritten_indexes:
            self.active.close_indexes()
            self.unsynced.append(self.active)

    def moved(self, directory: str) -> None:
        """The directory has been renamed."""
        self.doomed = deque((due, path.replace(self.directory, directory, 1)) for due, path in self.doomed)
        self.directory = directory
        for segment in self._segments:
            segment.moved(directory)

    def close_files(self) -> None:
        for segment in self._segments:
            segment.close_files()
