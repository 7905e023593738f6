"""The metadata log as the quorum's machine sees it: `raft.log.RaftLog` over the files of a `MetadataLog`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ottla.core.clock import Clock
from ottla.core.files import Buffer
from ottla.protocol.batch import iter_batches
from ottla.protocol.control import ControlRecord, control_batch, read_control_records
from ottla.protocol.errors import CorruptMessage, KafkaStorageError, OffsetOutOfRange
from ottla.raft.log import EpochEnd
from ottla.raft.log import SnapshotId as RaftSnapshotId
from ottla.raft.membership import ControlValue
from ottla.runtime.metadata_log import MetadataLog
from ottla.runtime.snapshots import (
    MODE,
    UNFINISHED,
    DamagedSnapshot,
    Snapshot,
    SnapshotId,
    read_control,
    read_snapshot,
    snapshot_path,
)
from ottla.storage.files import is_of_the_disk, write_whole
from ottla.storage.log import Origin


class DiskLog:
    """Raises `OSError` and `KafkaStorageError` where the disk fails."""

    def __init__(self, store: MetadataLog, clock: Clock) -> None:
        self._store = store
        self._log = store.log
        self._clock = clock
        # The snapshot that is being received.
        self._part: int | None = None
        self._part_path = ""
        # The one that was received last, so that it need not be read again right away.
        self._received: tuple[RaftSnapshotId, Snapshot] | None = None

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def last_epoch(self) -> int:
        latest = self._log.epochs.latest
        return latest if latest >= 0 else self._start_epoch

    @property
    def _start_epoch(self) -> int:
        """The epoch of the snapshot that the log starts with."""
        start = self._log.start_offset
        return max((each.epoch for each in self._store.snapshots if each.end_offset == start), default=0)

    def end_offset_for(self, epoch: int) -> EpochEnd:
        epochs = self._log.epochs
        if epochs.latest < 0 or epoch < epochs.entries[0][0]:
            return EpochEnd(self._start_epoch, self._log.start_offset)
        return EpochEnd(*epochs.end_offset_for(min(epoch, epochs.latest), self._log.end_offset))

    # --- writing ---------------------------------------------------------------------------

    def append(self, batches: bytearray, epoch: int) -> int:
        """What cannot be taken for want of open files is refused; what was taken is written with its sync."""
        appended = self._log.append(batches, epoch, self._clock.wall_ms(), origin=Origin.RAFT)
        self._write()
        return appended.base_offset

    def append_control(self, records: Sequence[ControlValue], epoch: int) -> list[ControlRecord]:
        now_ms = self._clock.wall_ms()
        base_offset = self.append(control_batch(records, timestamp=now_ms), epoch)
        return [
            ControlRecord(base_offset + number, now_ms, kind, value)
            for number, (kind, value) in enumerate(records)
        ]

    def append_as_follower(self, records: Buffer) -> list[ControlRecord]:
        control: list[ControlRecord] = []
        next_offset, epoch = self._log.end_offset, self.last_epoch
        for header, batch in iter_batches(records):
            if header.base_offset != next_offset or header.partition_leader_epoch < epoch:
                raise OffsetOutOfRange(
                    f"the leader's batch at {header.base_offset} of epoch {header.partition_leader_epoch} "
                    f"does not continue the log, which is at {next_offset} in epoch {epoch}"
                )
            next_offset, epoch = header.last_offset + 1, header.partition_leader_epoch
            if header.is_control:
                control += read_control_records(batch)
        self._log.append_as_follower(records, self._clock.wall_ms())
        self._write()
        return control

    def _write(self) -> None:
        try:
            self._log.write()
        except OSError as error:
            if is_of_the_disk(error):
                raise

    def truncate_to(self, offset: int) -> None:
        self._log.truncate_to(offset)

    def truncate_fully(self, snapshot: RaftSnapshotId) -> None:
        self._log.truncate_fully(snapshot.end_offset)
        self._log.flush()
        # Nothing leads from an older one to where the log begins now.
        store = self._store
        gone = [each for each in store.snapshots if each < snapshot]
        store.snapshots = [each for each in store.snapshots if each >= snapshot]
        for each in gone:
            with suppress(FileNotFoundError):
                store.files.unlink(snapshot_path(store.directory, each))

    def advance_high_watermark(self, offset: int) -> None:
        self._log.advance_high_watermark(offset)

    # --- reading ---------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, end: int) -> Buffer:
        with _refusing():
            return self._log.read(offset, max_bytes, end)

    # --- snapshots -------------------------------------------------------------------------

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        return self._store.snapshots[0] if self._store.snapshots else None

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self._store.snapshots[-1] if self._store.snapshots else None

    def snapshot_size(self, snapshot: RaftSnapshotId) -> int | None:
        if snapshot not in self._store.snapshots:
            return None
        try:
            return Path(self._path(snapshot)).stat().st_size
        except FileNotFoundError:
            return None

    def read_snapshot(self, snapshot: RaftSnapshotId, position: int, max_bytes: int) -> Buffer:
        with _refusing(), Path(self._path(snapshot)).open("rb") as file:
            return os.pread(file.fileno(), max_bytes, position)

    def snapshot_control(self, snapshot: RaftSnapshotId) -> list[ControlRecord]:
        return read_control(self._path(snapshot))

    def start_snapshot(self, snapshot: RaftSnapshotId) -> None:
        self._drop_part()
        self._part_path = self._path(snapshot) + UNFINISHED
        with suppress(FileNotFoundError):
            self._store.files.unlink(self._part_path)
        self._part = self._store.files.open(self._part_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)

    def write_snapshot(self, snapshot: RaftSnapshotId, data: Buffer) -> None:
        assert self._part is not None, "a snapshot is written to that was not begun"
        write_whole(self._store.files, self._part, data)

    def finish_snapshot(self, snapshot: RaftSnapshotId) -> None:
        assert self._part is not None, "a snapshot is finished that was not begun"
        store = self._store
        store.files.fsync(self._part)
        try:
            content = read_snapshot(self._part_path)
        except DamagedSnapshot as error:
            self._drop_part()
            raise CorruptMessage(f"the leader's snapshot is damaged: {error}") from error
        store.files.close(self._part)
        self._part = None
        store.files.rename(self._part_path, self._path(snapshot))
        store.files.sync_directory(store.directory)
        store.snapshots = sorted({*store.snapshots, SnapshotId(*snapshot)})
        self._received = (snapshot, content)

    def take_received(self, snapshot: RaftSnapshotId) -> Snapshot:
        """The content of a snapshot that was just received."""
        received, self._received = self._received, None
        if received is not None and received[0] == snapshot:
            return received[1]
        return read_snapshot(self._path(snapshot))

    def close(self) -> None:
        self._drop_part()

    def _drop_part(self) -> None:
        if self._part is not None:
            self._store.files.close(self._part)
            self._part = None
            with suppress(FileNotFoundError):
                self._store.files.unlink(self._part_path)

    def _path(self, snapshot: RaftSnapshotId) -> str:
        return snapshot_path(self._store.directory, snapshot)


@contextmanager
def _refusing() -> Iterator[None]:
    """Who cannot be answered for want of open files is told so: nothing has happened to the disk."""
    try:
        yield
    except OSError as error:
        if is_of_the_disk(error):
            raise
        raise KafkaStorageError(str(error)) from error
