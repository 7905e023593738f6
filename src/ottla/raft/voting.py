"""Elections: whom this node votes for, and how it asks for votes itself (Vote, key 52)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID
from ottla.core.types import CLUSTER_METADATA
from ottla.protocol.errors import NONE, FencedLeaderEpoch, InvalidRequest, InvalidVoterKey, KafkaError
from ottla.protocol.messages.vote import (
    NodeEndpoint,
    PartitionData,
    PartitionDataResponse,
    TopicData,
    TopicDataResponse,
    VoteRequest,
    VoteResponse,
)
from ottla.raft.effects import Send
from ottla.raft.membership import VoterKey
from ottla.raft.partition import Heading, addresses_in, check_cluster, only_partition
from ottla.raft.quorum_state import QuorumState
from ottla.raft.states import Candidate, Follower, Prospective, Resigned, Unattached


class Voting:
    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum
        # Elections lost in a row, for the pause before the next.
        self._lost = 0

    # --- as voter ------------------------------------------------------------------------------

    def vote(self, request: VoteRequest, now_ms: int) -> VoteResponse:
        try:
            check_cluster(request.cluster_id, self._quorum.cluster_id)
            partition = only_partition(request.topics)
        except KafkaError as error:
            return VoteResponse(error_code=error.code)
        try:
            granted = self._decide(request.voter_id, partition, now_ms)
        except KafkaError as error:
            return self._response(error.code, granted=False)
        return self._response(NONE, granted=granted)

    def _decide(self, voter_id: int, asked: PartitionData, now_ms: int) -> bool:
        quorum = self._quorum
        # The log of a candidate ends before its own epoch; that of one who only asks may end in it.
        highest = asked.replica_epoch if asked.pre_vote else asked.replica_epoch - 1
        if asked.last_offset < 0 or not 0 <= asked.last_offset_epoch <= highest:
            raise InvalidRequest
        if asked.replica_epoch < quorum.epoch:
            raise FencedLeaderEpoch
        if asked.replica_id < 0:
            raise InvalidRequest
        if asked.replica_epoch > quorum.epoch:
            quorum.become_unattached(asked.replica_epoch, now_ms)
        if voter_id >= 0:
            meant = (voter_id, asked.voter_directory_id)
            if meant not in ((quorum.node.id, ZERO_UUID), quorum.node):
                raise InvalidVoterKey
        replica = VoterKey(asked.replica_id, asked.replica_directory_id)
        is_up_to_date = quorum.is_up_to_date(asked.last_offset_epoch, asked.last_offset)
        if asked.pre_vote:
            return is_up_to_date and self._would_vote()
        return self._give_vote(replica, is_up_to_date, now_ms)

    def _would_vote(self) -> bool:
        """Whether an election is due as far as we can tell: not while we lead, or hear from a leader."""
        state = self._quorum.state
        if isinstance(state, Follower):
            return not state.has_fetched
        return isinstance(state, Unattached | Prospective | Candidate | Resigned)

    def _give_vote(self, replica: VoterKey, is_up_to_date: bool, now_ms: int) -> bool:
        """One vote in an epoch. It may be asked for again by the one who has it already."""
        quorum = self._quorum
        if not isinstance(quorum.state, Unattached | Prospective) or quorum.has_leader:
            return False
        if quorum.election.voted_id >= 0:
            return quorum.has_voted_for(replica)
        if is_up_to_date:
            quorum.grant_vote(replica, now_ms)
        return is_up_to_date

    def _response(self, error_code: int, *, granted: bool) -> VoteResponse:
        quorum = self._quorum
        answer = PartitionDataResponse(
            error_code=error_code,
            leader_id=quorum.leader_id,
            leader_epoch=quorum.epoch,
            vote_granted=granted,
        )
        address = quorum.choose(quorum.leader_addresses)
        return VoteResponse(
            topics=[TopicDataResponse(topic_name=CLUSTER_METADATA, partitions=[answer])],
            node_endpoints=[NodeEndpoint(node_id=quorum.leader_id, host=address.host, port=address.port)]
            if address and quorum.has_leader
            else [],
        )

    # --- as candidate --------------------------------------------------------------------------

    def poll(self, state: Prospective | Candidate, now_ms: int) -> None:
        """Count what has come in, go on or give up, and ask those who have not answered."""
        quorum = self._quorum
        if state.votes.is_won:
            if isinstance(state, Prospective):
                quorum.become_candidate(now_ms)
            else:
                self._lost = 0
                quorum.become_leader(sorted(state.votes.granted), now_ms)
        elif isinstance(state, Prospective):
            if state.votes.is_lost or now_ms >= state.deadline_ms:
                self._stand_down(state, now_ms)
            else:
                self._ask(state, now_ms)
        elif now_ms >= state.deadline_ms:
            quorum.become_prospective(now_ms)
        elif state.votes.is_lost and not state.is_backing_off:
            state.is_backing_off = True
            state.deadline_ms = min(state.deadline_ms, now_ms + self._backoff_ms())
        elif not state.is_backing_off:
            self._ask(state, now_ms)

    def deadline(self, state: Prospective | Candidate) -> int:
        """When the election ends, or when somebody who did not answer may be asked again."""
        found = state.deadline_ms
        if isinstance(state, Candidate) and state.is_backing_off:
            return found
        for node in state.votes.voters.others(self._quorum.node.id):
            address = self._quorum.choose(node.addresses)
            if address and state.votes.is_missing(node.key.id):
                ready_at = self._quorum.requests.ready_at(address, VoteRequest)
                found = found if ready_at is None else min(found, ready_at)
        return found

    def _stand_down(self, state: Prospective, now_ms: int) -> None:
        """Nobody wants an election: back to the leader if there is one, after all others do hear from it."""
        quorum = self._quorum
        if quorum.has_leader and state.leader_addresses:
            quorum.become_follower(quorum.epoch, quorum.leader_id, state.leader_addresses, now_ms)
        else:
            quorum.become_unattached(quorum.epoch, now_ms)

    def _ask(self, state: Prospective | Candidate, now_ms: int) -> None:
        quorum = self._quorum
        for node in state.votes.voters.others(quorum.node.id):
            address = quorum.choose(node.addresses)
            if (
                address is not None
                and state.votes.is_missing(node.key.id)
                and quorum.requests.is_ready(address, VoteRequest, now_ms)
            ):
                request = self._request(node.key, pre_vote=isinstance(state, Prospective))
                quorum.send(address, node.key.id, request)

    def _request(self, voter: VoterKey, *, pre_vote: bool) -> VoteRequest:
        quorum = self._quorum
        asked = PartitionData(
            replica_epoch=quorum.epoch,
            replica_id=quorum.node.id,
            replica_directory_id=quorum.node.directory_id,
            voter_directory_id=voter.directory_id,
            last_offset_epoch=quorum.log.last_epoch,
            last_offset=quorum.log.end_offset,
            pre_vote=pre_vote,
        )
        return VoteRequest(
            cluster_id=quorum.cluster_id,
            voter_id=voter.id,
            topics=[TopicData(topic_name=CLUSTER_METADATA, partitions=[asked])],
        )

    def heading(self, response: VoteResponse) -> Heading:
        if response.error_code:
            return Heading(response.error_code, -1, -1, ())
        partition = only_partition(response.topics)
        addresses = addresses_in(response.node_endpoints, partition.leader_id, self._quorum.listener_name)
        return Heading(partition.error_code, partition.leader_id, partition.leader_epoch, addresses)

    def answered(self, sent: Send, response: VoteResponse) -> None:
        """A voter's answer in our own epoch."""
        state = self._quorum.state
        assert isinstance(sent.request, VoteRequest)
        asked = sent.request.topics[0].partitions[0]
        if isinstance(state, Prospective if asked.pre_vote else Candidate):
            assert isinstance(state, Prospective | Candidate)
            state.votes.record(sent.node_id, only_partition(response.topics).vote_granted)

    def unsupported(self, now_ms: int) -> None:
        """A voter from before pre-votes: it cannot be asked beforehand."""
        if isinstance(self._quorum.state, Prospective):
            self._quorum.become_candidate(now_ms)

    def _backoff_ms(self) -> int:
        """Longer after every lost election, and drawn, so that two candidates do not meet again and again."""
        settings = self._quorum.settings
        self._lost += 1
        longest = min(settings.retry_backoff_ms << min(self._lost, 16), settings.election_backoff_max_ms)
        return int(self._quorum.chance() * longest)
