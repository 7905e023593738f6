"""What a node keeps in mind in each role. The epoch and the vote are in `ElectionState`; here is what a
restart may forget.

    UNATTACHED -> PROSPECTIVE -> CANDIDATE -> LEADER -> RESIGNED
         ^------------ FOLLOWER of whoever leads, from any of them

`QuorumState` makes the transitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ottla.raft.leader_state import LeaderState
from ottla.raft.log import SnapshotId
from ottla.raft.membership import Address, VoterKey
from ottla.raft.voter_set import VoterSet


class Role(Enum):
    """What a node is in its epoch. One without a vote is an observer: only ever UNATTACHED or FOLLOWER."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


class Votes:
    """The votes of an election, or of the poll before it."""

    def __init__(self, voters: VoterSet, me: int) -> None:
        self.voters = voters
        self.granted = {me} & set(voters.ids)
        self.rejected: set[int] = set()

    def record(self, voter: int, granted: bool) -> None:
        if voter in self.voters.nodes:
            (self.granted if granted else self.rejected).add(voter)

    @property
    def is_won(self) -> bool:
        return len(self.granted) > len(self.voters) // 2

    @property
    def is_lost(self) -> bool:
        """Whether those who did not refuse are too few."""
        return len(self.voters) - len(self.rejected - self.granted) <= len(self.voters) // 2

    def is_missing(self, voter: int) -> bool:
        return voter not in self.granted and voter not in self.rejected


@dataclass(slots=True)
class Unattached:
    """Waits for an election, its own or another's. An observer has no deadline: it looks for the leader."""

    deadline_ms: int | None


@dataclass(slots=True)
class Prospective:
    """Asks whether an election would be won before it disturbs anybody with a new epoch (KIP-996)."""

    votes: Votes
    deadline_ms: int
    # The leader that fell silent, if there was one.
    leader_addresses: tuple[Address, ...] = ()


@dataclass(slots=True)
class Candidate:
    votes: Votes
    deadline_ms: int
    is_backing_off: bool = False


@dataclass(slots=True)
class Leader:
    leading: LeaderState


@dataclass(slots=True)
class Follower:
    leader_addresses: tuple[Address, ...]
    # A voter without a successful fetch until then runs for leader; an observer asks around.
    deadline_ms: int
    has_fetched: bool = False
    # When to tell the leader where we listen, if the voters' record says otherwise.
    update_voter_at_ms: int = 0
    # The snapshot that is being fetched, and how much of it has arrived.
    snapshot: SnapshotId | None = None
    position: int = 0


@dataclass(slots=True)
class Resigned:
    """Led this epoch, and does not any more: neither votes nor leads in it."""

    deadline_ms: int
    # The best successors first, and the voters that have not heard of the resignation.
    candidates: list[VoterKey] = field(default_factory=list)
    unacknowledged: set[int] = field(default_factory=set)


State = Unattached | Prospective | Candidate | Leader | Follower | Resigned

ROLES: dict[type[State], Role] = {
    Unattached: Role.UNATTACHED,
    Prospective: Role.PROSPECTIVE,
    Candidate: Role.CANDIDATE,
    Leader: Role.LEADER,
    Follower: Role.FOLLOWER,
    Resigned: Role.RESIGNED,
}
