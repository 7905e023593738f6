"""Compaction of one log: of every key only the last record stays, at the offset it has always had.

It takes two passes. The first reads the dirty part and remembers the last offset of each key in it. The
second reads the log from its start and writes what is to stay into new segments, `.cleaned`, which the log
then takes in the place of the old ones (`Log.take_cleaned`). Both run in a thread of their own: they read
files that nobody changes any more, by handles of their own, and what else they have to know is in a `Job`.

The rules are those of Kafka's LogCleaner. A deletion (a record without a value) and a marker stay for
`delete.retention.ms` after the first compaction that met them, so that readers who are behind see them too:
that compaction writes down until when, the delete horizon, in place of the batch's base timestamp.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ottla.core.files import Buffer, Files
from ottla.protocol import batch as batches
from ottla.protocol import kernel
from ottla.protocol.batch import CONTROL, DELETE_HORIZON, TRANSACTIONAL, BatchHeader
from ottla.protocol.control import read_end_transaction
from ottla.protocol.errors import CorruptMessage
from ottla.protocol.kernel import OffsetMap
from ottla.storage.batch_file import BatchFile, FileBatch
from ottla.storage.cleaned_transactions import CleanedTransactions
from ottla.storage.cleaning import SourceSegment, group_segments
from ottla.storage.handles import Handles
from ottla.storage.recovery import checked_batches
from ottla.storage.segment import CLEANED, GREATEST_RELATIVE_OFFSET, LOG, Segment, file_name
from ottla.storage.transaction_index import AbortedEntry

# What a key takes in the table of the first pass.
SLOT_BYTES: Final = 30 if kernel.compiled else 160
OPEN_FILES: Final = 8
WRITE_BYTES: Final = 1024 * 1024
# A batch is small on the wire and may be large when decompressed; it was appended, so it was not refused.
ANY_SIZE: Final = 1 << 31
# `delete.retention.ms` may be any number of milliseconds, and a horizon is 64 bits.
LAST_HORIZON_MS: Final = (1 << 63) - 1


class LastRecord(NamedTuple):
    """The last data of a producer that is still known, which compaction must leave a trace of."""

    offset: int | None
    epoch: int


class Job(NamedTuple):
    """What is to be compacted: decided on the loop, where logs change."""

    directory: str
    segments: Sequence[SourceSegment]  # from the start of the log to `end`
    first_dirty: int
    end: int
    aborted: Sequence[AbortedEntry]
    last_records: Mapping[int, LastRecord]
    now_ms: int
    delete_retention_ms: int
    max_segment_bytes: int
    max_index_bytes: int
    index_interval_bytes: int
    truncations: int


class Cleaner:
    """One compaction. `pause` is called with the bytes that were read: it may wait, or raise to give up.

    Raises CorruptMessage if the log cannot be read, and OSError.
    """

    def __init__(self, files: Files, job: Job, *, memory: int, pause: Callable[[int], None]) -> None:
        self._files = files
        self._job = job
        self._pause = pause
        dirty = job.end - job.first_dirty
        self._map = OffsetMap(max(1, min(dirty, memory // SLOT_BYTES)))
        # Up to here the map knows every key.
        self.latest_offset = job.first_dirty - 1
        self.bytes_read = 0
        self.bytes_written = 0
        self._transactions = CleanedTransactions(job.aborted)

    # First pass

    def map_keys(self) -> None:
        """Find the last offset of every key of the dirty part, or of as much of it as there is memory for."""
        job = self._job
        transactions = CleanedTransactions(job.aborted)
        for segment in job.segments:
            if segment.end_offset > job.first_dirty:
                for batch, data in self._batches(segment):
                    if not self._map_batch(batch, data, transactions):
                        return
                self.latest_offset = segment.end_offset - 1

    def _map_batch(self, batch: FileBatch, data: memoryview, transactions: CleanedTransactions) -> bool:
        """Whether there was room for all of its keys."""
        if batch.attributes & CONTROL:
            self._read_marker(batch, data, transactions)
        elif batch.record_count and not self._is_aborted(batch, transactions):
            section = batches.uncompressed_records(data, batches.read_header(data), ANY_SIZE)
            fault, index = self._map.add(
                section, batch.record_count, batch.base_offset, self._job.first_dirty
            )
            if fault:
                raise CorruptMessage(f"the batch at {batch.base_offset}: {kernel.describe(fault, index)}")
            if index < batch.record_count:
                return False
        self.latest_offset = max(self.latest_offset, batch.last_offset)
        return True

    # Second pass

    def groups(self) -> list[list[SourceSegment]]:
        """The segments to rewrite; those of a group become one."""
        job = self._job
        return group_segments(
            [segment for segment in job.segments if segment.base_offset <= self.latest_offset],
            job.max_segment_bytes,
            job.max_index_bytes,
            GREATEST_RELATIVE_OFFSET,
        )

    def clean(self, group: Sequence[SourceSegment]) -> None:
        """Write the `.cleaned` segment that a group becomes, and sync it."""
        job = self._job
        handles = Handles(self._files, OPEN_FILES)
        cleaned = Segment.create(handles, job.directory, group[0].base_offset, job.now_ms, CLEANED)
        try:
            waiting = 0
            for segment in group:
                for batch, data in self._batches(segment):
                    kept = self._kept(batch, data, cleaned)
                    if kept is not None:
                        self._append(cleaned, kept)
                        waiting += len(kept)
                        if waiting >= WRITE_BYTES:
                            cleaned.log.write()
                            waiting = 0
            cleaned.log.write()
            cleaned.deactivate()
            for handle in cleaned.written_handles():
                self._files.fsync(handle.get())
            self._keep_time(cleaned, group[-1])
            self.bytes_written += cleaned.size
        except BaseException:
            cleaned.delete()
            raise
        finally:
            cleaned.close_files()

    def discard(self, group: Sequence[SourceSegment]) -> None:
        """Remove what `clean` wrote, for a log that has no use for it any more."""
        job = self._job
        Segment(Handles(self._files, OPEN_FILES), job.directory, group[0].base_offset, 0, CLEANED).delete()

    def _append(self, cleaned: Segment, batch: Buffer) -> None:
        header = batches.read_header(batch)
        cleaned.append(
            batch, len(batch), header.last_offset, header.max_timestamp, self._job.index_interval_bytes
        )

    def _kept(self, batch: FileBatch, data: memoryview, cleaned: Segment) -> Buffer | None:
        """What stays of a batch: itself, less of it, its header alone, or nothing."""
        header = batches.read_header(data)
        horizon = header.delete_horizon_ms
        is_past = horizon is not None and horizon <= self._job.now_ms
        if header.is_control:
            entry, is_needed = self._read_marker(batch, data, self._transactions)
            if entry is not None:
                cleaned.transaction_index.append(entry)
            if not batch.record_count or (is_past and not is_needed):
                return self._emptied(header)
            return bytes(data) if is_needed or horizon is not None else self._with_horizon(header, data)
        if self._is_aborted(batch, self._transactions) or not batch.record_count:
            return self._emptied(header)
        section = batches.uncompressed_records(data, header, ANY_SIZE)
        fault, index, kept, records, has_deletes, max_timestamp_delta = self._map.retain(
            section, batch.record_count, batch.base_offset, self.latest_offset, is_past
        )
        if fault:
            raise CorruptMessage(f"the batch at {batch.base_offset}: {kernel.describe(fault, index)}")
        if not kept:
            return self._emptied(header)
        if records is not None:
            if not header.is_log_append_time:
                latest = kernel.wrapped(header.base_timestamp + max_timestamp_delta)
                header = header._replace(max_timestamp=latest)
            header = header._replace(record_count=kept)
            if not has_deletes or horizon is not None:
                return batches.build_batch(header, records)
            return self._with_horizon(header, batches.build_batch(header, records))
        return self._with_horizon(header, data) if has_deletes and horizon is None else bytes(data)

    def _emptied(self, header: BatchHeader) -> Buffer | None:
        """A header without records where one is needed: for a producer's last batch, and the last of all.

        Without the one the producer's next batch would seem out of order, without the other the offset where
        the cleaned part ends would be lost with its records.
        """
        last = self._job.last_records.get(header.producer_id) if header.producer_id >= 0 else None
        is_last = last is not None and (
            header.last_offset == last.offset
            if last.offset is not None
            else header.is_control and header.producer_epoch == last.epoch
        )
        if not is_last and header.last_offset + 1 != self._job.end:
            return None
        attributes = header.attributes & ~(DELETE_HORIZON | batches.CODEC_MASK)
        return batches.build_batch(
            header._replace(attributes=attributes, base_timestamp=batches.NO_TIMESTAMP, record_count=0), b""
        )

    def _with_horizon(self, header: BatchHeader, data: Buffer) -> Buffer:
        """The batch with its horizon as base timestamp, to which the times of its records refer anew."""
        return batches.write_batch(
            batches.read_records(data, ANY_SIZE),
            base_offset=header.base_offset,
            codec=header.codec,
            leader_epoch=header.partition_leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            attributes=header.attributes & (TRANSACTIONAL | CONTROL),
            keep_offsets=True,
            last_offset_delta=header.last_offset_delta,
            log_append_time_ms=header.max_timestamp if header.is_log_append_time else None,
            delete_horizon_ms=min(self._job.now_ms + self._job.delete_retention_ms, LAST_HORIZON_MS),
        )

    def _keep_time(self, cleaned: Segment, last: SourceSegment) -> None:
        """Records without timestamps are as old as their file."""
        path = Path(self._job.directory, file_name(last.base_offset, LOG))
        changed = path.stat()
        os.utime(cleaned.path(LOG), ns=(changed.st_atime_ns, changed.st_mtime_ns))

    # Both

    def _batches(self, segment: SourceSegment) -> Iterator[tuple[FileBatch, memoryview]]:
        path = f"{self._job.directory}/{file_name(segment.base_offset, LOG)}"
        log = BatchFile(Handles(self._files, OPEN_FILES), path)
        log.load()
        position = 0
        try:
            for batch, data in checked_batches(log, segment.base_offset):
                self._pause(batch.size)
                self.bytes_read += batch.size
                yield batch, data
                position = batch.end_position
            if position < log.size:
                raise CorruptMessage(f"{log.handle.path} has no batch at {position}")
        finally:
            log.handle.close()

    @staticmethod
    def _is_aborted(batch: FileBatch, transactions: CleanedTransactions) -> bool:
        if not batch.attributes & TRANSACTIONAL:
            return False
        return transactions.on_batch(batch.producer_id, batch.last_offset)

    @staticmethod
    def _read_marker(
        batch: FileBatch, data: memoryview, transactions: CleanedTransactions
    ) -> tuple[AbortedEntry | None, bool]:
        """The aborted transaction that a marker ends, if a batch of it is left, and whether one is left."""
        marker = read_end_transaction(data)
        if marker is None:
            # Emptied before, or a control record that has nothing to do with transactions.
            return None, bool(batch.record_count)
        if marker.commit:
            return None, not transactions.on_commit(marker.producer_id, batch.last_offset)
        entry = transactions.on_abort(marker.producer_id, batch.last_offset)
        return entry, entry is not None
