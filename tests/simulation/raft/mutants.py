"""Machines that are broken on purpose. A simulation that does not notice them would notice nothing.

`python -m tests.simulation.raft.mutants` says after how many seeds each is found out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from ottla.protocol.errors import NotLeaderOrFollower
from ottla.raft.effects import Persist
from ottla.raft.fetching_snapshots import FetchingSnapshots
from ottla.raft.following import Following
from ottla.raft.leader_state import LeaderState
from ottla.raft.leading import Leading
from ottla.raft.log import EpochEnd, SnapshotId
from ottla.raft.machine import Raft
from ottla.raft.membership import Membership, VoterKey
from ottla.raft.quorum_state import QuorumState
from ottla.raft.states import Candidate, Follower, Leader, Prospective, Resigned, Unattached, Votes
from ottla.raft.voter_changes import VoterChanges
from ottla.raft.voting import Voting
from tests.simulation.raft.cluster import run
from tests.simulation.raft.invariants import Violation

# What each mutant replaces: a class, the name of a method or property, and what stands in for it.
Change = tuple[type, str, Any]


def _persist_except(forgets: Callable[[Any, Any], bool]) -> Change:
    """A `_persist` that remembers, but does not write some of it down."""

    def persist(self: QuorumState, election: Any) -> None:
        if election != self.election:
            is_forgotten = forgets(self.election, election)
            self.election = election
            if not is_forgotten:
                self.effects.append(Persist(election))

    return QuorumState, "_persist", persist


def _votes_for_everybody(self: Voting, replica: VoterKey, is_up_to_date: bool, now_ms: int) -> bool:
    state = self._quorum.state
    if not isinstance(state, Unattached | Prospective) or self._quorum.has_leader:
        return False
    if is_up_to_date:
        self._quorum.grant_vote(replica, now_ms)
    return is_up_to_date


def _high_watermark(agreed: Callable[[LeaderState, list[int]], int], *, own_epoch: bool = True) -> Change:
    def update(self: LeaderState) -> bool:
        ends = sorted((replica.end_offset for replica in self.voters.values()), reverse=True)
        mark = agreed(self, ends)
        if (own_epoch and mark <= self.start_offset) or mark <= (self.high_watermark or 0):
            return False
        self.high_watermark = mark
        return True

    return LeaderState, "update_high_watermark", update


def _with_observers(state: LeaderState, ends: list[int]) -> int:
    everybody = sorted([*ends, *(o.end_offset for o in state.observers.values())], reverse=True)
    return everybody[len(ends) // 2]


_grown = QuorumState.grown
_read = Leading._read
_start = QuorumState.start
_advance = QuorumState.advance_high_watermark
_load = FetchingSnapshots._load
_synced = Raft.synced
_truncate = Following._truncate


def _follower_acks_early(self: QuorumState) -> None:
    _grown(self)
    if isinstance(self.state, Follower):
        self.durable_end = self.log.end_offset


def _leader_counts_unsynced(self: QuorumState) -> None:
    _grown(self)
    if isinstance(self.state, Leader):
        self.state.leading.persisted(self.log.end_offset)


def _counts_before_comparing(self: Leading, state: Leader, replica: VoterKey, asked: Any, *rest: Any) -> Any:
    end = self._quorum.log.end_offset
    state.leading.replica(replica).fetched(min(asked.fetch_offset, end), end, rest[1])
    self._commit(state)
    return _read(self, state, replica, asked, *rest)


def _no_divergence(self: Leading, offset: int, epoch: int) -> SnapshotId | EpochEnd | None:
    log = self._quorum.log
    if offset < log.start_offset:
        return log.latest_snapshot
    return None if offset <= log.end_offset else EpochEnd(log.last_epoch, log.end_offset)


def _leads_again(self: QuorumState, before: Any, now_ms: int) -> None:
    _start(self, before, now_ms)
    if isinstance(self.state, Resigned):
        self.election = self.election._replace(leader_id=-1)
        self.state = Candidate(Votes(self.voters, self.node.id), self._election_timeout(now_ms))


def _keeps_tail(self: Following, leaders: EpochEnd) -> None:
    """The part of the log that the leader does not have stays."""


def _keeps_log(self: FetchingSnapshots, snapshot: SnapshotId) -> None:
    log: Any = self._quorum.log
    with patch.object(type(log), "truncate_fully", lambda *_: None):
        _load(self, snapshot)


def _mark_without_limit(self: QuorumState, offset: int) -> None:
    _advance(self, offset + 1 if isinstance(self.state, Follower) else offset)


def _synced_further(self: Raft, end_offset: int, now_ms: int) -> None:
    _synced(self, self._quorum.log.end_offset, now_ms)


def _still_durable(self: Following, leaders: EpochEnd) -> None:
    before = self._quorum.durable_end
    _truncate(self, leaders)
    self._quorum.durable_end = before


def _changes_whenever_asked(self: VoterChanges, cluster_id: str | None, now_ms: int) -> Leader:
    """Without waiting for the change before, nor for a record of this epoch."""
    state = self._quorum.state
    if not isinstance(state, Leader) or self._quorum.membership.voters is None:
        raise NotLeaderOrFollower
    return state


_is_won = property(lambda self: len(self.granted) >= max(1, len(self.voters) // 2))

MUTANTS: dict[str, list[Change]] = {
    "a vote is not persisted": [
        _persist_except(lambda before, after: after.voted_id >= 0 and after.voted_id != before.voted_id)
    ],
    "a new epoch is not persisted": [
        _persist_except(lambda before, after: after.epoch > before.epoch and after.voted_id < 0)
    ],
    "a leader does not persist that it leads": [
        _persist_except(lambda before, after: 0 <= after.leader_id == before.voted_id)
    ],
    "a vote is given without a look at the log": [(QuorumState, "is_up_to_date", lambda *_: True)],
    "logs are compared by length first": [
        (QuorumState, "is_up_to_date", lambda self, epoch, end: end >= self.log.end_offset)
    ],
    "logs are compared by epoch alone": [
        (QuorumState, "is_up_to_date", lambda self, epoch, end: epoch >= self.log.last_epoch)
    ],
    "a vote is given to everybody who asks": [(Voting, "_give_vote", _votes_for_everybody)],
    "half of the votes are enough": [(Votes, "is_won", _is_won)],
    "a restarted leader leads its epoch again": [(QuorumState, "start", _leads_again)],
    "entries of an older epoch are committed by counting": [
        _high_watermark(lambda _, ends: ends[len(ends) // 2], own_epoch=False)
    ],
    "one fewer than a majority commits": [_high_watermark(lambda _, ends: ends[max(0, len(ends) // 2 - 1)])],
    "observers count for the majority": [_high_watermark(_with_observers)],
    "a follower acknowledges before it has synced": [(QuorumState, "grown", _follower_acks_early)],
    "a leader counts what it has not synced": [(QuorumState, "grown", _leader_counts_unsynced)],
    "a sync counts for what came after it began": [(Raft, "synced", _synced_further)],
    "what was cut off still counts as synced": [(Following, "_truncate", _still_durable)],
    "a diverging follower counts for the majority": [(Leading, "_read", _counts_before_comparing)],
    "a leader does not see that a log diverges": [(Leading, "_compare", _no_divergence)],
    "a follower keeps its diverging tail": [(Following, "_truncate", _keeps_tail)],
    "a follower keeps its log beside a snapshot": [(FetchingSnapshots, "_load", _keeps_log)],
    "the voters of a log that was cut off still count": [(Membership, "truncate_to", lambda *_: None)],
    "voters change before the last change is committed": [(VoterChanges, "_check", _changes_whenever_asked)],
    "a follower's high watermark runs ahead": [(QuorumState, "advance_high_watermark", _mark_without_limit)],
}

# Those that few seeds find out, and a seed that does, for who has little time.
BEGIN_AT = {
    "a leader does not persist that it leads": 45,
    "logs are compared by length first": 31,
    "a vote is given to everybody who asks": 24,
    "a restarted leader leads its epoch again": 32,
    "what was cut off still counts as synced": 31,
    "a follower keeps its diverging tail": 15,
    "the voters of a log that was cut off still count": 182,
    "voters change before the last change is committed": 238,
}


@contextmanager
def broken(mutant: str) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name, replacement in MUTANTS[mutant]:
            stack.enter_context(patch.object(owner, name, replacement))
        yield


def found_after(mutant: str, seeds: int, first: int = 0) -> tuple[int, str] | None:
    """How many seeds it took to find a mutant out, and by what; None if none of them did."""
    with broken(mutant):
        for seed in range(first, first + seeds):
            try:
                run(seed)
            except Violation as violation:
                return seed - first + 1, str(violation)
    return None


def main() -> int:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    survivors = 0
    for mutant in MUTANTS:
        found = found_after(mutant, seeds)
        survivors += found is None
        print(f"{found[0] if found else 'SURVIVES':>8}  {mutant}: {found[1] if found else ''}", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
