"""Mistakes that the simulation has to find: each is one that somebody has made, or nearly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from ottla.replication import isr, partition
from ottla.replication.following import Answered, Asked
from ottla.replication.isr import InSyncReplicas, Outcome, Proposal
from ottla.replication.partition import Partition
from tests.simulation.replication.cluster import Cluster, Process

Mutant = Callable[[], Any]


def _watermark_over_members(self: InSyncReplicas) -> None:
    """The high watermark counts the in-sync set in force, and not the proposed one."""
    counted = self.members - {self.leader}
    self._counted = tuple(self.followers.get(replica, isr._NOBODY) for replica in counted)
    self.is_large_enough = len(self.members) >= min(self.min_insync_replicas, len(self.replicas))
    self.is_leader_alone = self.is_large_enough and not counted


def _watermark_below_minimum(self: InSyncReplicas, current: int, leader_end: int) -> int:
    ends = [follower.end_offset for follower in self._counted]
    return max(current, min([leader_end, *ends]))


def _truncate_by_watermark(self: Partition, leader: int, leader_epoch: int, partition_epoch: int) -> None:
    if leader != self.leader or leader_epoch != self.leader_epoch:
        self.stop_leading(leader, leader_epoch, partition_epoch)
        self.log.truncate_to(self.log.high_watermark)


def _fewer_reads(self: Partition, last_epoch: int, fetch_offset: int) -> None:
    return None


def _keep_tail(epochs: Any, end_offset: int, epoch: int, leader_end: int) -> int:
    return end_offset


def _acknowledge_at_once(self: Partition, offset: int) -> None:
    return None


def _any_epoch(self: Partition, current_leader_epoch: int = -1) -> None:
    pass


def _forget_nothing(self: InSyncReplicas, epoch_start: int, now_ms: int) -> None:
    """A new leader epoch goes on with what it knew of its followers."""
    self._epoch_start = epoch_start
    self._close()
    self._count()


def _drop_proposal(
    self: InSyncReplicas, replicas: Any, members: Any, minimum: int, partition_epoch: int = -1
) -> None:
    self._close()
    _reset(self, replicas, members, minimum, partition_epoch)


def _believe_refusal(self: InSyncReplicas, proposal: Proposal, error_code: int, now_ms: int) -> Outcome:
    self._unheard_ms = isr.LONG_AGO_MS
    return _refused(self, proposal, error_code, now_ms)


def _join_below_epoch(self: InSyncReplicas, epoch_start: int, now_ms: int) -> None:
    _lead(self, 0, now_ms)


def _take_whatever_comes(self: Partition, asked: Asked) -> bool:
    return not self.is_leader and self.log.end_offset == asked.fetch_offset


def _never_stale(self: InSyncReplicas, replica: int, broker_epoch: int, standing_of: Any) -> bool:
    return False


def _watermark_of_leader(self: Partition, asked: Asked, answer: Answered, now_ms: int) -> bool:
    """A diverging follower takes the leader's high watermark for what it has itself."""
    if self.is_still(asked):
        self.log.high_watermark = max(
            self.log.high_watermark, min(answer.high_watermark, self.log.end_offset)
        )
    return _take_answer(self, asked, answer, now_ms)


_reset = InSyncReplicas.reset
_refused = InSyncReplicas.refused
_lead = InSyncReplicas.lead
_take_answer = Partition.take_answer


@contextmanager
def _by_watermark() -> Iterator[None]:
    with (
        mock.patch.object(Partition, "become_follower", _truncate_by_watermark),
        mock.patch.object(Partition, "diverges", _fewer_reads),
    ):
        yield


MUTANTS: dict[str, Mutant] = {
    "the high watermark counts the in-sync set, not the maximal one": lambda: mock.patch.object(
        InSyncReplicas, "_count", _watermark_over_members
    ),
    "the high watermark moves below min.insync.replicas": lambda: mock.patch.object(
        InSyncReplicas, "high_watermark", _watermark_below_minimum
    ),
    "followers truncate to the high watermark": _by_watermark,
    "a divergent tail is kept": lambda: mock.patch.object(partition, "truncation_offset", _keep_tail),
    "acknowledged before the followers have it": lambda: mock.patch.object(
        Partition, "committed", _acknowledge_at_once
    ),
    "any leader epoch will do": lambda: mock.patch.object(Partition, "check_epoch", _any_epoch),
    "answers of an earlier epoch are taken": lambda: mock.patch.object(
        Partition, "is_still", _take_whatever_comes
    ),
    "a leader that was elected again knows its followers": lambda: mock.patch.object(
        InSyncReplicas, "lead", _forget_nothing
    ),
    "the metadata log ends a proposal that is still open": lambda: mock.patch.object(
        InSyncReplicas, "reset", _drop_proposal
    ),
    "a follower joins before it has reached the epoch": lambda: mock.patch.object(
        InSyncReplicas, "lead", _join_below_epoch
    ),
    "a crash passes for a clean stop": lambda: mock.patch.object(
        Cluster, "epoch_after_crash", lambda self, process: process.broker_epoch
    ),
    "a follower says what it has not synced": lambda: mock.patch.object(
        Cluster, "must_sync", lambda self, process: False
    ),
    "a broker leads before it has seen itself registered": lambda: mock.patch.object(
        Cluster, "is_caught_up", _registered
    ),
}


def _registered(self: Cluster, process: Process) -> bool:
    return process.broker_epoch >= 0
