"""A log in memory that forgets like a disk: of what was not synced, any part may be gone after a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

from ottla.protocol.control import ControlRecord
from ottla.protocol.errors import OffsetOutOfRange, SnapshotNotFound
from ottla.raft.log import EpochEnd, SnapshotId
from ottla.raft.membership import ControlValue


class Batch(NamedTuple):
    """Some records in a row. `chain` stands for the batch and for all that is before it in the log."""

    base_offset: int
    end_offset: int
    epoch: int
    value: int
    control: tuple[ControlValue, ...]
    chain: int

    @property
    def records(self) -> int:
        return self.end_offset - self.base_offset


class Snapshot(NamedTuple):
    chain: int  # of the last batch before its end
    control: tuple[ControlValue, ...]
    size: int


def chained(chain: int, epoch: int, value: int) -> int:
    return hash((chain, epoch, value))


class SimulatedLog:
    """A `RaftLog`. Records travel as lists of batches, and so do snapshots: nobody in between looks inside.

    `fuse` is called before and after everything that changes the disk, and may end it all there.
    """

    def __init__(self, fuse: Callable[[], None]) -> None:
        self._fuse = fuse
        self.start_offset = 0
        self.end_offset = 0
        self.high_watermark = 0
        self.batches: list[Batch] = []
        self.snapshots: dict[SnapshotId, Snapshot] = {}
        # What is on disk for certain, and what has happened since: a batch appended, or an offset cut to.
        self._durable: list[Batch] = []
        self._since: list[Batch | int] = []
        self._receiving: tuple[SnapshotId, list[Any]] | None = None

    # --- the disk ------------------------------------------------------------------------------

    def sync_begun(self) -> tuple[int, int]:
        """What a sync that starts now will have made durable: so many changes, up to this offset."""
        return len(self._since), self.end_offset

    def sync_done(self, changes: int) -> None:
        for change in self._since[:changes]:
            _replay(self._durable, change)
        del self._since[:changes]

    def crash(self, random: Random) -> None:
        """Lose some, none or all of what was not synced: the disk has done its work up to some point."""
        survived = random.randint(0, len(self._since))
        for change in self._since[:survived]:
            _replay(self._durable, change)
        self._since.clear()
        self._receiving = None
        self._durable = [batch for batch in self._durable if batch.base_offset >= self.start_offset]
        self.batches = list(self._durable)
        self.end_offset = self.batches[-1].end_offset if self.batches else self.start_offset
        self.high_watermark = self.start_offset

    def has_durable(self, batch: Batch) -> bool:
        """Whether the disk holds this batch and all before it, in the log or in a snapshot."""
        return self._has(batch, self._durable)

    def has(self, batch: Batch) -> bool:
        return self._has(batch, self.batches)

    def _has(self, batch: Batch, batches: list[Batch]) -> bool:
        for id, snapshot in self.snapshots.items():
            if id.end_offset == batch.end_offset:
                return snapshot.chain == batch.chain
            if id.end_offset > batch.end_offset:
                return True  # what it stands for was compared when it was taken
        for mine in reversed(batches):
            if mine.base_offset <= batch.base_offset:
                return mine.chain == batch.chain
        return False

    # --- RaftLog -------------------------------------------------------------------------------

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else self._start.epoch

    @property
    def _start(self) -> SnapshotId:
        for snapshot in self.snapshots:
            if snapshot.end_offset == self.start_offset:
                return snapshot
        return SnapshotId(0, 0)

    @property
    def last_chain(self) -> int:
        if self.batches:
            return self.batches[-1].chain
        return self.snapshots[self._start].chain if self.start_offset else 0

    def end_offset_for(self, epoch: int) -> EpochEnd:
        end = self.end_offset
        for batch in reversed(self.batches):
            if batch.epoch <= epoch:
                return EpochEnd(batch.epoch, end)
            end = batch.base_offset
        return EpochEnd(self._start.epoch, self.start_offset)

    def append(self, batches: bytearray, epoch: int) -> int:
        """The simulation's own batches: the count of records, then a number."""
        count, value = batches[0], int.from_bytes(batches[1:], "big")
        return self._append(count, epoch, value, ()).base_offset

    def append_control(self, records: Sequence[ControlValue], epoch: int) -> list[ControlRecord]:
        value = crc32(b"".join(value for _, value in records))
        batch = self._append(len(records), epoch, value, tuple(records))
        return _control(batch)

    def _append(self, count: int, epoch: int, value: int, control: tuple[ControlValue, ...]) -> Batch:
        base, chain = self.end_offset, chained(self.last_chain, epoch, value)
        self._add(Batch(base, base + count, epoch, value, control, chain))
        return self.batches[-1]

    def append_as_follower(self, records: Any) -> list[ControlRecord]:
        control: list[ControlRecord] = []
        if records[0].base_offset != self.end_offset:
            raise OffsetOutOfRange
        for batch in records:
            self._add(batch._replace(chain=chained(self.last_chain, batch.epoch, batch.value)))
            control += _control(batch)
        return control

    def _add(self, batch: Batch) -> None:
        self._fuse()
        self.batches.append(batch)
        self._since.append(batch)
        self.end_offset = batch.end_offset

    def truncate_to(self, offset: int) -> None:
        self._fuse()
        _replay(self.batches, offset)
        self._since.append(offset)
        self.end_offset = self.batches[-1].end_offset if self.batches else self.start_offset

    def truncate_fully(self, snapshot: SnapshotId) -> None:
        self._fuse()
        self.batches.clear()
        self._durable.clear()
        self._since.clear()
        self.start_offset = self.end_offset = snapshot.end_offset
        for older in [id for id in self.snapshots if id < snapshot]:
            del self.snapshots[older]

    def advance_high_watermark(self, offset: int) -> None:
        assert self.high_watermark <= offset <= self.end_offset
        self.high_watermark = offset

    def read(self, offset: int, max_bytes: int, end: int) -> Any:
        found: list[Batch] = []
        for batch in reversed(self.batches):
            if batch.end_offset <= offset:
                break
            found.append(batch)
        found.reverse()
        taken = 1
        size = found[0].records
        while taken < len(found) and size + found[taken].records <= max_bytes:
            size += found[taken].records
            taken += 1
        return found[:taken]

    # --- snapshots -----------------------------------------------------------------------------

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        return min(self.snapshots, default=None)

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return max(self.snapshots, default=None)

    def take_snapshot(self, end_offset: int, control: tuple[ControlValue, ...], size: int) -> None:
        """Our own, of what is committed. It is durable, and the log before it may go."""
        last = next(batch for batch in reversed(self.batches) if batch.end_offset <= end_offset)
        id = SnapshotId(last.end_offset, last.epoch)
        self.snapshots[id] = Snapshot(last.chain, control, size)

    def clean(self) -> None:
        """Forget all snapshots but the latest, and the records before it."""
        latest = max(self.snapshots)
        self.start_offset = max(self.start_offset, latest.end_offset)
        self.snapshots = {id: snapshot for id, snapshot in self.snapshots.items() if id >= latest}
        self.batches = [batch for batch in self.batches if batch.base_offset >= self.start_offset]

    def snapshot_size(self, snapshot: SnapshotId) -> int | None:
        found = self.snapshots.get(snapshot)
        return found and found.size

    def read_snapshot(self, snapshot: SnapshotId, position: int, max_bytes: int) -> Any:
        found = self.snapshots[snapshot]
        return [found] * min(max_bytes, found.size - position)

    def snapshot_control(self, snapshot: SnapshotId) -> list[ControlRecord]:
        return [ControlRecord(0, 0, type, value) for type, value in self.snapshots[snapshot].control]

    def start_snapshot(self, snapshot: SnapshotId) -> None:
        self._receiving = (snapshot, [])

    def write_snapshot(self, snapshot: SnapshotId, data: Any) -> None:
        assert self._receiving is not None
        assert self._receiving[0] == snapshot
        self._receiving[1].extend(data)

    def finish_snapshot(self, snapshot: SnapshotId) -> None:
        assert self._receiving is not None
        id, pieces = self._receiving
        if id != snapshot or len(pieces) != pieces[0].size:
            raise SnapshotNotFound
        self.snapshots[snapshot] = pieces[0]
        self._receiving = None
        self._fuse()


def _replay(batches: list[Batch], change: Batch | int) -> None:
    if isinstance(change, Batch):
        batches.append(change)
    else:
        while batches and batches[-1].end_offset > change:
            batches.pop()


def _control(batch: Batch) -> list[ControlRecord]:
    return [
        ControlRecord(batch.base_offset + place, 0, type, value)
        for place, (type, value) in enumerate(batch.control)
    ]
