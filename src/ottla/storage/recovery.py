"""Opening the directory of a log, whatever state it was left in.

After a clean stop nothing is read but the end of the last segment. After any other stop the segments from
the recovery point on are checked batch by batch: the first byte that cannot be right ends the log, what
comes after it is deleted, and indexes, epochs and producers are made anew from what is left. Everything
before the recovery point was synced and is believed.

Recovering twice leaves the same files as recovering once.
"""

from __future__ import annotations

import logging
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from crc32c import crc32c

from ottla.protocol.batch import HEADER_SIZE, LOG_OVERHEAD
from ottla.protocol.errors import CorruptMessage, KafkaStorageError
from ottla.storage.batch_file import BatchFile, FileBatch
from ottla.storage.epochs import CorruptEpochs, Epochs
from ottla.storage.handles import Handles
from ottla.storage.index_file import CorruptIndex
from ottla.storage.producer_state import Producers
from ottla.storage.replay import replay
from ottla.storage.segment import (
    CLEANED,
    DELETED,
    GREATEST_RELATIVE_OFFSET,
    INDEX,
    LOG,
    SNAPSHOT,
    SUFFIXES,
    SWAP,
    TIME_INDEX,
    Segment,
    file_name,
)
from ottla.storage.snapshots import delete_snapshots, producers_at, snapshots, take_snapshot
from ottla.storage.transaction_index import AbortedEntry

# Batches are checked in blocks of this size: large reads, and few of them.
SCAN_BYTES: Final = 4 * 1024 * 1024
TEMPORARY: Final = ".tmp"

_HEADER: Final = Struct(">qiibIhiqqqhii")
_NAME: Final = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|\.cleaned|\.swap|\.tmp)?"
)

logger = logging.getLogger(__name__)


class Loaded(NamedTuple):
    """A log as it was found, put in order."""

    segments: list[Segment]
    epochs: Epochs
    producers: Producers
    start_offset: int
    end_offset: int
    recovery_point: int
    snapshot_offset: int
    # Segments that are complete but that nobody knows to be synced.
    unsynced: list[Segment]


class Loader:
    """One opening of one directory."""

    def __init__(
        self,
        handles: Handles,
        directory: str,
        *,
        now_ms: int,
        index_interval_bytes: int,
        producer_expiration_ms: int,
        may_have_gaps: bool = False,
    ) -> None:
        self.handles = handles
        self.files = handles.files
        self.directory = directory
        self.now_ms = now_ms
        self.index_interval_bytes = index_interval_bytes
        self.producer_expiration_ms = producer_expiration_ms
        # Whether compaction may have emptied the end of a segment.
        self.may_have_gaps = may_have_gaps
        self.segments: list[Segment] = []
        self.epochs = Epochs(self.files, "", [])

    def load(self, *, recovery_point: int, start_offset: int, clean_shutdown: bool) -> Loaded:
        bases = self.tidy()
        self.segments = [self._segment(base) for base in bases]
        self._load_epochs()
        # Which segments were checked, and so are not known to be synced.
        first_checked = len(self.segments)
        producers: Producers | None = None
        end_offset = start_offset
        if self.segments:
            if not clean_shutdown:
                # The segment of the last synced record is checked too, though its records are safe: it may
                # have been the active one, whose indexes a flush leaves out.
                first_checked = max(0, bisect_right(bases, recovery_point - 1) - 1)
                self._restore_indexes(self.segments[:first_checked])
                producers, end_offset = self.recover(first_checked, recovery_point)
            else:
                try:
                    self._restore_indexes(self.segments)
                    end_offset = self.segments[-1].next_offset()
                except CorruptMessage as error:
                    logger.warning("%s was stopped cleanly, but %s; it is recovered", self.directory, error)
                    clean_shutdown, first_checked = False, 0
                    producers, end_offset = self.recover(0, recovery_point)
        if self.segments and end_offset < start_offset:
            logger.warning("%s ends at %d, before its start %d", self.directory, end_offset, start_offset)
            self._delete_segments(0)
            producers = None
        if not self.segments:
            end_offset = start_offset
            delete_snapshots(self.files, self.directory, after=-1)
            self.epochs.clear()
            producers = Producers(end_offset=start_offset)
            self.segments = [Segment.create(self.handles, self.directory, start_offset, self.now_ms)]
            first_checked = 1
        start_offset = max(start_offset, self.segments[0].base_offset)
        self.epochs.truncate_to(end_offset)
        self.epochs.start_from(start_offset)
        self.epochs.durable = recovery_point > 0
        if producers is None:
            delete_snapshots(self.files, self.directory, after=end_offset)
            producers = self._producers_at(
                end_offset, scan=not clean_shutdown or bool(snapshots(self.directory))
            )
        return Loaded(
            self.segments,
            self.epochs,
            producers,
            start_offset,
            end_offset,
            end_offset if clean_shutdown else min(recovery_point, end_offset),
            max(snapshots(self.directory), default=start_offset),
            self.segments[first_checked:-1],
        )

    def _segment(self, base_offset: int) -> Segment:
        segment = Segment(self.handles, self.directory, base_offset, self.now_ms)
        segment.log.load()
        return segment

    def _load_epochs(self) -> None:
        try:
            self.epochs = Epochs.load(self.files, self.directory)
        except CorruptEpochs as error:
            logger.warning(
                "leader epochs of %s are damaged and are taken from the log: %s", self.directory, error
            )
            self.epochs = Epochs.empty(self.files, self.directory)
            self.epochs.stale = True
            for segment in self.segments:
                try:
                    for batch in segment.log.walk():
                        self._note_epoch(batch)
                except CorruptMessage:
                    break

    # Names

    def tidy(self) -> list[int]:
        """Finish or undo what was under way with files, and answer the base offsets of segments."""
        found: dict[str, list[tuple[int, str]]] = {"": [], DELETED: [], CLEANED: [], SWAP: [], TEMPORARY: []}
        with os.scandir(self.directory) as entries:
            for entry in entries:
                if match := _NAME.fullmatch(entry.name):
                    found[match[3] or ""].append((int(match[1]), match[2]))
                elif entry.name == "leader-epoch-checkpoint.tmp":
                    self.files.unlink(entry.path)
        for suffix in (DELETED, TEMPORARY):
            for base, kind in found[suffix]:
                self._unlink(file_name(base, kind + suffix))
        # A split of a segment writes all its .cleaned files before it renames any to .swap, so that .swap
        # files beyond a .cleaned one belong to a split that was not finished.
        least_cleaned = min((base for base, _ in found[CLEANED]), default=None)
        for base, kind in found[SWAP]:
            if least_cleaned is not None and base >= least_cleaned:
                self._unlink(file_name(base, kind + SWAP))
        for base, kind in found[CLEANED]:
            self._unlink(file_name(base, kind + CLEANED))
        swaps = [(base, kind) for base, kind in found[SWAP] if least_cleaned is None or base < least_cleaned]
        ordinary = set(found[""])
        if swaps:
            ordinary = self._finish_swap(swaps, ordinary)
        bases = sorted(base for base, kind in ordinary if kind == LOG)
        for base, kind in ordinary:
            if kind in SUFFIXES and (base, LOG) not in ordinary:
                self._unlink(file_name(base, kind))
        self._delete_stray_snapshots(sorted(base for base, kind in ordinary if kind == SNAPSHOT), bases)
        return bases

    def _finish_swap(
        self, swaps: list[tuple[int, str]], ordinary: set[tuple[int, str]]
    ) -> set[tuple[int, str]]:
        """Replace the segments that a compaction had rewritten by what it had made of them.

        Batches first, here as there: where only indexes are left to be renamed, theirs are in place already.
        """
        rewritten = [base for base, kind in swaps if kind == LOG]
        end = -1
        for base in rewritten:
            log = BatchFile(self.handles, f"{self.directory}/{file_name(base, LOG + SWAP)}")
            log.load()
            end = max([end, base, *(batch.last_offset + 1 for batch in log.walk())])
            log.handle.close()
        least = min(rewritten, default=end)
        replaced = {(base, kind) for base, kind in ordinary if least <= base < end and kind in SUFFIXES}
        for base, kind in replaced:
            self._unlink(file_name(base, kind))
        for base, kind in sorted(swaps, key=lambda swap: SUFFIXES.index(swap[1])):
            name = f"{self.directory}/{file_name(base, kind)}"
            self.files.rename(name + SWAP, name)
        return (ordinary - replaced) | set(swaps)

    def _delete_stray_snapshots(self, snapshots: list[int], bases: list[int]) -> None:
        """Snapshots belong to the start of a segment; the newest may be that of the end of the log."""
        for offset in snapshots:
            if offset not in bases and not (offset == snapshots[-1] and bases and offset > bases[-1]):
                self._unlink(file_name(offset, SNAPSHOT))

    def _unlink(self, name: str) -> None:
        self.files.unlink(f"{self.directory}/{name}")

    def _delete_segments(self, first: int) -> None:
        for segment in self.segments[first:]:
            segment.close_files()
            for suffix in SUFFIXES:
                if Path(segment.path(suffix)).exists():
                    self.files.unlink(segment.path(suffix))
        del self.segments[first:]

    # Segments

    def _producers_at(self, offset: int, *, scan: bool = True) -> Producers:
        return producers_at(
            self.files,
            self.directory,
            self.segments,
            offset,
            now_ms=self.now_ms,
            expiration_ms=self.producer_expiration_ms,
            scan=scan,
        )

    def _restore_indexes(self, segments: Sequence[Segment]) -> None:
        """Indexes that are missing or cannot be right are made again, even where all was synced."""
        for segment in segments:
            missing = [suffix for suffix in (INDEX, TIME_INDEX) if not Path(segment.path(suffix)).exists()]
            try:
                segment.transaction_index.entries()
            except CorruptIndex:
                missing.append("transaction index")
            if missing:
                logger.warning("%s lacks %s, which is rebuilt", segment.path(LOG), ", ".join(missing))
                self.recover_segment(segment, self._producers_at(segment.base_offset))

    def recover(self, first: int, recovery_point: int) -> tuple[Producers, int]:
        """Check the segments from number `first` on. Answers the producers and the end of the log."""
        # Snapshots beyond may be of batches that did not survive.
        delete_snapshots(self.files, self.directory, after=self.segments[first].base_offset)
        producers = self._producers_at(self.segments[first].base_offset)
        end_offset = producers.end_offset
        for number in range(first, len(self.segments)):
            segment = self.segments[number]
            if segment.base_offset < end_offset:
                logger.warning("%s overlaps the segment before it and is deleted", segment.path(LOG))
                self._delete_segments(number)
                break
            size = segment.size
            end_offset = self.recover_segment(segment, producers)
            producers.end_offset = end_offset
            if segment.size < size:
                logger.warning("%s was cut from %d to %d bytes", segment.path(LOG), size, segment.size)
                self._delete_segments(number + 1)
                break
            if number + 1 < len(self.segments):
                following = self.segments[number + 1]
                gap = following.base_offset > end_offset
                if gap and end_offset >= recovery_point and not self.may_have_gaps:
                    # A power cut took whole batches from the end of this file, and not the file after it.
                    # Below the recovery point that cannot be: there a gap is what compaction once made.
                    logger.warning("%s was cut off at offset %d", segment.path(LOG), end_offset)
                    self._delete_segments(number + 1)
                    break
                if following.base_offset < end_offset:
                    continue  # which finds that it overlaps
                # Nothing happens in a gap between segments, so this is the state at the next base.
                take_snapshot(self.files, self.directory, producers, following.base_offset)
        if end_offset > max(snapshots(self.directory), default=self.segments[0].base_offset):
            take_snapshot(self.files, self.directory, producers, end_offset)
        return producers, end_offset

    def recover_segment(self, segment: Segment, producers: Producers) -> int:
        """Check every batch, cut off what is not one, index the rest; the offset after the last batch."""
        segment.clear_indexes()
        valid = 0
        end_offset = segment.base_offset
        for batch, data in checked_batches(segment.log, segment.base_offset):
            segment.index_batch(batch, self.index_interval_bytes)
            self._note_epoch(batch)
            if batch.producer_id >= 0:
                completed = replay(producers, batch, lambda data=data: data)  # type: ignore[misc]
                if completed is not None:
                    stable = producers.complete(completed)
                    if completed.aborted:
                        segment.transaction_index.append(AbortedEntry(*completed[:3], stable))
            valid = batch.end_position
            end_offset = batch.last_offset + 1
        if valid < segment.size:
            segment.log.truncate(valid)
        segment.close_indexes()
        segment.bytes_since_index = 0
        return end_offset

    def _note_epoch(self, batch: FileBatch) -> None:
        if batch.leader_epoch > self.epochs.latest and self.epochs.assign_in_memory(
            batch.leader_epoch, batch.base_offset
        ):
            self.epochs.stale = True


def checked_batches(log: BatchFile, base_offset: int) -> Iterator[tuple[FileBatch, memoryview]]:
    """Every batch of a file up to the first that is not whole and right, checksum included.

    The bytes of a batch are good until the next one is asked for.
    """
    size = log.size
    view = memoryview(bytearray(min(SCAN_BYTES, size)))
    start = filled = position = 0
    next_offset = base_offset
    while size - position >= HEADER_SIZE:
        at = position - start
        if at + HEADER_SIZE > filled:
            start, at, filled = position, 0, _fill(log, view, position)
        (
            offset,
            length,
            epoch,
            magic,
            crc,
            attributes,
            delta,
            _,
            timestamp,
            producer,
            producer_epoch,
            sequence,
            count,
        ) = _HEADER.unpack_from(view, at)
        batch_size = LOG_OVERHEAD + length
        end = position + batch_size
        if magic != 2 or length < HEADER_SIZE - LOG_OVERHEAD or end > size:
            if magic in (0, 1):
                _refuse_old_format(log, position)
            return
        if delta < 0 or offset < next_offset or offset + delta - base_offset > GREATEST_RELATIVE_OFFSET:
            return
        if at + batch_size > filled:
            if batch_size > len(view):
                view = memoryview(bytearray(batch_size))
            start, at, filled = position, 0, _fill(log, view, position)
        data = view[at : at + batch_size]
        if crc32c(data[21:]) != crc:
            return
        next_offset = offset + delta + 1
        yield (
            FileBatch(
                position,
                batch_size,
                offset,
                offset + delta,
                epoch,
                attributes,
                timestamp,
                producer,
                producer_epoch,
                sequence,
                count,
            ),
            data,
        )
        position = end


def _fill(log: BatchFile, view: memoryview, position: int) -> int:
    """Read as much of the file into `view` as fits."""
    filled = 0
    while filled < len(view):
        read = os.preadv(log.handle.get(), [view[filled:]], position + filled)
        if not read:
            break
        filled += read
    return filled


def _refuse_old_format(log: BatchFile, position: int) -> None:
    """A message of format 0 or 1 is no damage: Kafka before 0.11 wrote it. To cut it off would lose data."""
    head = os.pread(log.handle.get(), 16, position)
    length = int.from_bytes(head[8:12], "big", signed=True)
    if 14 <= length <= log.size - position - LOG_OVERHEAD:
        body = os.pread(log.handle.get(), length - 4, position + 16)
        if crc32(body) == int.from_bytes(head[12:16], "big"):
            raise KafkaStorageError(f"{log.handle.path} has records of a message format before version 2")
