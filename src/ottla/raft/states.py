"""What a node keeps in mind in each role. The epoch and the vote are in `ElectionState`; here is what a
restart may forget.

    UNATTACHED -> PROSPECTIVE -> CANDIDATE -> LEADER -> RESIGNED
         ^------------ FOLLOWER of whoever leads, from any of them

`QuorumState` makes the transitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


class Unattached:
    """Waits for an election, its own or another's. An observer has no deadline: it looks for the leader."""

    __slots__ = ("deadline_ms",)

    def __init__(self, deadline_ms: int | None) -> None:
        self.deadline_ms = deadline_ms


class Prospective:
    """Asks whether an election would be won before it disturbs anybody with a new epoch (KIP-996)."""

    __slots__ = ("deadline_ms", "leader_addresses", "votes")

    def __init__(self, votes: Votes, deadline_ms: int, leader_addresses: tuple[Address, ...] = ()) -> None:
        self.votes = votes
        self.deadline_ms = deadline_ms
        # The leader that fell silent, if there was one.
        self.leader_addresses = leader_addresses


class Candidate:
    __slots__ = ("deadline_ms", "is_backing_off", "votes")

    def __init__(self, votes: Votes, deadline_ms: int) -> None:
        self.votes = votes
        self.deadline_ms = deadline_ms
        self.is_backing_off = False


class Leader:
    __slots__ = ("leading",)

    def __init__(self, leading: LeaderState) -> None:
        self.leading = leading


class Follower:
    __slots__ = (
        "deadline_ms",
        "has_fetched",
        "leader_addresses",
        "position",
        "snapshot",
        "update_voter_at_ms",
    )

    def __init__(
        self, leader_addresses: tuple[Address, ...], deadline_ms: int, *, update_voter_at_ms: int = 0
    ) -> None:
        self.leader_addresses = leader_addresses
        # A voter without a successful fetch until then runs for leader; an observer asks around.
        self.deadline_ms = deadline_ms
        self.has_fetched = False
        # When to tell the leader where we listen, if the voters' record says otherwise.
        self.update_voter_at_ms = update_voter_at_ms
        # The snapshot that is being fetched, and how much of it has arrived.
        self.snapshot: SnapshotId | None = None
        self.position = 0


class Resigned:
    """Led this epoch, and does not any more: neither votes nor leads in it."""

    __slots__ = ("candidates", "deadline_ms", "unacknowledged")

    def __init__(
        self, deadline_ms: int, candidates: Sequence[VoterKey] = (), unacknowledged: Iterable[int] = ()
    ) -> None:
        self.deadline_ms = deadline_ms
        # The best successors first, and the voters that have not heard of the resignation.
        self.candidates = list(candidates)
        self.unacknowledged = set(unacknowledged)


State = Unattached | Prospective | Candidate | Leader | Follower | Resigned

ROLES: dict[type[State], Role] = {
    Unattached: Role.UNATTACHED,
    Prospective: Role.PROSPECTIVE,
    Candidate: Role.CANDIDATE,
    Leader: Role.LEADER,
    Follower: Role.FOLLOWER,
    Resigned: Role.RESIGNED,
}
