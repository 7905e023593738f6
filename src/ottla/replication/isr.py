"""Which replicas are in sync, and how far they agree. Pure: no clock, no disk, no loop.

A leader may not decide by itself who is in sync: it proposes a set to the controller (AlterPartition), and
until it has heard what came of that, either set may be the true one. So it counts on the *maximal* set, the
one in force and the proposed one together (KIP-497): nothing is called committed that one of them lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, NamedTuple

from ottla.protocol.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    OperationNotAttempted,
    UnknownTopicId,
    UnknownTopicOrPartition,
)

UNKNOWN: Final = -1
LONG_AGO_MS: Final = -(2**62)
# A change that was refused is not asked for again at once: the follower fetches many times a second.
REFUSED_MS: Final = 500
# A refusal counts only if no earlier attempt, of which nothing was heard, may still be on its way.
UNHEARD_MS: Final = 5_000


class Standing(NamedTuple):
    """What the metadata log says of a broker."""

    epoch: int
    is_active: bool  # neither fenced nor on its way out


StandingOf = Callable[[int], Standing]
NOT_REGISTERED: Final = Standing(UNKNOWN, False)


class Follower:
    """What a leader knows of one follower."""

    __slots__ = ("broker_epoch", "caught_up_ms", "end_offset", "fetched_ms", "leader_end", "start_offset")

    def __init__(self, caught_up_ms: int = LONG_AGO_MS) -> None:
        self.end_offset = UNKNOWN
        self.start_offset = UNKNOWN
        self.broker_epoch = UNKNOWN
        self.caught_up_ms = caught_up_ms  # when it last had all that the leader had
        self.fetched_ms = LONG_AGO_MS
        self.leader_end = UNKNOWN  # where the leader's log ended when it last fetched

    def fetched(self, end_offset: int, leader_end: int, now_ms: int) -> None:
        if end_offset >= leader_end:
            self.caught_up_ms = now_ms
        elif end_offset >= self.leader_end and self.fetched_ms > self.caught_up_ms:
            # It has all that there was at its last fetch. Under load no fetch ever gets to the end.
            self.caught_up_ms = self.fetched_ms
        self.end_offset = end_offset
        self.fetched_ms = now_ms
        self.leader_end = max(self.leader_end, leader_end)

    def is_caught_up(self, leader_end: int, now_ms: int, max_lag_ms: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.caught_up_ms <= max_lag_ms


_NOBODY: Final = Follower()


class Proposal(NamedTuple):
    """An in-sync set that the controller is asked for."""

    members: tuple[tuple[int, int], ...]  # broker and the epoch it is meant in, -1 for whichever
    leader_epoch: int
    partition_epoch: int


class Outcome(Enum):
    """What is to be done about a proposal that was not accepted."""

    DROPPED = "dropped"  # it was certainly not made: all is as it was before
    WAITING = "waiting"  # it may have been made, and the metadata log will tell
    AGAIN = "again"


_REFUSED: Final = (OperationNotAttempted.code, IneligibleReplica.code)
_OUTDATED: Final = (
    UnknownTopicOrPartition.code,
    UnknownTopicId.code,
    FencedLeaderEpoch.code,
    InvalidUpdateVersion.code,
    InvalidRequest.code,
    NewLeaderElected.code,
)


class InSyncReplicas:
    """A leader's view of its followers, and the high watermark that follows from it.

    The high watermark is the smallest end offset over the maximal in-sync set, and it stands still while the
    set in force is smaller than `min_insync_replicas` (KIP-966): what too few replicas hold is not shown to
    anyone. It also waits for a follower that is about to be in sync, which would never get there otherwise.
    """

    __slots__ = (
        "_awaited",
        "_counted",
        "_epoch_start",
        "_not_before_ms",
        "_unheard_ms",
        "followers",
        "is_large_enough",
        "is_leader_alone",
        "leader",
        "members",
        "min_insync_replicas",
        "proposal",
        "replicas",
    )

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.replicas: tuple[int, ...] = (leader,)
        self.members: frozenset[int] = frozenset((leader,))
        self.min_insync_replicas = 1
        self.followers: dict[int, Follower] = {}
        self.proposal: Proposal | None = None
        # Both are asked on every append, so they are kept rather than worked out. In a set that is large
        # enough acks=all may be promised: the floor is never above the number of replicas there are.
        self.is_leader_alone = True  # what is appended is committed by that
        self.is_large_enough = True
        self._epoch_start = 0
        self._awaited: frozenset[int] = frozenset()
        self._counted: tuple[Follower, ...] = ()
        self._not_before_ms = LONG_AGO_MS
        self._unheard_ms = LONG_AGO_MS

    @property
    def maximal(self) -> frozenset[int]:
        if self.proposal is None:
            return self.members
        return self.members.union(broker for broker, _ in self.proposal.members)

    # --- what the metadata log says --------------------------------------------------------

    def reset(
        self,
        replicas: Iterable[int],
        members: Iterable[int],
        min_insync_replicas: int,
        partition_epoch: int = UNKNOWN,
    ) -> None:
        """Take the sets of the metadata log. What followers have is kept for those that remain.

        A proposal that was made on the same partition epoch is still open, and must go on to count: the
        answer to the proposal before it may have come ahead of the log.
        """
        self.replicas = tuple(replicas)
        self.members = frozenset(members)
        self.min_insync_replicas = min_insync_replicas
        known = self.followers
        self.followers = {r: known.get(r) or Follower() for r in self.replicas if r != self.leader}
        if self.proposal is not None and self.proposal.partition_epoch != partition_epoch:
            self._close()
        self._count()

    def configure(self, min_insync_replicas: int) -> None:
        self.min_insync_replicas = min_insync_replicas
        self._count()

    def lead(self, epoch_start: int, now_ms: int) -> None:
        """A new leader epoch begins, at this end of the log.

        Nothing is known of the followers: others may have led since we did, and what a follower had of us it
        may have cut off.
        """
        self._epoch_start = epoch_start
        self._awaited = frozenset()
        self._close()
        self.followers = {
            replica: Follower(now_ms if replica in self.members else LONG_AGO_MS)
            for replica in self.followers
        }
        self._count()

    def _close(self) -> None:
        self.proposal = None
        self._not_before_ms = self._unheard_ms = LONG_AGO_MS

    def _count(self) -> None:
        counted = (self.maximal | self._awaited) - {self.leader}
        self._counted = tuple(self.followers.get(replica, _NOBODY) for replica in counted)
        self.is_large_enough = len(self.members) >= min(self.min_insync_replicas, len(self.replicas))
        self.is_leader_alone = self.is_large_enough and not counted

    # --- what followers say ----------------------------------------------------------------

    def fetched(
        self,
        replica: int,
        end_offset: int,
        start_offset: int,
        broker_epoch: int,
        leader_end: int,
        now_ms: int,
    ) -> None:
        """A follower asks for what comes after `end_offset`: it holds everything before."""
        follower = self.followers[replica]
        follower.start_offset = start_offset
        follower.broker_epoch = broker_epoch
        follower.fetched(end_offset, leader_end, now_ms)

    def is_stale(self, replica: int, broker_epoch: int, standing_of: StandingOf) -> bool:
        """Whether a fetch is of an earlier life of the broker, which may have held more than this one."""
        if broker_epoch == UNKNOWN:
            return False
        return broker_epoch < max(standing_of(replica).epoch, self._epoch(replica))

    def _epoch(self, replica: int) -> int:
        follower = self.followers.get(replica)
        return UNKNOWN if follower is None else follower.broker_epoch

    def high_watermark(self, current: int, leader_end: int) -> int:
        """The watermark now, never below `current`."""
        if not self.is_large_enough:
            return current
        watermark = leader_end
        for follower in self._counted:
            if follower.end_offset < watermark:
                watermark = follower.end_offset
        return max(current, watermark)

    # --- proposals -------------------------------------------------------------------------

    def look(
        self,
        high_watermark: int,
        leader_end: int,
        epochs: tuple[int, int],
        now_ms: int,
        max_lag_ms: int,
        standing_of: StandingOf,
        fetching: int | None = None,
    ) -> Proposal | None:
        """Who should be in sync; the proposal to make, if it is another set and none is open.

        `epochs` are those of leader and partition. Nobody is taken in but the one who is `fetching`: what is
        known of the others may be old, and they would be left out again for it.
        """
        laggards = {
            replica
            for replica in self.members - {self.leader}
            if replica not in self.followers
            or not self.followers[replica].is_caught_up(leader_end, now_ms, max_lag_ms)
        }
        joining: set[int] = set()
        awaited: set[int] = set()
        for replica, follower in self.followers.items():
            if replica in self.members or not self._is_eligible(replica, standing_of):
                continue
            if follower.end_offset >= high_watermark and follower.end_offset >= self._epoch_start:
                if replica == fetching:
                    joining.add(replica)
            elif now_ms - follower.caught_up_ms <= max_lag_ms:
                awaited.add(replica)
        if awaited != self._awaited:
            self._awaited = frozenset(awaited)
            self._count()
        if self.proposal is not None or now_ms < self._not_before_ms or not (laggards or joining):
            return None
        wanted = sorted((self.members - laggards) | joining)
        members = tuple(
            (broker, standing_of(broker).epoch if broker == self.leader else self._epoch(broker))
            for broker in wanted
        )
        self.proposal = Proposal(members, *epochs)
        self._count()
        return self.proposal

    def _is_eligible(self, replica: int, standing_of: StandingOf) -> bool:
        """Not fenced, not on its way out, and the incarnation of the broker that fetched."""
        epoch, is_active = standing_of(replica)
        follower = self.followers[replica]
        if not is_active or follower.fetched_ms == LONG_AGO_MS:
            return False
        return follower.broker_epoch in (UNKNOWN, epoch)

    def accepted(self, proposal: Proposal, members: Iterable[int]) -> bool:
        """The controller's answer: this is the set now. False if the metadata log was faster."""
        if self.proposal is not proposal:
            return False
        self.members = frozenset(members)
        self._close()
        self._count()
        return True

    def unheard(self, proposal: Proposal, now_ms: int) -> None:
        """There was no answer: the controller may have made the change, or may do so yet."""
        if self.proposal is proposal:
            self._unheard_ms = now_ms

    def refused(self, proposal: Proposal, error_code: int, now_ms: int) -> Outcome:
        """The controller's answer: an error."""
        if self.proposal is not proposal:
            return Outcome.DROPPED
        if error_code in _OUTDATED:
            return Outcome.WAITING
        if error_code not in _REFUSED or now_ms - self._unheard_ms < UNHEARD_MS:
            return Outcome.AGAIN
        self._close()
        self._not_before_ms = now_ms + REFUSED_MS
        self._count()
        return Outcome.DROPPED
