"""When to write a snapshot of the metadata, and which old ones may go."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import Final

from ottla.config.broker import BrokerSettings
from ottla.core.clock import Clock
from ottla.metadata.image import Image
from ottla.metadata.snapshot import records
from ottla.protocol.errors import KafkaStorageError
from ottla.raft.membership import Membership
from ottla.runtime.metadata_log import MetadataLog
from ottla.runtime.snapshots import SnapshotId, snapshot_bytes, write_snapshot

# A start that had to read this much of the log is followed by a snapshot, so that the next one need not.
LONG_REPLAY_BYTES: Final = 1 << 20

logger = logging.getLogger("ottla.snapshots")


class Snapshotter:
    """Writes a snapshot after so many bytes of records, or after so long if there were any."""

    def __init__(self, store: MetadataLog, settings: BrokerSettings, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._since_ms = clock.monotonic_ms()
        self._was_replay_long = store.bytes_since_snapshot >= LONG_REPLAY_BYTES
        self._writing: asyncio.Task[None] | None = None

    def tick(self, image: Image, membership: Membership) -> None:
        """Begin to write a snapshot if one is due. The image is committed."""
        self._store.log.reap(self._clock.wall_ms())
        if self.is_due(image) and (self._writing is None or self._writing.done()):
            self._writing = asyncio.get_running_loop().create_task(self.write(image, membership))

    def is_due(self, image: Image) -> bool:
        snapshots = self._store.snapshots
        if image.in_transaction or (snapshots and image.offset < snapshots[-1].end_offset):
            return False  # there is nothing new, or it is half done
        settings = self._settings
        interval_ms = settings.metadata_log_max_snapshot_interval_ms
        waited_ms = self._clock.monotonic_ms() - self._since_ms
        largest = settings.metadata_log_max_record_bytes_between_snapshots
        return (
            self._was_replay_long
            or self._store.bytes_since_snapshot >= largest
            or 0 < interval_ms <= waited_ms
        )

    async def write(self, image: Image, membership: Membership) -> None:
        """Write a snapshot of the image as it is now, then forget what it makes superfluous."""
        store, now_ms = self._store, self._clock.wall_ms()
        snapshot = SnapshotId(image.offset + 1, image.epoch)
        control = membership.at(snapshot.end_offset).records()
        twin, last_timestamp = image.copy(), store.last_timestamp
        store.bytes_since_snapshot, self._since_ms = 0, self._clock.monotonic_ms()
        self._was_replay_long = False
        if snapshot in store.snapshots:
            return

        def write() -> int:
            batches = snapshot_bytes(
                records(twin),
                twin.metadata_version,
                control=control,
                epoch=snapshot.epoch,
                last_timestamp=last_timestamp,
                now_ms=now_ms,
            )
            return write_snapshot(store.files, f"{store.directory}/{snapshot.file_name}", batches)

        try:
            size = await asyncio.to_thread(write)
            if snapshot.end_offset < store.log.start_offset:
                # Meanwhile the log was replaced by a later one of the leader's.
                await asyncio.to_thread(self._delete, [snapshot])
                return
            store.snapshots = sorted({*store.snapshots, snapshot})
            await asyncio.to_thread(self._delete, self._superfluous(now_ms))
            oldest = store.snapshots[0].end_offset
            if oldest > store.log.start_offset:
                store.log.delete_records(oldest)
                store.log.enforce_retention(now_ms)
        except (OSError, KafkaStorageError) as error:
            # The log still has everything; the next attempt comes with the next snapshot.
            logger.error("could not write a snapshot of the metadata error=%s", error)
            return
        logger.info("wrote a snapshot of the metadata offset=%d bytes=%d", snapshot.end_offset, size)

    async def close(self) -> None:
        """Wait for a snapshot that is being written."""
        if self._writing is not None:
            await self._writing

    def _superfluous(self, now_ms: int) -> list[SnapshotId]:
        """The oldest snapshots, while log and snapshots are too large or too old. The last one stays."""
        settings, store = self._settings, self._store
        sizes = {snapshot: self._path(snapshot).stat().st_size for snapshot in store.snapshots}
        total = sum(sizes.values()) + store.log.size
        gone = []
        for snapshot in store.snapshots[:-1]:
            age_ms = now_ms - self._path(snapshot).stat().st_mtime_ns // 1_000_000
            if (
                total <= settings.metadata_max_retention_bytes
                and age_ms <= settings.metadata_max_retention_ms
            ):
                break
            total -= sizes[snapshot]
            gone.append(snapshot)
        store.snapshots = store.snapshots[len(gone) :]
        return gone

    def _delete(self, snapshots: list[SnapshotId]) -> None:
        for snapshot in snapshots:
            with suppress(FileNotFoundError):  # it went when the log was replaced
                self._store.files.unlink(str(self._path(snapshot)))

    def _path(self, snapshot: SnapshotId) -> Path:
        return Path(self._store.directory, snapshot.file_name)
