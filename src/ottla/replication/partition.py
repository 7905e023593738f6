"""A replica of one partition on this broker: its log, its role, its in-sync set, and who waits for it.

Nothing here suspends: a caller that has to wait gets a future. Appends are ordered by call.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import Protocol

from ottla.core.files import Buffer
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.batch import read_header
from ottla.protocol.errors import (
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from ottla.replication.following import Answered, Asked, of_epoch, truncation_offset
from ottla.replication.isr import InSyncReplicas, Outcome, Proposal, StandingOf
from ottla.storage.log import Appended, Log, Origin
from ottla.storage.log_directory import LogDirectory

NO_LEADER = -1
# So many may wait to be committed before those who gave up are looked for.
MANY_WAITING = 1024


class Waiter(Protocol):
    """Somebody who wants to hear that more of a partition can be read."""

    def readable(self, size: int) -> None:
        """About `size` more bytes are below the high watermark; 0 means: look again, something changed."""


class Partition:
    __slots__ = (
        "_committed",
        "_dirty",
        "_dirty_logs",
        "_follower_waiters",
        "_many_waiting",
        "_ticket",
        "_unseen",
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
        self._follower_waiters: dict[Waiter, None] = {}
        self._unseen = 0  # bytes appended that were above the high watermark when it last moved
        self._committed: list[tuple[int, int, asyncio.Future[None]]] = []
        self._many_waiting = MANY_WAITING
        self._ticket = itertools.count()
        self._dirty = False
        self._dirty_logs = dirty

    # --- role ----------------------------------------------------------------------------

    def take_state(
        self,
        leader: int,
        leader_epoch: int,
        partition_epoch: int,
        replicas: Iterable[int],
        members: Iterable[int],
        min_insync_replicas: int,
        now_ms: int,
    ) -> None:
        """Become what the metadata log says. We may know more already, from the controller's own answer."""
        if partition_epoch < self.partition_epoch or self.offline:
            return
        self.isr.reset(replicas, members, min_insync_replicas, partition_epoch)
        if leader == self.node_id:
            self.become_leader(leader_epoch, partition_epoch, now_ms)
        else:
            self.become_follower(leader, leader_epoch, partition_epoch)

    def become_leader(self, leader_epoch: int, partition_epoch: int, now_ms: int = 0) -> None:
        """Lead from here on: whatever is appended now belongs to this epoch.

        Also called while leading, when the in-sync set has changed. `now_ms` is of the monotonic clock.
        """
        if not self.is_leader or leader_epoch != self.leader_epoch:
            self.log.epochs.assign(leader_epoch, self.log.end_offset)
            self.isr.lead(self.log.end_offset, now_ms)
        self.leader = self.node_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.is_leader = True
        self._in_sync_set_changed()
        self._wake_all()

    def become_follower(self, leader: int, leader_epoch: int, partition_epoch: int) -> None:
        """Another broker leads, or none does; that may be no news."""
        if leader != self.leader or leader_epoch != self.leader_epoch:
            self.stop_leading(leader, leader_epoch, partition_epoch)
        else:
            self.partition_epoch = partition_epoch

    def stop_leading(self, leader: int, leader_epoch: int, partition_epoch: int) -> None:
        """Another broker leads, or none does. Whoever waited for us is told to look elsewhere."""
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.is_leader = False
        self._unseen = 0
        self._fail_commits(NotLeaderOrFollower())
        self._wake_all()

    def fail(self) -> None:
        """The log directory went offline."""
        self.offline = True
        self.is_leader = False
        self._fail_commits(KafkaStorageError())
        self._wake_all()

    def configure(self, min_insync_replicas: int) -> None:
        """The topic asks for another number of replicas in sync."""
        self.isr.configure(min_insync_replicas)
        if self.is_leader:
            self._in_sync_set_changed()

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """Raise what Kafka answers a request that needs the leader; -1 skips the epoch check."""
        self.check_epoch(current_leader_epoch)
        if not self.is_leader:
            raise NotLeaderOrFollower

    def check_epoch(self, current_leader_epoch: int = -1) -> None:
        """As `check_leader`, for a request that a follower may answer."""
        if self.offline:
            raise KafkaStorageError
        if current_leader_epoch >= 0:
            if current_leader_epoch < self.leader_epoch:
                raise FencedLeaderEpoch
            if current_leader_epoch > self.leader_epoch:
                raise UnknownLeaderEpoch

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
            if self._follower_waiters:
                for waiter in list(self._follower_waiters):
                    waiter.readable(size)
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
        if len(self._committed) >= self._many_waiting:
            self._forget_who_gave_up()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._committed, (offset, next(self._ticket), done))
        return done

    def _forget_who_gave_up(self) -> None:
        """While the high watermark stands still, those whose time is up would gather."""
        self._committed = [waiting for waiting in self._committed if not waiting[2].done()]
        heapq.heapify(self._committed)
        self._many_waiting = max(MANY_WAITING, 2 * len(self._committed))

    def _advance(self, size: int) -> None:
        """The log has grown by `size` bytes, or a follower has, or the in-sync set has changed."""
        log, isr = self.log, self.isr
        if isr.is_leader_alone:
            watermark = log.end_offset
        else:
            watermark = isr.high_watermark(log.high_watermark, log.end_offset)
            self._unseen += size
            size = 0
            if watermark == log.end_offset:
                size, self._unseen = self._unseen, 0
        self._move_watermark(watermark, size)

    def _move_watermark(self, watermark: int, size: int) -> None:
        log = self.log
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
        if self._follower_waiters:
            for waiter in list(self._follower_waiters):
                waiter.readable(0)

    def _fail_commits(self, error: KafkaError) -> None:
        waiting, self._committed = self._committed, []
        for _, _, done in waiting:
            if not done.done():
                done.set_exception(error)

    # --- leading followers ---------------------------------------------------------------

    def diverges(self, last_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """Where the log of a reader parts from ours: the epoch, and the end of it here (KIP-595).

        `last_epoch` is in which the record before `fetch_offset` was written, as far as the reader knows.
        """
        log = self.log
        if last_epoch < 0:
            return None
        epoch, end_offset = log.epochs.end_offset_for(last_epoch, log.end_offset)
        if end_offset < 0:
            raise OffsetOutOfRange(f"epoch {last_epoch} is not known here")
        if fetch_offset < log.start_offset:
            raise OffsetOutOfRange(f"offset {fetch_offset} is before the start, {log.start_offset}")
        if epoch == last_epoch and end_offset >= fetch_offset:
            return None
        return epoch, end_offset

    def follower_fetched(
        self,
        replica: int,
        broker_epoch: int,
        asked: Asked,
        now_ms: int,
        max_lag_ms: int,
        standing_of: StandingOf,
    ) -> Proposal | None:
        """A follower whose log is like ours asks for more, so it has what comes before.

        Answers the in-sync set that is now to be proposed to the controller, if it should be another one.
        """
        log, isr = self.log, self.isr
        follower = isr.followers.get(replica)
        if follower is None:
            # Which of us is behind the metadata log is not known. It will ask again.
            raise UnknownLeaderEpoch if asked.leader_epoch >= 0 else NotLeaderOrFollower
        if isr.is_stale(replica, broker_epoch, standing_of):
            raise NotLeaderOrFollower(f"broker {replica} has been registered anew")
        if not log.start_offset <= asked.fetch_offset <= log.end_offset:
            raise OffsetOutOfRange(
                f"offset {asked.fetch_offset} is outside of {log.start_offset} to {log.end_offset}"
            )
        before = follower.end_offset
        isr.fetched(replica, asked.fetch_offset, asked.start_offset, broker_epoch, log.end_offset, now_ms)
        proposal = None
        if replica not in isr.members:
            proposal = self.look_for_changes(now_ms, max_lag_ms, standing_of, fetching=replica)
        if asked.fetch_offset != before:
            self._advance(0)
        return proposal

    def follower_idles(self, replica: int, broker_epoch: int, now_ms: int) -> bool:
        """As `follower_fetched`, for a follower in sync that asks what it asked before; False if it is not.

        Its broker has not been registered anew since that epoch.
        """
        log = self.log
        follower = self.isr.followers.get(replica)
        if (
            follower is None
            or follower.end_offset != log.end_offset
            or follower.broker_epoch != broker_epoch
            or replica not in self.isr.members
        ):
            return False
        follower.fetched(log.end_offset, log.end_offset, now_ms)
        return True

    def look_for_changes(
        self, now_ms: int, max_lag_ms: int, standing_of: StandingOf, fetching: int | None = None
    ) -> Proposal | None:
        """Who has fallen behind, and whether who is fetching has caught up: the in-sync set to propose."""
        if not self.is_leader:
            return None
        log, isr = self.log, self.isr
        epochs = (self.leader_epoch, self.partition_epoch)
        proposal = isr.look(
            log.high_watermark, log.end_offset, epochs, now_ms, max_lag_ms, standing_of, fetching
        )
        self._advance(0)  # nobody may be awaited any more
        return proposal

    def proposal_accepted(
        self, proposal: Proposal, members: list[int], leader_epoch: int, partition_epoch: int
    ) -> None:
        """The controller has answered; unless the metadata log was faster, this is the set from now on."""
        if not self.is_leader or leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return
        if self.isr.accepted(proposal, members):
            self.partition_epoch = partition_epoch
            self._in_sync_set_changed()

    def proposal_refused(self, proposal: Proposal, error_code: int, now_ms: int) -> Outcome:
        outcome = self.isr.refused(proposal, error_code, now_ms)
        if self.is_leader:
            self._advance(0)
        return outcome

    def _in_sync_set_changed(self) -> None:
        self._advance(0)
        if not self.isr.is_large_enough and self._committed:
            # What they wait for stands still. It stays in the log, and may be committed yet.
            self._fail_commits(NotEnoughReplicasAfterAppend())

    # --- following -----------------------------------------------------------------------

    def ask(self) -> Asked:
        """What to say to the leader."""
        log = self.log
        return Asked(
            self.leader_epoch, log.end_offset, log.epochs.latest, log.start_offset, log.high_watermark
        )

    def take_answer(self, asked: Asked, answer: Answered, now_ms: int) -> bool:
        """Make our log more like the leader's; whether it was cut for that.

        Nothing happens if the world has moved on since we asked. Raises what the log refuses.
        """
        log = self.log
        if not self.is_still(asked):
            return False
        if answer.diverging_end >= 0:
            keep = truncation_offset(log.epochs, log.end_offset, answer.diverging_epoch, answer.diverging_end)
            self._changing(lambda: log.truncate_to(keep))
            return True
        if len(answer.records):
            self._append_as_follower(of_epoch(answer.records, asked.leader_epoch), now_ms)
        self._move_watermark(min(answer.high_watermark, log.end_offset), 0)
        start_offset = min(answer.start_offset, log.high_watermark)
        if start_offset > log.start_offset:
            log.delete_records(start_offset)
        return False

    def is_still(self, asked: Asked) -> bool:
        """Whether we would ask the same now. A replica that was removed has no leader to ask."""
        return (
            not self.is_leader
            and not self.offline
            and self.leader != NO_LEADER
            and self.leader_epoch == asked.leader_epoch
            and self.log.end_offset == asked.fetch_offset
        )

    def start_anew(self, offset: int) -> None:
        """The leader has nothing before `offset`, and we have nothing after it."""
        self._changing(lambda: self.log.truncate_fully(offset))

    def cut(self, offset: int) -> None:
        """The leader has nothing from `offset` on."""
        self._changing(lambda: self.log.truncate_to(offset))

    def _append_as_follower(self, records: Buffer, now_ms: int) -> None:
        log = self.log
        if not len(records):
            return
        first = read_header(records)
        start_offset = log.start_offset
        if first.base_offset < start_offset == log.end_offset <= first.last_offset:
            # The leader's log begins in the middle of this batch, and ours with it.
            self._changing(lambda: log.truncate_fully(first.base_offset))
        self._changing(lambda: log.append_as_follower(records, now_ms))
        log.start_offset = max(log.start_offset, start_offset)
        self.bytes_in += len(records)
        if not self._dirty:
            self._dirty = True
            self._dirty_logs.append(self)

    def _changing(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as error:
            raise self.directory.fail(error) from error

    # --- waiting to read -----------------------------------------------------------------

    def add_waiter(self, waiter: Waiter) -> None:
        self._waiters[waiter] = None

    def remove_waiter(self, waiter: Waiter) -> None:
        self._waiters.pop(waiter, None)

    def add_follower_waiter(self, waiter: Waiter) -> None:
        """As `add_waiter`, for one who reads to the end of the log."""
        self._follower_waiters[waiter] = None

    def remove_follower_waiter(self, waiter: Waiter) -> None:
        self._follower_waiters.pop(waiter, None)

    def _wake_all(self) -> None:
        for waiter in [*self._waiters, *self._follower_waiters]:
            waiter.readable(0)
