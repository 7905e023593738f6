"""KRaft as one machine: the requests of the other nodes, their answers and the passing of time go in, answers
and effects come out.

It never waits and sees no disk or clock. The shell calls one method at a time; after every call it takes the
effects and carries them out in order, and looks whether role, leader or high watermark have changed. Every
time is of a monotonic clock, in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.protocol.messages.vote import VoteRequest, VoteResponse
from ottla.raft.effects import Effect, Send
from ottla.raft.election_state import ElectionState
from ottla.raft.log import RaftLog
from ottla.raft.membership import Address, Membership, VoterKey
from ottla.raft.settings import RaftSettings


class Role(Enum):
    """What a node is in its epoch. One without a vote is an observer: only ever UNATTACHED or FOLLOWER."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


class NotLeader(Exception):
    """This node does not lead, so it appends nothing of its own."""


class Raft:
    """One node of the quorum.

    `membership` is what the whole log on disk says, uncommitted records included, with their offsets (see
    `Membership.apply`); the machine goes on keeping it: it grows with appends and shrinks with truncations.
    `election` is what the quorum-state file says. `chance` draws from [0, 1). A node with `can_vote` is a
    controller; whether it has a vote is for the voter set to say. What is in the log when this is called
    counts as synced. The only voter leads when this returns.
    """

    def __init__(
        self,
        settings: RaftSettings,
        node: VoterKey,
        log: RaftLog,
        membership: Membership,
        election: ElectionState | None,
        cluster_id: str,
        now_ms: int,
        chance: Callable[[], float],
        *,
        can_vote: bool,
    ) -> None:
        raise NotImplementedError

    # --- what is known -------------------------------------------------------------------------

    @property
    def role(self) -> Role:
        raise NotImplementedError

    @property
    def epoch(self) -> int:
        raise NotImplementedError

    @property
    def leader_id(self) -> int:
        """-1 if it is not known."""
        raise NotImplementedError

    @property
    def is_leader(self) -> bool:
        raise NotImplementedError

    @property
    def is_voter(self) -> bool:
        raise NotImplementedError

    @property
    def leader_address(self) -> Address | None:
        """Where the leader listens for controllers and brokers; None if it is not known, or if it is us."""
        raise NotImplementedError

    @property
    def high_watermark(self) -> int | None:
        """Everything below is committed. None until it is known for the first time; never goes back."""
        raise NotImplementedError

    @property
    def epoch_start_offset(self) -> int:
        """As leader: the offset of our LeaderChange record. The log is ours once that is committed."""
        raise NotImplementedError

    # --- time ----------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """When to call `expire` next; changes with every call."""
        raise NotImplementedError

    def expire(self, now_ms: int) -> None:
        raise NotImplementedError

    # --- our own log ---------------------------------------------------------------------------

    def append(self, batch: bytearray) -> int:
        """Append as leader, answers the offset of its first record. Raises `NotLeader`."""
        raise NotImplementedError

    def synced(self, end_offset: int, now_ms: int) -> None:
        """Everything below is on our own disk."""
        raise NotImplementedError

    # --- requests of others --------------------------------------------------------------------

    def vote(self, request: VoteRequest, now_ms: int) -> VoteResponse:
        raise NotImplementedError

    def begin_quorum_epoch(self, request: BeginQuorumEpochRequest, now_ms: int) -> BeginQuorumEpochResponse:
        raise NotImplementedError

    def end_quorum_epoch(self, request: EndQuorumEpochRequest, now_ms: int) -> EndQuorumEpochResponse:
        raise NotImplementedError

    def fetch(self, request: FetchRequest, now_ms: int, *, waited: bool = False) -> FetchResponse | None:
        """None: there is nothing to say yet. Ask again after anything has changed (log end, high watermark,
        role, epoch), and for the last time, with `waited`, when the request's `max_wait_ms` are over."""
        raise NotImplementedError

    def fetch_snapshot(self, request: FetchSnapshotRequest, now_ms: int) -> FetchSnapshotResponse:
        raise NotImplementedError

    def describe(
        self, request: DescribeQuorumRequest, version: int, now_ms: int, wall_ms: int
    ) -> DescribeQuorumResponse:
        raise NotImplementedError

    # --- answers of others ---------------------------------------------------------------------

    def answered(self, sent: Send, response: Any, now_ms: int) -> None:
        """The answer to a request, of the response type that goes with it."""
        raise NotImplementedError

    def failed(self, sent: Send, now_ms: int, *, unsupported: bool = False) -> None:
        """No connection, or no answer in time; or the other node does not know such requests."""
        raise NotImplementedError

    def resign(self, now_ms: int) -> None:
        """The orderly end of a leader before it stops: asks the others to elect somebody. Else nothing."""
        raise NotImplementedError

    @property
    def is_resigning(self) -> bool:
        """Whether there are voters that have not heard yet that we resigned."""
        raise NotImplementedError

    # --- what is to be done --------------------------------------------------------------------

    def take_effects(self) -> list[Effect]:
        """What is to be done since the last call, in this order."""
        raise NotImplementedError
