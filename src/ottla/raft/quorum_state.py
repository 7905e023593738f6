"""The state of this node in the quorum, and every way from one state to the next.

A transition that changes epoch, vote or leader is persisted before anything else happens. Epochs never go
back, a vote is given once in an epoch, and a leader that is known in an epoch stays known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ottla.core.ids import ZERO_UUID
from ottla.protocol.errors import InvalidRequest
from ottla.raft.effects import Effect, Persist, Request, Sync
from ottla.raft.election_state import NOBODY, ElectionState
from ottla.raft.leader_state import LeaderState
from ottla.raft.log import RaftLog
from ottla.raft.membership import Address, Membership, VoterKey, leader_change
from ottla.raft.request_manager import RequestManager
from ottla.raft.settings import RaftSettings
from ottla.raft.states import Candidate, Follower, Leader, Prospective, Resigned, State, Unattached, Votes
from ottla.raft.voter_set import Voters, VoterSet

# After this many fetch timeouts a follower tells the leader where it listens, if that is not known yet.
UPDATE_VOTER_FETCHES: Final = 3


class QuorumState:
    """What every part of the machine shares."""

    def __init__(
        self,
        settings: RaftSettings,
        node: VoterKey,
        log: RaftLog,
        membership: Membership,
        cluster_id: str,
        chance: Callable[[], float],
        *,
        can_vote: bool,
    ) -> None:
        self.settings = settings
        self.node = node
        self.log = log
        self.membership = membership
        self.cluster_id = cluster_id
        self.can_vote = can_vote
        self.election = ElectionState()
        self.state: State = Unattached(None)
        self.high_watermark: int | None = None
        # Everything in the log below this is on our disk.
        self.durable_end = log.end_offset
        self.requests = RequestManager(settings.request_timeout_ms, settings.retry_backoff_ms)
        self.effects: list[Effect] = []
        self._chance = chance
        self._voters = Voters(settings, membership, node, can_vote=can_vote)

    # --- what is known -------------------------------------------------------------------------

    @property
    def voters(self) -> VoterSet:
        return self._voters.current

    @property
    def is_voter(self) -> bool:
        return self.can_vote and self.voters.is_voter(self.node)

    @property
    def may_run(self) -> bool:
        """Whether this node takes part in elections as a candidate.

        One that has lost its vote does so until that is committed: it may be the only one with all that is,
        and without it nobody could be elected (section 4.2.2 of the dissertation). It needs the votes of the
        others, since its own does not count.
        """
        if self.is_voter or not self.can_vote:
            return self.is_voter
        membership = self.membership
        before = membership.voters_before or ()
        is_committed = self.high_watermark is not None and self.high_watermark > membership.last_change
        return not is_committed and any(
            (voter.voter_id, voter.voter_directory_id) == self.node for voter in before
        )

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def leader_id(self) -> int:
        return self.election.leader_id

    @property
    def has_leader(self) -> bool:
        return self.election.leader_id != NOBODY

    @property
    def leader_addresses(self) -> tuple[Address, ...]:
        if isinstance(self.state, Leader | Resigned):
            return self.settings.endpoints
        if isinstance(self.state, Follower | Prospective):
            return self.state.leader_addresses
        return ()

    @property
    def has_moved(self) -> bool:
        """Whether the voters' record in the log has other addresses for us than we have."""
        ours = self.settings.endpoints
        known = self.voters.nodes.get(self.node.id)
        is_in_log = self.membership.kraft_version >= 1 and self.membership.voters is not None
        return is_in_log and bool(ours) and known is not None and known.addresses != ours

    @property
    def listener_name(self) -> str:
        known = self.settings.endpoints or self.settings.bootstrap_servers
        return known[0].name if known else ""

    def choose(self, addresses: Sequence[Address]) -> Address | None:
        """The address on the listener that we use ourselves, else any."""
        name = self.listener_name
        return next((a for a in addresses if a.name == name), addresses[0] if addresses else None)

    def is_up_to_date(self, last_epoch: int, end_offset: int) -> bool:
        """Whether a log that ends like this has everything that ours has."""
        return (last_epoch, end_offset) >= (self.log.last_epoch, self.log.end_offset)

    def chance(self) -> float:
        return self._chance()

    # --- effects -------------------------------------------------------------------------------

    def send(self, to: Address, node_id: int, request: Request) -> None:
        self.effects.append(self.requests.send(to, node_id, request))

    def grown(self) -> None:
        """The log has new records that have to be synced."""
        self.effects.append(Sync(self.log.end_offset))

    def advance_high_watermark(self, offset: int) -> None:
        if self.high_watermark is None or offset > self.high_watermark:
            self.high_watermark = offset
            self.log.advance_high_watermark(offset)

    # --- transitions ---------------------------------------------------------------------------

    def start(self, before: ElectionState | None, now_ms: int) -> None:
        """Take up where the node stopped. A promise it made in an epoch still binds it."""
        election = before or ElectionState()
        self.election = election
        if election.epoch < self.log.last_epoch:
            self._persist(ElectionState(epoch=self.log.last_epoch))
            self.state = Unattached(self._election_deadline(now_ms))
        elif election.leader_id == self.node.id and self.is_voter:
            # It may have answered as leader of this epoch, so it cannot be trusted with a vote in it.
            self.state = Resigned(self._election_timeout(now_ms))
        elif election.leader_id != NOBODY and self.voters.addresses(election.leader_id):
            addresses = self.voters.addresses(election.leader_id)
            self.state = Follower(addresses, now_ms + self.settings.fetch_timeout_ms)
        elif election.leader_id == NOBODY and self._has_voted_for(self.node) and self.is_voter:
            self.state = Candidate(Votes(self.voters, self.node.id), self._election_timeout(now_ms))
        else:
            self.state = Unattached(self._election_deadline(now_ms))

    def become_unattached(self, epoch: int, now_ms: int, leader_id: int = NOBODY) -> None:
        """Nobody to follow: in a new epoch, or in this one, with vote and leader as they are."""
        before = self.state
        deadline = before.deadline_ms if isinstance(before, Unattached | Candidate | Resigned) else None
        if epoch > self.epoch:
            self._persist(ElectionState(epoch=epoch, leader_id=leader_id))
        elif leader_id != NOBODY:
            self._persist(self.election._replace(leader_id=leader_id))
        if not self.may_run:
            deadline = None
        elif deadline is None or deadline <= now_ms:
            deadline = self._election_timeout(now_ms)
        self._enter(Unattached(deadline))

    def grant_vote(self, candidate: VoterKey, now_ms: int) -> None:
        """Vote for another in this epoch, and give it time to win."""
        directory = candidate.directory_id
        self._persist(self.election._replace(voted_id=candidate.id, voted_directory_id=directory))
        self._enter(Unattached(self._election_deadline(now_ms)))

    def become_prospective(self, now_ms: int) -> None:
        addresses = self.leader_addresses
        votes = Votes(self.voters, self.node.id)
        self._enter(Prospective(votes, self._election_timeout(now_ms), addresses))

    def become_candidate(self, now_ms: int) -> None:
        epoch = max(self.epoch, self.log.last_epoch) + 1
        self._persist(
            ElectionState(epoch=epoch, voted_id=self.node.id, voted_directory_id=self.node.directory_id)
        )
        self._enter(Candidate(Votes(self.voters, self.node.id), self._election_timeout(now_ms)))

    def become_leader(self, granting: Sequence[int], now_ms: int) -> None:
        voters = self.voters
        # Without the vote, as Kafka writes it: who led an epoch has no vote in it after a restart either.
        self._persist(ElectionState(epoch=self.epoch, leader_id=self.node.id))
        timeout_ms = self.settings.fetch_timeout_ms
        leading = LeaderState(self.node, voters, self.log.end_offset, timeout_ms, now_ms)
        self._enter(Leader(leading))
        records = [leader_change(self.node.id, voters.ids, tuple(granting))]
        if not self.membership.is_in_log or self.has_moved:
            # The first leader writes down what formatting only put into a snapshot, in the same batch, so
            # that there is never a log with a leader and without voters. Later ones, if they have moved.
            records += self.membership.with_voter(self.node, self.settings.endpoints).records()
        for record in self.log.append_control(records, self.epoch):
            self.membership.apply(record)
        leading.persisted(self.durable_end)
        self.grown()

    def become_follower(
        self, epoch: int, leader_id: int, addresses: tuple[Address, ...], now_ms: int
    ) -> None:
        if epoch > self.epoch:
            self._persist(ElectionState(epoch=epoch, leader_id=leader_id))
        elif leader_id != self.leader_id:
            self._persist(self.election._replace(leader_id=leader_id))
        timeout_ms = self.settings.fetch_timeout_ms
        # A few fetches first: the log may already say where we are.
        update_at_ms = now_ms + UPDATE_VOTER_FETCHES * timeout_ms
        self._enter(Follower(addresses, now_ms + timeout_ms, update_voter_at_ms=update_at_ms))

    def become_resigned(self, now_ms: int) -> None:
        """Stop leading. The epoch stays ours: nobody else can lead in it."""
        assert isinstance(self.state, Leader)
        candidates = self.state.leading.successors()
        unacknowledged = {key.id for key in candidates}
        self._enter(Resigned(self._election_timeout(now_ms), candidates, unacknowledged))

    def discover(self, leader_id: int, epoch: int, addresses: tuple[Address, ...], now_ms: int) -> None:
        """Somebody says who leads an epoch, which may be newer than ours.

        Raises `InvalidRequest` if we know better: two leaders in an epoch there cannot be.
        """
        if leader_id == self.node.id:
            # We know ourselves what we lead. If it was in an epoch that we do not remember, it is over.
            leader_id = self.leader_id if epoch == self.epoch else NOBODY
        elif leader_id != NOBODY and epoch == self.epoch and self.has_leader and leader_id != self.leader_id:
            raise InvalidRequest(
                f"node {leader_id} cannot lead epoch {epoch}: that is node {self.leader_id}'s"
            )
        addresses = addresses or self.voters.addresses(leader_id)
        if epoch > self.epoch:
            if leader_id != NOBODY and addresses:
                self.become_follower(epoch, leader_id, addresses, now_ms)
            else:
                self.become_unattached(epoch, now_ms, leader_id)
            return
        # One that asks for votes because its leader was silent does not go back to it on hearsay.
        is_new = isinstance(self.state, Unattached) or not self.has_leader
        if epoch == self.epoch and is_new and leader_id not in (NOBODY, self.node.id) and addresses:
            self.become_follower(epoch, leader_id, addresses, now_ms)

    # --- details -------------------------------------------------------------------------------

    def _enter(self, state: State) -> None:
        self.state = state
        self.requests.forget()

    def _persist(self, election: ElectionState) -> None:
        assert election.epoch >= self.election.epoch, f"{election} after {self.election}"
        if election != self.election:
            self.election = election
            self.effects.append(Persist(election))

    def _has_voted_for(self, key: VoterKey) -> bool:
        voted = self.election
        return voted.voted_id == key.id and voted.voted_directory_id in (ZERO_UUID, key.directory_id)

    def has_voted_for(self, key: VoterKey) -> bool:
        """Whether our vote of this epoch is already theirs."""
        return self._has_voted_for(key)

    def _election_timeout(self, now_ms: int) -> int:
        """Drawn anew every time, so that two who tied do not tie for ever."""
        timeout_ms = self.settings.election_timeout_ms
        return now_ms + timeout_ms + int(self._chance() * timeout_ms)

    def _election_deadline(self, now_ms: int) -> int | None:
        return self._election_timeout(now_ms) if self.may_run else None
