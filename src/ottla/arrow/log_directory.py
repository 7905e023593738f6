"""Partitions read straight from a data directory, Ottla's or Kafka's, whether its broker runs or not.

Nothing is ever written, and no lock is taken. A broker that runs meanwhile appends, rolls, compacts and
deletes: what has gone by the time it is wanted is an OffsetOutOfRange. The log ends with the last whole batch
whose CRC is right, as it would after a broker's recovery.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ottla.arrow.segment_files import greatest_timestamp, time_floor, walk_from, whole_batches
from ottla.core.files import Buffer
from ottla.core.types import TopicPartition
from ottla.protocol.batch import LOG_OVERHEAD, crc_ok, first_at_or_after
from ottla.protocol.control import read_end_transaction
from ottla.protocol.errors import CorruptMessage, OffsetOutOfRange, UnknownTopicOrPartition
from ottla.storage.checkpoints import START_OFFSETS, CheckpointError, read_offsets
from ottla.storage.directory_names import Kind as DirectoryKind
from ottla.storage.directory_names import parse_name
from ottla.storage.inspect.batches import FoundBatch, Walk, read_batch
from ottla.storage.inspect.directory import (
    Kind,
    PartitionDirectory,
    SegmentFiles,
    base_offset_of,
    kind_of,
    read_partition_directory,
)
from ottla.storage.inspect.indexes import read_transaction_index
from ottla.storage.producer_snapshot import CorruptSnapshot, decode_snapshot
from ottla.storage.producer_state import NO_OFFSET

READ_BYTES: Final = 4 * 1024 * 1024
"""What is read at a time; more where one batch is larger."""

MOST_TRIES: Final = 3

_NO_END: Final = (1 << 63) - 1


class Piece(NamedTuple):
    """Some whole record batches, and the aborted transactions that reach into them."""

    records: Buffer
    aborted: list[tuple[int, int]]


def topic_partitions(directory: str | os.PathLike[str], topic: str) -> dict[int, PartitionLog]:
    """The partitions of a topic in a data directory (or in several: `log.dirs` with commas), by number.

    Raises UnknownTopicOrPartition if there are none.
    """
    found = {}
    for path in map(Path, os.fspath(directory).split(",")):
        if not path.is_dir():
            raise UnknownTopicOrPartition(f"{path} is not a directory")
        for each in path.iterdir():
            kind, partition = parse_name(each.name)
            if kind is DirectoryKind.PARTITION and partition is not None and partition.topic == topic:
                found[partition.partition] = PartitionLog(each, partition)
    if not found:
        raise UnknownTopicOrPartition(f"{os.fspath(directory)} holds no partition of {topic}")
    return dict(sorted(found.items()))


class PartitionLog:
    """The log in one partition's directory."""

    def __init__(self, path: Path, partition: TopicPartition) -> None:
        self.path = path
        self.partition = partition

    @property
    def start_offset(self) -> int:
        """The first offset that is still there, or was not deleted by a request."""
        first = self._segments()[0].base_offset
        try:
            return max(first, read_offsets(str(self.path.parent / START_OFFSETS)).get(self.partition, 0))
        except (FileNotFoundError, CheckpointError):
            return first

    def end_offset(self, *, read_committed: bool = False) -> int:
        """The offset after the last record; or that of the first record of the oldest open transaction."""
        directory = self._directory()
        end = _end_offset(directory.segments[-1])
        if read_committed:
            return min([end, *_open_transactions(directory, end).values()])
        return end

    def offset_at(self, timestamp_ms: int) -> int:
        """The offset of the first record that is not older than `timestamp_ms`; -1 if there is none."""
        segments = self._segments()
        start = self.start_offset
        for segment in segments:
            if greatest_timestamp(segment, is_active=segment is segments[-1]) < timestamp_ms:
                continue
            for found in walk_from(segment, max(time_floor(segment, timestamp_ms), start)):
                if found.header.max_timestamp < timestamp_ms or found.header.last_offset < start:
                    continue
                record = first_at_or_after(read_batch(segment.log, found), timestamp_ms, start)
                if record is not None:
                    return record[0]
        return -1

    def read(self, start: int, end: int, *, read_committed: bool = False) -> Iterator[Piece]:
        """All batches with an offset from `start` to before `end`, which is not after `end_offset`.

        Raises OffsetOutOfRange where retention was faster, and CorruptMessage for bytes that are no batch.
        """
        aborted = self._aborted(start, end) if read_committed else []
        position = start
        tries = 0
        while position < end:
            segment, following = self._segment_of(position)
            try:
                for records, next_offset in _read_segment(segment, position, end):
                    yield Piece(records, aborted)
                    position = max(position, next_offset)
            except FileNotFoundError:
                # Compacted or deleted since it was listed. The next look at the directory tells.
                tries += 1
                if tries == MOST_TRIES:
                    raise
                continue
            if position >= end:
                return
            if following is None:
                raise CorruptMessage(f"{segment.log} ends before offset {position}; {end} was to be the end")
            position = max(position, following)
            tries = 0

    def _directory(self) -> PartitionDirectory:
        directory = read_partition_directory(self.path)
        if not directory.segments:
            raise UnknownTopicOrPartition(f"{self.path} holds no segment")
        return directory

    def _segments(self) -> list[SegmentFiles]:
        return self._directory().segments

    def _segment_of(self, offset: int) -> tuple[SegmentFiles, int | None]:
        """The segment with an offset, and where the one after it begins."""
        segments = self._segments()
        bases = [segment.base_offset for segment in segments]
        at = bisect_right(bases, offset)
        if at == 0:
            raise OffsetOutOfRange(f"{self.partition}: offset {offset} is gone, the log begins at {bases[0]}")
        return segments[at - 1], bases[at] if at < len(bases) else None

    def _aborted(self, start: int, end: int) -> list[tuple[int, int]]:
        """The aborted transactions with records in a range, as a broker would list them."""
        found = []
        first = self._segment_of(start)[0].base_offset
        for segment in self._segments():
            path = segment.files.get(Kind.TRANSACTION_INDEX)
            if path is None or segment.base_offset < first:
                continue
            found += [
                (entry.producer_id, entry.first_offset)
                for entry in read_transaction_index(path)[0]
                if entry.last_offset >= start and entry.first_offset < end
            ]
        return found


def _read_segment(segment: SegmentFiles, start: int, end: int) -> Iterator[tuple[memoryview, int]]:
    """The batches of a segment that reach into a range, and the offset after each piece."""
    walk = walk_from(segment, start)
    position = next((found.position for found in walk if found.header.last_offset >= start), walk.end)
    with segment.log.open("rb") as file:
        size = READ_BYTES
        while data := memoryview(os.pread(file.fileno(), size, position)):
            whole, next_offset = whole_batches(data)
            if whole:
                yield data[:whole], next_offset
                if next_offset >= end:
                    return
                position += whole
                size = READ_BYTES
                continue
            needed = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big")
            if not size < needed <= os.fstat(file.fileno()).st_size - position:
                raise CorruptMessage(f"{segment.log} has no whole batch at byte {position}")
            size = needed


def _end_offset(segment: SegmentFiles) -> int:
    """The offset after the last whole batch of the last segment."""
    for walk in (walk_from(segment, _NO_END), Walk(segment.log)):
        # A power loss may have left a batch without all of its bytes.
        for found in reversed(list(walk)):
            if crc_ok(read_batch(segment.log, found)):
                return found.header.last_offset + 1
    return segment.base_offset


def _open_transactions(directory: PartitionDirectory, end: int) -> dict[int, int]:
    """The producers with a transaction that has not ended before `end`, and where it begins."""
    since, transactions = _snapshot(directory, end)
    for segment, found in _batches(directory, since, end):
        header = found.header
        if header.is_control:
            marker = read_end_transaction(read_batch(segment.log, found))
            if marker is not None:
                transactions.pop(marker.producer_id, None)
        elif header.is_transactional:
            transactions.setdefault(header.producer_id, header.base_offset)
    return transactions


def _snapshot(directory: PartitionDirectory, end: int) -> tuple[int, dict[int, int]]:
    """The newest snapshot of the producers, so that not the whole log has to be walked."""
    for path in reversed(directory.files):
        if kind_of(path.name) is not Kind.PRODUCER_SNAPSHOT or base_offset_of(path.name) > end:
            continue
        try:
            producers = decode_snapshot(path.read_bytes())
        except (CorruptSnapshot, FileNotFoundError):
            continue
        return base_offset_of(path.name), {
            producer.id: producer.transaction_first_offset
            for producer in producers
            if producer.transaction_first_offset != NO_OFFSET
        }
    return 0, {}


def _batches(
    directory: PartitionDirectory, start: int, end: int
) -> Iterator[tuple[SegmentFiles, FoundBatch]]:
    segments = directory.segments
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if following is None or following.base_offset > start:
            for found in walk_from(segment, start):
                if start <= found.header.base_offset < end:
                    yield segment, found
