"""KRaft as one machine: the requests of the other nodes, their answers and the passing of time go in, answers
and effects come out.

It never waits and sees no disk or clock. The shell calls one method at a time; after every call it takes the
effects and carries them out in order, and looks whether role, leader or high watermark have changed. Every
time is of a monotonic clock, in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.protocol.errors import (
    NONE,
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.protocol.messages.vote import VoteRequest, VoteResponse
from ottla.raft import describe
from ottla.raft.effects import Effect, Send
from ottla.raft.election_state import ElectionState
from ottla.raft.fetching_snapshots import FetchingSnapshots
from ottla.raft.following import Following
from ottla.raft.leading import Leading
from ottla.raft.log import RaftLog
from ottla.raft.membership import Address, Membership, VoterKey
from ottla.raft.partition import Heading, addresses_in, only_partition
from ottla.raft.quorum_state import QuorumState
from ottla.raft.settings import RaftSettings
from ottla.raft.states import ROLES, Candidate, Leader, Prospective, Resigned, Role
from ottla.raft.voter_changes import VoterChanges
from ottla.raft.voter_set import VoterSet
from ottla.raft.voting import Voting

__all__ = ["NotLeader", "Raft", "Role"]

# A change of role may make the next one due at once: the only voter goes from unattached to leader in four.
STEPS: Final = 8


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
        self._quorum = QuorumState(settings, node, log, membership, cluster_id, chance, can_vote=can_vote)
        self._voting = Voting(self._quorum)
        self._leading = Leading(self._quorum)
        self._snapshots = FetchingSnapshots(self._quorum, self._leading)
        self._following = Following(self._quorum, self._snapshots)
        self._changes = VoterChanges(self._quorum, self._leading)
        latest = log.latest_snapshot
        if latest is not None and (latest.epoch > log.last_epoch or latest.end_offset > log.end_offset):
            # It came from a leader, and a crash kept us from putting it in the place of the log.
            log.truncate_fully(latest)
            membership.restart(log.snapshot_control(latest))
            self._quorum.durable_end = log.end_offset
        if latest is not None and latest.end_offset > 0:
            self._quorum.advance_high_watermark(latest.end_offset)
        self._quorum.start(election, now_ms)
        if self._quorum.is_voter and self._quorum.voters.is_only_voter(node):
            self._quorum.become_candidate(now_ms)
        self._poll(now_ms)

    # --- what is known -------------------------------------------------------------------------

    @property
    def role(self) -> Role:
        return ROLES[type(self._quorum.state)]

    @property
    def epoch(self) -> int:
        return self._quorum.epoch

    @property
    def leader_id(self) -> int:
        """-1 if it is not known."""
        return self._quorum.leader_id

    @property
    def is_leader(self) -> bool:
        return isinstance(self._quorum.state, Leader)

    @property
    def is_voter(self) -> bool:
        return self._quorum.is_voter

    @property
    def voters(self) -> VoterSet:
        """Those who vote by what our log says, committed or not."""
        return self._quorum.voters

    @property
    def leader_address(self) -> Address | None:
        """Where the leader listens for controllers and brokers; None if it is not known, or if it is us."""
        if isinstance(self._quorum.state, Leader | Resigned):
            return None
        return self._quorum.choose(self._quorum.leader_addresses)

    @property
    def others(self) -> list[Address]:
        """Where other controllers listen, by what is known without a leader."""
        return [address for address, _ in self._following.controllers()]

    @property
    def high_watermark(self) -> int | None:
        """Everything below is committed. None until it is known for the first time; never goes back."""
        return self._quorum.high_watermark

    @property
    def epoch_start_offset(self) -> int:
        """As leader: the offset of our LeaderChange record. The log is ours once that is committed."""
        assert isinstance(self._quorum.state, Leader)
        return self._quorum.state.leading.start_offset

    # --- time ----------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """When to call `expire` next; changes with every call."""
        state = self._quorum.state
        if isinstance(state, Leader):
            found = (self._leading.deadline(state), self._changes.deadline())
            return min((at for at in found if at is not None), default=None)
        if isinstance(state, Resigned):
            return self._leading.resigned_deadline(state)
        if isinstance(state, Prospective | Candidate):
            return self._voting.deadline(state)
        return self._following.deadline(state)

    def expire(self, now_ms: int) -> None:
        self._poll(now_ms)

    # --- our own log ---------------------------------------------------------------------------

    def append(self, batch: bytearray) -> int:
        """Append as leader, answers the offset of its first record. Raises `NotLeader`."""
        if not isinstance(self._quorum.state, Leader):
            raise NotLeader
        offset = self._quorum.log.append(batch, self._quorum.epoch)
        self._quorum.grown()
        return offset

    def synced(self, end_offset: int, now_ms: int) -> None:
        """Everything below is on our own disk."""
        quorum = self._quorum
        quorum.durable_end = max(quorum.durable_end, min(end_offset, quorum.log.end_offset))
        if isinstance(quorum.state, Leader):
            self._leading.persisted(quorum.state)
        self._poll(now_ms)

    # --- requests of others --------------------------------------------------------------------

    def vote(self, request: VoteRequest, now_ms: int) -> VoteResponse:
        response = self._voting.vote(request, now_ms)
        self._poll(now_ms)
        return response

    def begin_quorum_epoch(self, request: BeginQuorumEpochRequest, now_ms: int) -> BeginQuorumEpochResponse:
        response = self._following.begin_quorum_epoch(request, now_ms)
        self._poll(now_ms)
        return response

    def end_quorum_epoch(self, request: EndQuorumEpochRequest, now_ms: int) -> EndQuorumEpochResponse:
        response = self._following.end_quorum_epoch(request, now_ms)
        self._poll(now_ms)
        return response

    def fetch(self, request: FetchRequest, now_ms: int, *, waited: bool = False) -> FetchResponse | None:
        """None: there is nothing to say yet. Ask again after anything has changed (log end, high watermark,
        role, epoch), and for the last time, with `waited`, when the request's `max_wait_ms` are over."""
        response = self._leading.fetch(request, now_ms, waited=waited)
        if isinstance(self._quorum.state, Leader):
            # The answer is made; what has become committed by the question may end a change of voters.
            self._changes.poll(self._quorum.state, now_ms)
        return response

    def fetch_snapshot(self, request: FetchSnapshotRequest, now_ms: int) -> FetchSnapshotResponse:
        return self._snapshots.fetch_snapshot(request, now_ms)

    def add_voter(self, request: AddRaftVoterRequest, now_ms: int) -> AddRaftVoterResponse | None:
        """None: it is under way. Ask again with the very same object after anything has changed, or when
        `deadline` is over."""
        outcome = self._changes.add(request, now_ms)
        self._poll(now_ms)
        if outcome is None:
            return None
        code, message = (outcome.code, str(outcome)) if isinstance(outcome, KafkaError) else (outcome, None)
        return AddRaftVoterResponse(error_code=code, error_message=message)

    def remove_voter(self, request: RemoveRaftVoterRequest, now_ms: int) -> RemoveRaftVoterResponse | None:
        """None: it is under way, as with `add_voter`."""
        outcome = self._changes.remove(request, now_ms)
        self._poll(now_ms)
        if outcome is None:
            return None
        code, message = (outcome.code, str(outcome)) if isinstance(outcome, KafkaError) else (outcome, None)
        return RemoveRaftVoterResponse(error_code=code, error_message=message)

    def update_voter(self, request: UpdateRaftVoterRequest, now_ms: int) -> UpdateRaftVoterResponse:
        response = self._changes.update(request, now_ms)
        self._poll(now_ms)
        return response

    def describe(
        self, request: DescribeQuorumRequest, version: int, now_ms: int, wall_ms: int
    ) -> DescribeQuorumResponse:
        return describe.describe(request, self._quorum, version, now_ms, wall_ms)

    # --- answers of others ---------------------------------------------------------------------

    def answered(self, sent: Send, response: Any, now_ms: int) -> None:
        """The answer to a request, of the response type that goes with it."""
        if not self._quorum.requests.answered(sent):
            return
        try:
            is_good = self._take(sent, response, now_ms)
        except KafkaStorageError:
            raise  # that is not the other node's fault
        except KafkaError:
            # An answer that makes no sense is as good as none.
            is_good = False
        if is_good:
            self._quorum.requests.succeeded(sent.to)
        else:
            self._quorum.requests.back_off(sent.to, now_ms)
        self._poll(now_ms)

    def failed(self, sent: Send, now_ms: int, *, unsupported: bool = False, is_gone: bool = False) -> None:
        """No connection, or no answer in time; or the other node does not know such requests.

        One that is gone has refused the connection: its process does not run.
        """
        if not self._quorum.requests.answered(sent):
            return
        self._quorum.requests.back_off(sent.to, now_ms)
        if is_gone:
            self._following.is_gone(sent.node_id, now_ms)
        if unsupported and isinstance(sent.request, VoteRequest):
            self._voting.unsupported(now_ms)
        if isinstance(sent.request, ApiVersionsRequest):
            self._changes.failed(sent)
        self._poll(now_ms)

    def resign(self, now_ms: int) -> None:
        """The orderly end of a leader before it stops: asks the others to elect somebody. Else nothing."""
        if isinstance(self._quorum.state, Leader):
            self._quorum.become_resigned(now_ms)
            self._poll(now_ms)

    @property
    def is_resigning(self) -> bool:
        """Whether there are voters that have not heard yet that we resigned."""
        return isinstance(self._quorum.state, Resigned) and bool(self._quorum.state.unacknowledged)

    # --- what is to be done --------------------------------------------------------------------

    def take_effects(self) -> list[Effect]:
        """What is to be done since the last call, in this order."""
        effects, self._quorum.effects = self._quorum.effects, []
        return effects

    # --- inside --------------------------------------------------------------------------------

    def _poll(self, now_ms: int) -> None:
        """Do what is due in this state, and in the states that it leads to."""
        for _ in range(STEPS):
            state = self._quorum.state
            if isinstance(state, Leader):
                self._changes.poll(state, now_ms)
                if state is self._quorum.state:
                    self._leading.poll(state, now_ms)
            elif isinstance(state, Resigned):
                self._leading.poll_resigned(state, now_ms)
            elif isinstance(state, Prospective | Candidate):
                self._voting.poll(state, now_ms)
            else:
                self._following.poll(state, now_ms)
            if state is self._quorum.state:
                return

    def _take(self, sent: Send, response: Any, now_ms: int) -> bool:
        """Whether the answer was of use, so that the same node may be asked again at once."""
        if isinstance(response, ApiVersionsResponse):
            self._changes.answered(sent, response, now_ms)
            return True
        heading = self._heading(sent, response)
        quorum = self._quorum
        error = heading.error_code
        if error == UnknownLeaderEpoch.code or heading.epoch < quorum.epoch:
            return error == NONE  # it is behind us
        if heading.epoch > quorum.epoch or error in (FencedLeaderEpoch.code, NotLeaderOrFollower.code):
            before = quorum.state
            quorum.discover(heading.leader_id, heading.epoch, heading.addresses, now_ms)
            return quorum.state is not before
        if heading.leader_id >= 0 and not quorum.has_leader:
            quorum.discover(heading.leader_id, heading.epoch, heading.addresses, now_ms)
            return True
        if error != NONE:
            return False
        if isinstance(response, VoteResponse):
            self._voting.answered(sent, response)
        elif isinstance(response, FetchResponse):
            self._following.answered(sent, response, now_ms)
        elif isinstance(response, FetchSnapshotResponse):
            self._snapshots.answered(response, now_ms)
        elif isinstance(response, EndQuorumEpochResponse) and isinstance(quorum.state, Resigned):
            quorum.state.unacknowledged.discard(sent.node_id)
        return True

    def _heading(self, sent: Send, response: Any) -> Heading:
        if isinstance(response, VoteResponse):
            return self._voting.heading(response)
        if isinstance(response, FetchResponse):
            return self._following.heading(response)
        if isinstance(response, FetchSnapshotResponse):
            return self._snapshots.heading(response)
        if isinstance(response, UpdateRaftVoterResponse):
            leader = response.current_leader
            told = (Address(self._quorum.listener_name, leader.host, leader.port),) if leader.host else ()
            return Heading(response.error_code, leader.leader_id, leader.leader_epoch, told)
        assert isinstance(response, BeginQuorumEpochResponse | EndQuorumEpochResponse), sent
        if response.error_code:
            return Heading(response.error_code, -1, -1, ())
        partition: Any = only_partition(response.topics)  # both have the same fields
        leader_id = partition.leader_id
        addresses = addresses_in(response.node_endpoints, leader_id, self._quorum.listener_name)
        return Heading(partition.error_code, leader_id, partition.leader_epoch, addresses)
