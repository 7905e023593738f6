"""What a leader knows of its followers: how far each log is on disk and when it last asked; and what follows
from that for the high watermark and for the leader's own right to lead."""

from __future__ import annotations

from typing import Final

from ottla.raft.membership import VoterKey
from ottla.raft.voter_set import VoterSet

# A leader that does not hear from a majority for this many fetch timeouts resigns.
CHECK_QUORUM_FACTOR: Final = 1.5
# An observer that does not fetch for this long is forgotten.
OBSERVER_SESSION_MS: Final = 300_000
# More than a cluster has brokers. Whoever asks says who it is, and could say anything.
OBSERVERS_MAX: Final = 2_000
NEVER: Final = -1


class ReplicaState:
    """One replica as the leader sees it."""

    __slots__ = (
        "begin_epoch_at_ms",
        "end_offset",
        "key",
        "last_caught_up_ms",
        "last_fetch_ms",
        "leader_end_at_fetch",
    )

    def __init__(self, key: VoterKey, *, begin_epoch_at_ms: int = 0) -> None:
        self.key = key
        self.end_offset = -1
        self.last_fetch_ms = NEVER
        self.last_caught_up_ms = NEVER
        # How far our own log was at its last fetch: once it gets there it has caught up with that time.
        self.leader_end_at_fetch = -1
        # When to tell it again that we lead, unless it fetches.
        self.begin_epoch_at_ms = begin_epoch_at_ms

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> None:
        if offset >= leader_end:
            self.last_caught_up_ms = now_ms
        elif self.leader_end_at_fetch >= 0 and offset >= self.leader_end_at_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset = offset
        self.last_fetch_ms = now_ms
        self.leader_end_at_fetch = leader_end


class LeaderState:
    def __init__(
        self, node: VoterKey, voters: VoterSet, start_offset: int, fetch_timeout_ms: int, now_ms: int
    ) -> None:
        self.node = node
        self.start_offset = start_offset  # where our epoch begins
        self.high_watermark: int | None = None
        self.voters: dict[int, ReplicaState] = {}
        self.observers: dict[VoterKey, ReplicaState] = {}
        self._check_quorum_ms = int(fetch_timeout_ms * CHECK_QUORUM_FACTOR)
        self.check_quorum_at_ms = now_ms + self._check_quorum_ms
        self._heard: set[int] = set()
        self._voter_set = voters
        self.follow_voters(voters, now_ms)

    def follow_voters(self, voters: VoterSet, now_ms: int) -> None:
        """The voters have changed. What is known of a replica stays known when it gains or loses its vote."""
        before = self.voters
        if self._voter_set.is_only_voter(self.node):
            # Until now there was nobody to be heard.
            self.check_quorum_at_ms = now_ms + self._check_quorum_ms
        self._voter_set = voters
        self.voters = {}
        for node in voters.nodes.values():
            known = before.pop(node.key.id, None)
            if known is not None and not node.is_voter(known.key):
                self.observers[known.key] = known
                known = None
            found = self.observers.pop(node.key, None)
            self.voters[node.key.id] = known or found or ReplicaState(node.key, begin_epoch_at_ms=now_ms)
        for replica in before.values():
            self.observers.setdefault(replica.key, replica)
        self._heard &= self.voters.keys()

    def replica(self, key: VoterKey) -> ReplicaState:
        node = self._voter_set.nodes.get(key.id)
        if node is not None and node.is_voter(key):
            return self.voters[key.id]
        if key not in self.observers and len(self.observers) >= OBSERVERS_MAX:
            others = (each for each in self.observers.values() if each.key != self.node)
            del self.observers[min(others, key=lambda each: each.last_fetch_ms).key]
        return self.observers.setdefault(key, ReplicaState(key))

    def persisted(self, end_offset: int) -> None:
        """Our own log is on disk up to here."""
        replica = self.replica(self.node)
        replica.end_offset = max(replica.end_offset, end_offset)

    def heard(self, key: VoterKey, now_ms: int) -> None:
        """A replica fetches from us. Once a majority does, our leadership is good for another while."""
        if not self._voter_set.is_voter(key):
            return
        self._heard.add(key.id)
        mine = 1 if self._voter_set.is_voter(self.node) else 0
        if len(self._heard) + mine > len(self._voter_set) // 2:
            self._heard.clear()
            self.check_quorum_at_ms = now_ms + self._check_quorum_ms

    def update_high_watermark(self) -> bool:
        """Whether more is committed than before.

        What more than half of the voters have on disk is committed; but only once that includes a record of
        this epoch: one of an older epoch may still be overwritten by another leader (section 5.4.2 of the
        paper).
        """
        ends = sorted((replica.end_offset for replica in self.voters.values()), reverse=True)
        agreed = ends[len(ends) // 2]
        if agreed <= self.start_offset or agreed <= (self.high_watermark or 0):
            return False
        self.high_watermark = agreed
        return True

    def successors(self) -> list[VoterKey]:
        """The other voters, the one with the longest log first."""
        others = [replica for replica in self.voters.values() if replica.key.id != self.node.id]
        return [replica.key for replica in sorted(others, key=lambda replica: -replica.end_offset)]

    def forget_silent_observers(self, now_ms: int) -> None:
        for key, replica in list(self.observers.items()):
            if now_ms - replica.last_fetch_ms >= OBSERVER_SESSION_MS and key != self.node:
                del self.observers[key]
