"""The log as the quorum sees it: batches by offset and epoch, and the snapshots that stand for its past.

Raft decides what is appended, cut off and sent; whoever implements this keeps the bytes. `runtime` does it
with the files of `__cluster_metadata-0`, the simulation with lists that lose their unsynced end in a crash.

Nothing here waits for the disk, with two rare exceptions: `truncate_fully` and `finish_snapshot` return when
what they did is durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ottla.core.files import Buffer
from ottla.protocol.control import ControlRecord
from ottla.raft.membership import ControlValue


class SnapshotId(NamedTuple):
    """Where a snapshot ends in the log, and the epoch of the last record in it."""

    end_offset: int
    epoch: int


class EpochEnd(NamedTuple):
    """An epoch, and the offset behind its last record."""

    epoch: int
    end_offset: int


# The snapshot that formatting makes. It holds the first voters and no records, so it is sent to nobody.
BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)


class RaftLog(Protocol):
    """What Raft needs of a log. Offsets called end are exclusive."""

    @property
    def start_offset(self) -> int:
        """The first offset that can be read; a snapshot holds everything before it unless it is 0."""

    @property
    def end_offset(self) -> int:
        """Where the next record goes, whether or not what is before it has been synced."""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; without records, of the snapshot that the log starts with; or 0.

        A snapshot that is ahead of the records says nothing here: the machine sees to it when it starts.
        """

    def end_offset_for(self, epoch: int) -> EpochEnd:
        """The greatest epoch in the log that is not above `epoch`, and where it ends.

        If the log has none that old: the epoch of the snapshot it starts with (or 0), and its start offset.
        """

    # --- writing -------------------------------------------------------------------------------

    def append(self, batches: bytearray, epoch: int) -> int:
        """Append as leader of `epoch`: gives whole batches their offsets, and answers the first of them."""

    def append_control(self, records: Sequence[ControlValue], epoch: int) -> list[ControlRecord]:
        """Append one control batch as leader of `epoch`, stamped with the time; answers it with offsets."""

    def append_as_follower(self, records: Buffer) -> list[ControlRecord]:
        """Append what a leader sent, with its offsets and epochs; a batch cut off at the end is left out.

        Answers the control records among it. Raises a `KafkaError` and has then changed nothing if the bytes
        are damaged or do not continue the log.
        """

    def truncate_to(self, offset: int) -> None:
        """Cut off everything from `offset` on. Never called while a sync is under way."""

    def truncate_fully(self, snapshot: SnapshotId) -> None:
        """Remove every record: the log now starts, and ends, where this snapshot ends."""

    def advance_high_watermark(self, offset: int) -> None:
        """Everything below is committed. Never goes back, never beyond the end."""

    # --- reading -------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, end: int) -> Buffer:
        """Whole batches from the one that holds `offset` up to `end`: one, or more up to `max_bytes`."""

    # --- snapshots -----------------------------------------------------------------------------

    @property
    def earliest_snapshot(self) -> SnapshotId | None: ...

    @property
    def latest_snapshot(self) -> SnapshotId | None: ...

    def snapshot_size(self, snapshot: SnapshotId) -> int | None:
        """Bytes of a snapshot; None if there is no such snapshot."""

    def read_snapshot(self, snapshot: SnapshotId, position: int, max_bytes: int) -> Buffer: ...

    def snapshot_control(self, snapshot: SnapshotId) -> list[ControlRecord]:
        """The control records in a snapshot: kraft.version and the voters as they were at its end."""

    def start_snapshot(self, snapshot: SnapshotId) -> None:
        """Begin to receive a snapshot from the leader; one that was begun and not finished is thrown away."""

    def write_snapshot(self, snapshot: SnapshotId, data: Buffer) -> None:
        """Add to the snapshot that is being received."""

    def finish_snapshot(self, snapshot: SnapshotId) -> None:
        """The snapshot was received whole: from now on it is one of ours, on disk.

        Raises a `KafkaError` and forgets what was received if the content is damaged.
        """
