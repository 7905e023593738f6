"""The log of a partition: batches in segments, by offset.

`append` gives batches their offsets and keeps them pending, `write` hands all that is pending to the kernel
in one call, a flush makes it durable. Nothing here waits and nothing is locked: a log belongs to one thread,
and only `Flush.sync` runs in another.

An OSError from any write ends the life of the log: it is passed on to the caller, who takes the log
directory offline, and every later call answers KafkaStorageError. Only if no more files can be opened, which
is found out before anything is changed, the log is as good as before, and the same call may be made again.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ottla.core.files import Buffer, Files
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol import batch as batches
from ottla.protocol.batch import LOG_OVERHEAD, TRANSACTIONAL
from ottla.protocol.control import read_end_transaction
from ottla.protocol.errors import (
    CorruptMessage,
    InvalidRecord,
    KafkaStorageError,
    MessageTooLarge,
    OffsetOutOfRange,
    RecordListTooLarge,
)
from ottla.storage.batch_file import FileBatch
from ottla.storage.cleaner import Job, LastRecord
from ottla.storage.cleaning import (
    Cleanable,
    Lags,
    Retention,
    SourceSegment,
    plan_compaction,
    plan_retention,
)
from ottla.storage.files import is_of_the_disk
from ottla.storage.flush import Flush, pin_all, unpin_all
from ottla.storage.handles import Handles, shared_handles
from ottla.storage.producer_state import LAST_SEQUENCE, Producers
from ottla.storage.recovery import Loaded, Loader
from ottla.storage.replay import replay
from ottla.storage.segment import GREATEST_RELATIVE_OFFSET, Segment, TimestampOffset
from ottla.storage.segments import Segments
from ottla.storage.snapshots import delete_snapshots, producers_at, snapshots, take_snapshot
from ottla.storage.transaction_index import AbortedEntry
from ottla.storage.validation import Rules, check_client_batch

if TYPE_CHECKING:
    from ottla.config.topic import TopicSettings

T = TypeVar("T")

DAY_MS: Final = 24 * 60 * 60 * 1000
_ASSIGN: Final = Struct(">qii").pack_into


class Origin(Enum):
    """Who made the records of an append, and so how much of them has to be checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    RAFT = "raft"


_CLIENT: Final = Origin.CLIENT


class Appended:
    """Where a batch went. Of a duplicate: where it went the first time."""

    __slots__ = ("base_offset", "duplicate", "last_offset", "log_append_time_ms")

    def __init__(
        self, base_offset: int, last_offset: int, log_append_time_ms: int = -1, duplicate: bool = False
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        # -1 unless the topic has LogAppendTime; of a duplicate the timestamp of the original.
        self.log_append_time_ms = log_append_time_ms
        self.duplicate = duplicate

    def __repr__(self) -> str:
        return (
            f"Appended({self.base_offset}, {self.last_offset}, {self.log_append_time_ms}, {self.duplicate})"
        )


class AbortedTransaction(NamedTuple):
    """Records of this producer from `first_offset` up to the producer's next marker are not to be seen."""

    producer_id: int
    first_offset: int


class Log:
    def __init__(
        self,
        directory: str,
        partition: TopicPartition,
        settings: TopicSettings,
        *,
        handles: Handles,
        topic_id: Uuid | None,
        loaded: Loaded,
        jitter: Callable[[int], int],
        producer_id_expiration_ms: int,
    ) -> None:
        self.directory = directory
        self.partition = partition
        self.topic_id = topic_id
        self.handles = handles
        self.files = handles.files
        self.segments = Segments(handles, directory, loaded.segments, loaded.unsynced, jitter, settings)
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.start_offset = loaded.start_offset
        self.end_offset = loaded.end_offset
        self.high_watermark = loaded.start_offset
        self.recovery_point = loaded.recovery_point
        self.producer_id_expiration_ms = producer_id_expiration_ms
        # Where the last compaction ended; None if there was none.
        self.clean_up_to: int | None = None
        # Whether a write or a sync has failed; there is no way back.
        self.failed = False
        self._snapshot_offset = loaded.snapshot_offset
        self._truncations = 0
        # What the next flush has to sync beside segments.
        self._unsynced_paths: list[str] = []
        self._unsynced_directories: set[str] = set()
        self._settings = settings
        self._rules = Rules(settings)

    @classmethod
    def open(
        cls,
        directory: str,
        partition: TopicPartition,
        settings: TopicSettings,
        *,
        files: Files,
        now_ms: int,
        topic_id: Uuid | None = None,
        recovery_point: int = 0,
        start_offset: int = 0,
        clean_shutdown: bool = False,
        handles: Handles | None = None,
        jitter: Callable[[int], int] = random.randrange,
        producer_id_expiration_ms: int = DAY_MS,
        may_have_gaps: bool = False,
    ) -> Log:
        """Open the log in `directory`, which is created if absent and recovered if need be.

        `recovery_point` and `start_offset` are what the checkpoints say. `jitter` draws a number below the
        one it is given. `may_have_gaps` keeps a recovery from taking a gap between segments for a loss; a
        compacted log may have them in any case.
        """
        handles = shared_handles(files) if handles is None else handles
        created = not Path(directory).exists()
        if created:
            files.mkdir(directory)
        loader = Loader(
            handles,
            directory,
            now_ms=now_ms,
            index_interval_bytes=settings.index_interval_bytes,
            producer_expiration_ms=producer_id_expiration_ms,
            may_have_gaps=may_have_gaps or "compact" in settings.cleanup_policy,
        )
        loaded = loader.load(
            recovery_point=recovery_point, start_offset=start_offset, clean_shutdown=clean_shutdown
        )
        log = cls(
            directory,
            partition,
            settings,
            handles=handles,
            topic_id=topic_id,
            loaded=loaded,
            jitter=jitter,
            producer_id_expiration_ms=producer_id_expiration_ms,
        )
        if created:
            log._unsynced_directories = {directory, str(Path(directory).parent)}
        elif not clean_shutdown:
            log._unsynced_directories = {directory}
        return log

    def __repr__(self) -> str:
        return f"Log({self.partition}, {self.start_offset}..{self.end_offset})"

    @property
    def settings(self) -> TopicSettings:
        return self._settings

    @settings.setter
    def settings(self, settings: TopicSettings) -> None:
        self._settings = settings
        self._rules = Rules(settings)
        self.segments.configure(settings)

    @property
    def size(self) -> int:
        """Bytes of batches."""
        return self.segments.size

    @property
    def segment_count(self) -> int:
        return len(self.segments)

    @property
    def last_stable_offset(self) -> int:
        """Committed records are read up to here: to the first open transaction or the high watermark."""
        first_unstable = self.producers.first_unstable_offset()
        if first_unstable is None:
            return self.high_watermark
        return min(self.high_watermark, max(first_unstable, self.start_offset))

    def advance_high_watermark(self, offset: int) -> bool:
        """Let consumers read up to `offset`, as far as the log goes; whether that is further than before."""
        if offset > self.end_offset:
            offset = self.end_offset
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.replicated(offset)
        return True

    # Append

    def append(
        self,
        records: Buffer,
        leader_epoch: int,
        now_ms: int,
        *,
        origin: Origin = _CLIENT,
        transaction_version: int = 0,
    ) -> Appended:
        """Append as leader: check the records, give them offsets. They are pending until `write`.

        A client's records are exactly one batch; coordinators and the quorum may bring several. The buffer
        is patched in place if it can be written to, and must stay as it is until `write`. Raises KafkaError
        and has then changed nothing.
        """
        if self.failed:
            raise KafkaStorageError
        if type(records) is not memoryview:
            records = memoryview(records)
        if origin is not _CLIENT:
            return self._append_own(records, leader_epoch, now_ms, origin, transaction_version)
        (
            batch,
            size,
            attributes,
            last_offset_delta,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
        ) = check_client_batch(records, self._rules, now_ms)
        last_sequence = 0
        if producer_id >= 0:
            last_sequence = (base_sequence + last_offset_delta) & LAST_SEQUENCE
            original = self.producers.check(
                producer_id,
                producer_epoch,
                base_sequence,
                last_sequence,
                attributes & TRANSACTIONAL != 0,
                transaction_version=transaction_version,
            )
            if original is not None:
                return Appended(original.first_offset, original.last_offset, original.timestamp, True)
        base_offset = self.end_offset
        last_offset = base_offset + last_offset_delta
        segments = self.segments
        active = segments.active
        if (
            active.log.size + size > segments.max_bytes
            or max_timestamp > active.end_timestamp
            or active.entries_left <= 0
            or last_offset - active.base_offset > GREATEST_RELATIVE_OFFSET
        ) and segments.is_roll_due(size, last_offset, max_timestamp, now_ms):
            active = self._roll(base_offset, now_ms)
        if active.log.handle.fd < 0:
            active.log.handle.get()  # what cannot be written is not taken
        if leader_epoch > self.epochs.latest:
            self._assign_epoch(leader_epoch, base_offset)
        _ASSIGN(batch, 0, base_offset, size - LOG_OVERHEAD, leader_epoch)
        try:
            active.append(batch, size, last_offset, max_timestamp, segments.index_interval_bytes)
        except OSError:
            self.failed = True
            raise
        if producer_id >= 0:
            self.producers.apply(
                producer_id,
                producer_epoch,
                base_sequence,
                last_sequence,
                base_offset,
                last_offset,
                max_timestamp,
                attributes & TRANSACTIONAL != 0,
            )
        self.end_offset = last_offset + 1
        return Appended(base_offset, last_offset, now_ms if self._rules.log_append_time else -1)

    def _append_own(
        self, records: memoryview, leader_epoch: int, now_ms: int, origin: Origin, transaction_version: int
    ) -> Appended:
        """Append what this cluster wrote itself: its records need no checking, its producers do."""
        if records.readonly:
            records = memoryview(bytearray(records))
        found = list(batches.iter_batches(records))
        if not found or sum(len(batch) for _, batch in found) != len(records):
            raise InvalidRecord("the records to append are not whole batches")
        first_offset = end_offset = self.end_offset
        placed: list[tuple[FileBatch, memoryview]] = []
        for header, batch in found:
            self._check_own(header, batch, origin, transaction_version)
            if origin is Origin.COORDINATOR and self._rules.log_append_time:
                batches.set_max_timestamp(batch, now_ms, log_append_time=True)
                header = batches.read_header(batch)
            placed.append((FileBatch.of(header, (end_offset, leader_epoch)), batch))
            end_offset += header.last_offset_delta + 1
        for place, batch in placed:
            _ASSIGN(batch, 0, place.base_offset, place.size - LOG_OVERHEAD, leader_epoch)
            self._add(place, batch, now_ms)
        stamped = origin is Origin.COORDINATOR and self._rules.log_append_time
        return Appended(first_offset, end_offset - 1, now_ms if stamped else -1)

    def _check_own(
        self, header: batches.BatchHeader, batch: memoryview, origin: Origin, transaction_version: int
    ) -> None:
        if origin is Origin.COORDINATOR and header.size > self._rules.max_message_bytes:
            raise MessageTooLarge(f"a batch of {header.size} bytes is larger than max.message.bytes")
        if header.size > self.segments.max_bytes:
            raise RecordListTooLarge
        if header.producer_id < 0:
            return
        if header.is_control:
            marker = read_end_transaction(batch)
            if marker is not None:
                self.producers.check_marker(
                    marker.producer_id,
                    marker.producer_epoch,
                    marker.coordinator_epoch,
                    transaction_version,
                )
        else:
            self.producers.check(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.last_sequence,
                header.is_transactional,
                sequenced=False,
            )

    def append_as_follower(self, records: Buffer, now_ms: int = -1) -> None:
        """Append what the leader sent, with its offsets; a batch that is cut off at the end is left out.

        Raises CorruptMessage, OffsetOutOfRange or RecordListTooLarge and has then changed nothing.
        """
        if self.failed:
            raise KafkaStorageError
        next_offset = self.end_offset
        found = []
        for header, batch in batches.iter_batches(records):
            if not batches.crc_ok(batch):
                raise CorruptMessage(
                    f"the leader's batch at {header.base_offset} does not match its checksum"
                )
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise OffsetOutOfRange(
                    f"the leader's batch at {header.base_offset} comes after {next_offset}"
                )
            if header.size > self.segments.max_bytes:
                raise RecordListTooLarge(
                    f"the leader's batch at {header.base_offset} is larger than a segment"
                )
            next_offset = header.last_offset + 1
            found.append((FileBatch.of(header), batch))
        for place, batch in found:
            self._add(place, batch, now_ms)

    def _add(self, place: FileBatch, batch: memoryview, now_ms: int) -> None:
        """Add a batch that has its offsets and was checked."""
        active = self.segments.active
        if self.segments.is_roll_due(place.size, place.last_offset, place.max_timestamp, now_ms):
            active = self._roll(place.base_offset, now_ms)
        if active.log.handle.fd < 0:
            active.log.handle.get()  # what cannot be written is not taken
        if place.leader_epoch > self.epochs.latest:
            self._assign_epoch(place.leader_epoch, place.base_offset)
        try:
            active.append(
                batch,
                place.size,
                place.last_offset,
                place.max_timestamp,
                self.segments.index_interval_bytes,
            )
        except OSError:
            self.failed = True
            raise
        self.end_offset = place.last_offset + 1
        if place.producer_id >= 0:
            completed = replay(self.producers, place, lambda: batch)
            if completed is not None:
                stable = self.producers.complete(completed)
                if completed.aborted:
                    self._guarded(
                        lambda: active.transaction_index.append(AbortedEntry(*completed[:3], stable))
                    )
                if completed.last_offset < self.high_watermark:
                    self.producers.replicated(self.high_watermark)

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        self._guarded(lambda: self.epochs.assign(epoch, start_offset))

    def _guarded(self, act: Callable[[], None]) -> None:
        """Do something with files; if that fails, so has the log: it is between two states."""
        try:
            act()
        except OSError as error:
            self.failed = True
            if not is_of_the_disk(error):
                raise OSError(errno.EIO, f"half-way, {error.strerror}", error.filename) from error
            raise

    def _with_room(self, act: Callable[[], T]) -> T:
        """Do what may be done again if it runs out of open files; by any other error the log has failed."""
        try:
            return self.handles.with_room(act)
        except OSError as error:
            self._note(error)
            raise

    def _note(self, error: OSError) -> None:
        """The log has failed, unless no more files could be opened, which has changed nothing."""
        if is_of_the_disk(error):
            self.failed = True

    def write(self) -> None:
        """Hand every pending batch to the kernel."""
        log = self.segments.active.log
        if log.pending:
            if self.failed:
                raise KafkaStorageError
            try:
                log.write()
            except OSError as error:
                self._note(error)
                if not self.failed:
                    # Rare, since there was a file when they were appended. They wait for the next attempt,
                    # and not in a buffer that others use again.
                    log.pending = [bytes(batch) for batch in log.pending]
                raise

    # Roll

    def roll(self, now_ms: int) -> None:
        """Begin a new segment at the end of the log, unless the active one is empty."""
        if self.segments.active.size:
            self._roll(self.end_offset, now_ms)

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        active = self.segments.active
        if active.size == 0 and active.base_offset == base_offset:
            return active
        self.write()
        self._with_room(lambda: self._take_snapshot(base_offset))
        segment = self._with_room(lambda: self.segments.roll(base_offset, now_ms))
        self._unsynced_directories.add(self.directory)
        return segment

    def _take_snapshot(self, offset: int) -> None:
        """Remember the producers as of the end of the log, which is `offset` but for a gap."""
        if offset > self._snapshot_offset:
            self._unsynced_paths.append(take_snapshot(self.files, self.directory, self.producers, offset))
            self._unsynced_directories.add(self.directory)
            self._snapshot_offset = offset

    # Read

    def read(self, offset: int, max_bytes: int, end_offset: int, *, min_one_batch: bool = True) -> Buffer:
        """Whole batches from the one with `offset` on, of one segment, none at or past `end_offset`.

        At most `max_bytes`, unless the first batch alone is larger and `min_one_batch`; empty if there are
        none. Large results are views of the file that stay good. Raises OffsetOutOfRange.
        """
        if self.segments.active.log.pending:
            self.write()
        log_end = self.end_offset
        if offset < self.start_offset or offset > log_end:
            raise OffsetOutOfRange(f"offset {offset} is outside of {self.start_offset} to {log_end}")
        if end_offset > log_end:
            end_offset = log_end
        if offset >= end_offset:
            return b""
        return self.segments.read(offset, max_bytes, end_offset, log_end, min_one_batch)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that have records in the range, for a reader of committed records."""
        return [
            AbortedTransaction(entry.producer_id, entry.first_offset)
            for entry in self.segments.aborted(start_offset, end_offset)
        ]

    def offset_for_timestamp(self, timestamp: int, end_offset: int) -> TimestampOffset | None:
        """The first record below `end_offset` that is not before `timestamp`."""
        self.write()
        found = self.segments.offset_for_timestamp(timestamp, self.start_offset)
        return found if found is not None and found.offset < end_offset else None

    def max_timestamp(self) -> TimestampOffset | None:
        """The first record that has the greatest timestamp of the log."""
        self.write()
        timestamp = self.segments.greatest_timestamp()
        return self.segments.offset_for_timestamp(timestamp, self.start_offset) if timestamp >= 0 else None

    # Flush

    @property
    def needs_flush(self) -> bool:
        """Whether a segment is complete and not synced: it should be soon, even if nobody waits for it."""
        return bool(self.segments.unsynced)

    def flush_begin(self) -> Flush | None:
        """Begin to make durable what was appended so far, None if it is. Then `sync`, then `flush_done`."""
        self.write()
        if self.failed:
            raise KafkaStorageError
        if self.epochs.stale and not self.epochs.durable:
            self._with_room(self.epochs.save)
        unsynced = self.segments.unsynced
        # The indexes of the active segment are not synced: a recovery would rebuild them anyway.
        handles = [*self.segments.take_unsynced(), self.segments.active.log.handle]
        try:
            fds = pin_all(handles)
        except OSError:
            self.segments.unsynced = unsynced  # for another flush
            raise
        epochs = None
        if self.epochs.stale and self.epochs.durable:
            epochs = self.epochs.take_unsaved(self.end_offset)
        paths, self._unsynced_paths = self._unsynced_paths, []
        if self.epochs.unsynced:
            paths.append(self.epochs.path)
            self._unsynced_directories.add(self.directory)
            self.epochs.unsynced = False
        directories, self._unsynced_directories = self._unsynced_directories, set()
        if self.recovery_point == self.end_offset and not (handles[1:] or paths or directories or epochs):
            unpin_all(handles)
            return None
        return Flush(
            self.files,
            end_offset=self.end_offset,
            truncations=self._truncations,
            handles=handles,
            fds=fds,
            paths=paths,
            directories=sorted(directories),
            replaced={} if epochs is None else {self.epochs.path: epochs},
            failed=self._fail,
        )

    def is_covered_by(self, flush: Flush, end_offset: int) -> bool:
        """Whether everything below `end_offset` is safe once the flush is: not if it was written in place of
        something that was truncated after the flush had begun."""
        return end_offset <= flush.end_offset and flush.truncations == self._truncations

    def sync_with_next_flush(self, path: str) -> None:
        """Let the next flush also sync a small file that was written into the directory."""
        self._unsynced_paths.append(path)
        self._unsynced_directories.add(self.directory)

    def _fail(self) -> None:
        self.failed = True

    def flush_done(self, flush: Flush) -> None:
        """Take note of a flush that was synced; also to be called, to free its files, after it failed."""
        flush.release()
        if self.failed:
            return
        if flush.truncations == self._truncations:
            self.recovery_point = max(self.recovery_point, flush.end_offset)
            if self.recovery_point > 0 and not self.epochs.durable:
                # What was assigned while the flush was under way is after its end, and is the next one's.
                self.epochs.durable = True

    def flush(self) -> None:
        """Make everything durable, in this thread."""
        flush = self.flush_begin()
        if flush is not None:
            try:
                self.handles.with_room(flush.sync)
            except OSError:
                self.failed = True  # even for want of files: what was to be synced is not known any more
                raise
            finally:
                self.flush_done(flush)

    # Shorten

    def delete_records(self, before_offset: int) -> None:
        """Raise the start of the log. Segments that are wholly before it go with the next retention."""
        if before_offset > self.high_watermark:
            raise OffsetOutOfRange(f"cannot delete up to {before_offset}, past {self.high_watermark}")
        if before_offset > self.start_offset:
            self.start_offset = before_offset
            self.epochs.start_from(before_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that ends at or after `offset`: a follower's log has to become its leader's.

        The recovery point and the end of what is compacted may move back; their checkpoints should be
        written before the log is appended to.
        """
        if offset >= self.end_offset:
            # Who led and wrote nothing may have an epoch at the end that the leader does not know.
            self.epochs.truncate_to(self.end_offset)
            return
        if offset < self.segments.start_offset:
            self.truncate_fully(offset)
            return
        self.write()
        self._truncations += 1
        self._guarded(lambda: self._truncate_segments(offset))
        self.epochs.truncate_to(self.end_offset)
        self.start_offset = min(self.start_offset, self.end_offset)
        self.high_watermark = min(self.high_watermark, self.end_offset)
        self.producers.replicated(self.high_watermark)
        self.recovery_point = min(self.recovery_point, self.end_offset)
        if self.clean_up_to is not None:
            self.clean_up_to = min(self.clean_up_to, self.end_offset)

    def _truncate_segments(self, offset: int) -> None:
        self.end_offset = self.segments.truncate_to(offset)
        self._reload_producers()

    def _reload_producers(self) -> None:
        """The producers as of the end of the log, which has moved back."""
        delete_snapshots(self.files, self.directory, after=self.end_offset)
        self.producers = producers_at(
            self.files,
            self.directory,
            list(self.segments),
            self.end_offset,
            now_ms=0,
            expiration_ms=1,
            newest=self.high_watermark,
        )
        self._snapshot_offset = max(snapshots(self.directory), default=self.segments.start_offset)

    def truncate_fully(self, start_offset: int) -> None:
        """Drop everything and begin again at `start_offset`."""
        self.write()
        self._truncations += 1
        self._guarded(lambda: self._replace_segments(start_offset))
        self.epochs.clear()
        self.producers = Producers(end_offset=start_offset)
        self.start_offset = self.end_offset = self.high_watermark = start_offset
        self.recovery_point = min(self.recovery_point, start_offset)
        self.clean_up_to = None

    def _replace_segments(self, start_offset: int) -> None:
        delete_snapshots(self.files, self.directory, after=-1)
        self.segments.replace(start_offset)
        self._snapshot_offset = start_offset

    def enforce_retention(self, now_ms: int) -> int:
        """Delete the segments that are too old, too many, or before the start of the log; how many.

        Their files get the suffix `.deleted` and are removed by `reap` when the readers they may have had
        are surely gone.
        """
        if self.failed:
            raise KafkaStorageError
        settings = self._settings
        count = plan_retention(
            self.segments.summaries(self.end_offset),
            Retention("delete" in settings.cleanup_policy, settings.retention_bytes, settings.retention_ms),
            start_offset=self.start_offset,
            high_watermark=self.high_watermark,
            now_ms=now_ms,
        )
        if count:
            if count == len(self.segments):
                self._roll(self.end_offset, now_ms)
            self._guarded(lambda: self._doom(count, now_ms + settings.file_delete_delay_ms))
        return count

    def _doom(self, count: int, due_ms: int) -> None:
        self.segments.doom(count, due_ms)
        self._unsynced_directories.add(self.directory)
        if self.segments.start_offset > self.start_offset:
            self.start_offset = self.segments.start_offset
            self.epochs.start_from(self.start_offset)

    @property
    def doomed(self) -> Sequence[tuple[int, str]]:
        """Files that were renamed for deletion, and when they are due."""
        return self.segments.doomed

    def reap(self, now_ms: int) -> int:
        """Remove the files of deleted segments that are due; how many."""
        try:
            return self.segments.reap(now_ms)
        except OSError:
            self.failed = True
            raise

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that were silent for too long; how many."""
        return self.producers.expire(now_ms, self.producer_id_expiration_ms)

    # Compact

    def cleanable(self, now_ms: int) -> Cleanable | None:
        """What compaction would find; None if there is nothing for it here."""
        settings = self._settings
        if self.failed or len(self.segments) == 1 or "compact" not in settings.cleanup_policy:
            return None
        return plan_compaction(
            self.segments.summaries(self.end_offset),
            Lags(settings.min_compaction_lag_ms, settings.max_compaction_lag_ms),
            clean_up_to=self.clean_up_to,
            start_offset=self.start_offset,
            # A record must not make an older one go and then be taken by a power loss itself.
            end_offset=min(self.last_stable_offset, self.recovery_point),
            first_timestamp=lambda number: self.segments[number].first_timestamp(),
            now_ms=now_ms,
        )

    def cleaning_job(self, cleanable: Cleanable, now_ms: int) -> Job:
        """What a `Cleaner` has to know to compact that part of the log."""
        settings = self._settings
        segments = self.segments.sources(cleanable.end)
        return Job(
            self.directory,
            segments,
            cleanable.first_dirty,
            cleanable.end,
            aborted=list(self.segments.aborted(segments[0].base_offset, cleanable.end)),
            last_records={
                producer.id: LastRecord(producer.last_offset if producer.batches else None, producer.epoch)
                for producer in self.producers
            },
            now_ms=now_ms,
            delete_retention_ms=settings.delete_retention_ms,
            max_segment_bytes=settings.segment_bytes,
            max_index_bytes=settings.segment_index_bytes,
            index_interval_bytes=settings.index_interval_bytes,
            truncations=self._truncations,
        )

    def take_cleaned(self, job: Job, group: Sequence[SourceSegment], now_ms: int) -> bool:
        """Put what a `Cleaner` made of some segments in their place; False if they are no longer there."""
        if self.failed or self._truncations != job.truncations:
            return False
        bases = [segment.base_offset for segment in group]
        taken = False

        def swap() -> None:
            nonlocal taken
            taken = self.segments.swap(bases, now_ms + self._settings.file_delete_delay_ms)

        self._guarded(swap)
        if taken:
            self._unsynced_directories.add(self.directory)
        return taken

    def cleaned(self, job: Job, end_offset: int) -> None:
        """Take note that all of a job's segments were taken over: there is nothing dirty up to here."""
        if self._truncations == job.truncations:
            self.clean_up_to = end_offset

    # End

    def moved(self, directory: str) -> None:
        """The directory has been renamed."""
        self._unsynced_paths = [path.replace(self.directory, directory, 1) for path in self._unsynced_paths]
        self._unsynced_directories.discard(self.directory)
        self.directory = directory
        self.epochs.path = f"{directory}/{Path(self.epochs.path).name}"
        self.segments.moved(directory)

    def close(self, now_ms: int) -> None:
        """Leave what Kafka leaves after a clean stop: whole indexes, a snapshot of the producers, all synced.

        A clean start then reads almost nothing.
        """
        self.close_begin(now_ms)
        self.flush()
        self.close_files()

    def close_begin(self, now_ms: int) -> None:
        """The part of `close` that does not wait for the disk; a flush and `close_files` are the rest."""
        self.write()
        self.expire_producers(now_ms)
        self._with_room(self._finish)

    def _finish(self) -> None:
        self.segments.finish()
        self._take_snapshot(self.end_offset)

    def close_files(self) -> None:
        """Close the files and nothing else: of a log that is deleted, or whose directory has failed."""
        self.failed = True
        self.segments.close_files()
