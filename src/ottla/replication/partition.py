"""A replica of one partition on this broker: its log, its role, its in-sync set, and who waits for it.

Nothing here suspends: a caller that has to wait gets a future. Appends are ordered by call.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import Protocol

from ottla.core.files import Buffer
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.errors import (
    FencedLeaderEpoch,
    KafkaStorageError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from ottla.replication.isr import InSyncReplicas
from ottla.storage.log import Appended, Log, Origin
from ottla.storage.log_directory import LogDirectory

NO_LEADER = -1


class Waiter(Protocol):
    """Somebody who wants to hear that more of a partition can be read."""

    def readable(self, size: int) -> None:
        """About `size` more bytes are below the high watermark; 0 means: look again, something changed."""


class Partition:
    __slots__ = (
        "_committed",
        "_dirty",
        "_dirty_logs",
        "_ticket",
        "_waiters",
        "bytes_in",
        "bytes_out",
        "directory",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "log",
        "node_id",
        "offline",
        "partition",
        "partition_epoch",
        "topic_id",
        "turns",
    )

    def __init__(
        self,
        partition: TopicPartition,
        topic_id: Uuid,
        log: Log,
        directory: LogDirectory,
        node_id: int,
        dirty: list[Partition],
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.log = log
        self.directory = directory
        self.node_id = node_id
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.is_leader = False
        self.offline = False  # its log directory failed; only a restart brings it back
        self.isr = InSyncReplicas(node_id)
        self.bytes_in = self.bytes_out = 0  # of batches appended and read here since the start, for metrics
        # Producer id to the last of its transactional batches that wait to be verified: whatever the producer
        # sends meanwhile has to come after it.
        self.turns: dict[int, asyncio.Future[None]] = {}
        self._waiters: dict[Waiter, None] = {}
        self._committed: list[tuple[int, int, asyncio.Future[None]]] = []
        self._ticket = itertools.count()
        self._dirty = False
        self._dirty_logs = dirty

    # --- role ----------------------------------------------------------------------------

    def become_leader(self, leader_epoch: int, partition_epoch: int) -> None:
        """Lead from here on: whatever is appended now belongs to this epoch."""
        if not self.is_leader or leader_epoch != self.leader_epoch:
            self.log.epochs.assign(leader_epoch, self.log.end_offset)
        self.leader = self.node_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.is_leader = True
        self._advance(0)
        self._wake_all()

    def stop_leading(self, leader: int, leader_epoch: int, partition_epoch: int) -> None:
        """Another broker leads, or none does. Whoever waited for us is told to look elsewhere."""
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.is_leader = False
        self._fail_commits(NotLeaderOrFollower())
        self._wake_all()

    def fail(self) -> None:
        """The log directory went offline."""
        self.offline = True
        self.is_leader = False
        self._fail_commits(KafkaStorageError())
        self._wake_all()

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """Raise what Kafka answers a request that needs the leader; -1 skips the epoch check."""
        if self.offline:
            raise KafkaStorageError
        if current_leader_epoch >= 0:
            if current_leader_epoch < self.leader_epoch:
                raise FencedLeaderEpoch
            if current_leader_epoch > self.leader_epoch:
                raise UnknownLeaderEpoch
        if not self.is_leader:
            raise NotLeaderOrFollower

    # --- writing -------------------------------------------------------------------------

    def append(
        self,
        records: Buffer,
        now_ms: int,
        acks: int = -1,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> Appended:
        """Append as leader. The bytes reach the file when the turn ends (`Replicas.write_pending`)."""
        if not self.is_leader:
            self.check_leader()
        if acks == -1 and not self.isr.is_large_enough:
            raise NotEnoughReplicas(
                f"{self.partition} has {len(self.isr.members)} in-sync replicas, "
                f"min.insync.replicas is {self.isr.min_insync_replicas}"
            )
        log = self.log
        try:
            appended = log.append(
                records, self.leader_epoch, now_ms, origin=origin, transaction_version=transaction_version
            )
        except OSError as error:  # a new segment could not be made
            raise self.directory.fail(error) from error
        if not appended.duplicate:
            if not self._dirty:
                self._dirty = True
                self._dirty_logs.append(self)
            size = len(records)
            self.bytes_in += size
            self._advance(size)
        return appended

    def write(self) -> None:
        """Hand pending batches to the kernel. `OSError` is the caller's: its directory has failed.

        Unless it is not of the disk: then they are still pending, and the partition is still dirty.
        """
        self.log.write()
        self._dirty = False

    def committed(self, offset: int) -> asyncio.Future[None] | None:
        """A future that is done once `offset` is below the high watermark; None when it is already."""
        if offset < self.log.high_watermark:
            return None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._committed, (offset, next(self._ticket), done))
        return done

    def _advance(self, size: int) -> None:
        """The log has grown by `size` bytes, or the in-sync set has changed: readers may have more."""
        log, isr = self.log, self.isr
        isr.advance(self.node_id, log.end_offset)
        watermark = log.end_offset if isr.is_leader_alone else isr.high_watermark(log.high_watermark)
        if self._waiters and log.producers.has_unreplicated:
            size = 0  # the end of a transaction lets readers have all of it, and not just this much
        if not log.advance_high_watermark(watermark):
            return
        while self._committed and self._committed[0][0] < watermark:
            done = heapq.heappop(self._committed)[2]
            if not done.done():
                done.set_result(None)
        if self._waiters:
            for waiter in list(self._waiters):
                waiter.readable(size)

    def _fail_commits(self, error: Exception) -> None:
        waiting, self._committed = self._committed, []
        for _, _, done in waiting:
            if not done.done():
                done.set_exception(error)

    # --- waiting to read -----------------------------------------------------------------

    def add_waiter(self, waiter: Waiter) -> None:
        self._waiters[waiter] = None

    def remove_waiter(self, waiter: Waiter) -> None:
        self._waiters.pop(waiter, None)

    def _wake_all(self) -> None:
        for waiter in list(self._waiters):
            waiter.readable(0)
