"""What everybody else does: finds the leader and takes over its log.

Fetch (1) as follower, and what a leader tells its voters: BeginQuorumEpoch (53), EndQuorumEpoch (54).
"""

from __future__ import annotations

from ottla.core.ids import METADATA_TOPIC_ID, ZERO_UUID
from ottla.core.types import CLUSTER_METADATA
from ottla.protocol.errors import NONE, FencedLeaderEpoch, InvalidRequest, InvalidVoterKey, KafkaError
from ottla.protocol.messages import begin_quorum_epoch as begin
from ottla.protocol.messages import end_quorum_epoch as end
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from ottla.protocol.messages.update_raft_voter import (
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
)
from ottla.raft.effects import Send
from ottla.raft.fetching_snapshots import FetchingSnapshots
from ottla.raft.log import EpochEnd, SnapshotId
from ottla.raft.membership import SUPPORTED_KRAFT_VERSIONS, Address
from ottla.raft.partition import Heading, addresses_in, check_cluster, only_partition
from ottla.raft.quorum_state import UPDATE_VOTER_FETCHES, QuorumState
from ottla.raft.states import Follower, Prospective, Unattached


class Following:
    def __init__(self, quorum: QuorumState, snapshots: FetchingSnapshots) -> None:
        self._quorum = quorum
        self._snapshots = snapshots

    # --- asking for records --------------------------------------------------------------------

    def poll(self, state: Unattached | Follower, now_ms: int) -> None:
        quorum = self._quorum
        if quorum.may_run:
            if state.deadline_ms is None:
                quorum.become_unattached(quorum.epoch, now_ms)  # a vote was given to us
                return
            if now_ms >= state.deadline_ms:
                quorum.become_prospective(now_ms)
                return
            self._update_voter(state, now_ms)
        if self._is_fetching() or quorum.durable_end < quorum.log.end_offset:
            # One fetch at a time, and only from an offset that is on our disk: it is an acknowledgement.
            return
        found = self._destination(state, now_ms)
        if found is None:
            return
        address, node_id = found
        if isinstance(state, Follower) and state.snapshot is not None and node_id == quorum.leader_id:
            quorum.send(address, node_id, self._snapshots.request(state))
        else:
            quorum.send(address, node_id, self._request())

    def _update_voter(self, state: Unattached | Follower, now_ms: int) -> None:
        """Tell the leader where we listen, if the voters' record says otherwise."""
        quorum = self._quorum
        if not isinstance(state, Follower) or now_ms < state.update_voter_at_ms:
            return
        state.update_voter_at_ms = now_ms + UPDATE_VOTER_FETCHES * quorum.settings.fetch_timeout_ms
        address = quorum.choose(state.leader_addresses)
        is_ready = address and quorum.requests.is_ready(address, UpdateRaftVoterRequest, now_ms)
        if quorum.has_moved and address is not None and is_ready:
            lowest, highest = SUPPORTED_KRAFT_VERSIONS
            request = UpdateRaftVoterRequest(
                cluster_id=quorum.cluster_id,
                current_leader_epoch=quorum.epoch,
                voter_id=quorum.node.id,
                voter_directory_id=quorum.node.directory_id,
                listeners=[
                    Listener(name=a.name, host=a.host, port=a.port) for a in quorum.settings.endpoints
                ],
                kraft_version_feature=KRaftVersionFeature(
                    min_supported_version=lowest, max_supported_version=highest
                ),
            )
            quorum.send(address, quorum.leader_id, request)

    def deadline(self, state: Unattached | Follower) -> int | None:
        quorum = self._quorum
        found = [state.deadline_ms] if quorum.may_run and state.deadline_ms is not None else []
        if quorum.may_run and isinstance(state, Follower) and quorum.has_moved:
            found.append(state.update_voter_at_ms)
        if not self._is_fetching() and quorum.durable_end >= quorum.log.end_offset:
            addresses = [address for address, _ in self._destinations(state)]
            ready = [quorum.requests.ready_at(address, FetchRequest) for address in addresses]
            found += [at for at in ready if at is not None]
        return min(found, default=None)

    def _is_fetching(self) -> bool:
        requests = self._quorum.requests
        return requests.is_awaiting(FetchRequest) or requests.is_awaiting(FetchSnapshotRequest)

    def _destinations(self, state: Unattached | Follower) -> list[tuple[Address, int]]:
        """Whom a fetch may go to: the leader, else those who may know it."""
        quorum = self._quorum
        found: list[tuple[Address, int]] = []
        if isinstance(state, Follower):
            leader = quorum.choose(state.leader_addresses)
            if leader is not None:
                found.append((leader, quorum.leader_id))
        asked = {address for address, _ in found}
        return found + [(address, id) for address, id in self.controllers() if address not in asked]

    def controllers(self) -> list[tuple[Address, int]]:
        """Where other controllers are, by what is known without a leader; -1 where the id is not."""
        quorum = self._quorum
        # The voters of our own log may have changed long ago, the servers of the configuration even before.
        known = [(address, -1) for address in quorum.settings.bootstrap_servers]
        for node in quorum.voters.others(quorum.node.id):
            address = quorum.choose(node.addresses)
            if address is not None and (address, -1) not in known:
                known.append((address, node.key.id))
        ours = {(address.host, address.port) for address in quorum.settings.endpoints}
        return [(address, id) for address, id in known if (address.host, address.port) not in ours]

    def _destination(self, state: Unattached | Follower, now_ms: int) -> tuple[Address, int] | None:
        """The leader if it answers; else anybody, at random, for it may lead no more."""
        quorum = self._quorum
        choice = self._destinations(state)
        if isinstance(state, Follower) and choice:
            leader = choice[0]
            is_silent = now_ms >= state.deadline_ms
            if not is_silent and not quorum.requests.is_backing_off(leader[0], now_ms):
                return leader
        ready = [to for to in choice if not quorum.requests.is_backing_off(to[0], now_ms)]
        return ready[int(quorum.chance() * len(ready))] if ready else None

    def _request(self) -> FetchRequest:
        quorum = self._quorum
        partition = FetchPartition(
            current_leader_epoch=quorum.epoch,
            fetch_offset=quorum.log.end_offset,
            last_fetched_epoch=quorum.log.last_epoch,
            replica_directory_id=quorum.node.directory_id,
            high_watermark=-1 if quorum.high_watermark is None else quorum.high_watermark,
        )
        return FetchRequest(
            cluster_id=quorum.cluster_id,
            replica_state=ReplicaState(replica_id=quorum.node.id),
            max_wait_ms=quorum.settings.fetch_max_wait_ms,
            max_bytes=quorum.settings.fetch_max_bytes,
            topics=[FetchTopic(topic=CLUSTER_METADATA, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )

    def is_gone(self, node_id: int, now_ms: int) -> None:
        """A node does not run. If it is our leader, whose epoch ended with it, there is nothing to wait for.

        Each voter takes a moment that is drawn, so that they do not all run at once.
        """
        quorum, state = self._quorum, self._quorum.state
        if isinstance(state, Follower) and node_id == quorum.leader_id:
            moment_ms = int(quorum.chance() * quorum.settings.election_timeout_ms) // 2
            state.deadline_ms = min(state.deadline_ms, now_ms + moment_ms)
            state.has_fetched = False

    # --- taking over records -------------------------------------------------------------------

    def heading(self, response: FetchResponse) -> Heading:
        if response.error_code:
            return Heading(response.error_code, -1, -1, ())
        partition = _partition(response)
        leader = partition.current_leader
        name = self._quorum.listener_name
        addresses = addresses_in(response.node_endpoints, leader.leader_id, name)
        return Heading(partition.error_code, leader.leader_id, leader.leader_epoch, addresses)

    def answered(self, sent: Send, response: FetchResponse, now_ms: int) -> None:
        """What the leader of our epoch answered."""
        quorum, state = self._quorum, self._quorum.state
        assert isinstance(sent.request, FetchRequest)
        asked = sent.request.topics[0].partitions[0]
        if not isinstance(state, Follower) or asked.fetch_offset != quorum.log.end_offset:
            return
        answer = _partition(response)
        if answer.diverging_epoch.epoch >= 0:
            if answer.diverging_epoch.end_offset < 0:
                raise InvalidRequest
            self._truncate(EpochEnd(answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset))
        elif answer.snapshot_id.epoch >= 0 and answer.snapshot_id.end_offset >= 0:
            self._snapshots.start(state, SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch))
        else:
            if answer.records:
                for record in quorum.log.append_as_follower(answer.records):
                    quorum.membership.apply(record)
                quorum.grown()
            if answer.high_watermark >= 0:
                quorum.advance_high_watermark(min(answer.high_watermark, quorum.log.end_offset))
        state.has_fetched = True
        state.deadline_ms = now_ms + quorum.settings.fetch_timeout_ms

    def _truncate(self, leaders: EpochEnd) -> None:
        """Cut off what the leader does not have: it was never committed."""
        quorum = self._quorum
        ours = quorum.log.end_offset_for(leaders.epoch)
        offset = ours.end_offset
        if ours.epoch == leaders.epoch:
            offset = min(offset, leaders.end_offset)
        assert offset >= (quorum.high_watermark or 0), (
            f"the leader of epoch {quorum.epoch} lacks committed records: our logs part at {offset}, "
            f"and everything below {quorum.high_watermark} is committed"
        )
        quorum.log.truncate_to(offset)
        quorum.membership.truncate_to(offset)
        quorum.durable_end = min(quorum.durable_end, offset)

    # --- what a leader tells its voters --------------------------------------------------------

    def begin_quorum_epoch(
        self, request: begin.BeginQuorumEpochRequest, now_ms: int
    ) -> begin.BeginQuorumEpochResponse:
        quorum = self._quorum
        try:
            check_cluster(request.cluster_id, quorum.cluster_id)
            partition = only_partition(request.topics)
        except KafkaError as error:
            return begin.BeginQuorumEpochResponse(error_code=error.code)
        code = NONE
        try:
            addresses = tuple(Address(e.name, e.host, e.port) for e in request.leader_endpoints)
            self._hear_of(partition.leader_id, partition.leader_epoch, addresses, now_ms)
            if isinstance(quorum.state, Prospective):
                # It is alive after all.
                found = addresses or quorum.voters.addresses(partition.leader_id)
                quorum.become_follower(quorum.epoch, partition.leader_id, found, now_ms)
            if request.voter_id >= 0:
                meant = (request.voter_id, partition.voter_directory_id)
                if meant not in ((quorum.node.id, ZERO_UUID), quorum.node):
                    raise InvalidVoterKey
        except KafkaError as error:
            code = error.code
        answer = begin.PartitionDataResponse(
            error_code=code, leader_id=quorum.leader_id, leader_epoch=quorum.epoch
        )
        return begin.BeginQuorumEpochResponse(
            topics=[begin.TopicDataResponse(topic_name=CLUSTER_METADATA, partitions=[answer])],
            node_endpoints=[
                begin.NodeEndpoint(node_id=id, host=a.host, port=a.port) for id, a in self._leader()
            ],
        )

    def end_quorum_epoch(self, request: end.EndQuorumEpochRequest, now_ms: int) -> end.EndQuorumEpochResponse:
        quorum = self._quorum
        try:
            check_cluster(request.cluster_id, quorum.cluster_id)
            partition = only_partition(request.topics)
        except KafkaError as error:
            return end.EndQuorumEpochResponse(error_code=error.code)
        code = NONE
        try:
            addresses = tuple(Address(e.name, e.host, e.port) for e in request.leader_endpoints)
            self._hear_of(partition.leader_id, partition.leader_epoch, addresses, now_ms)
            state = quorum.state
            if isinstance(state, Follower) and quorum.leader_id == partition.leader_id:
                state.deadline_ms = now_ms + self._turn_ms(partition)
                # The leader is gone by its own word, so we are in nobody's way.
                state.has_fetched = False
        except KafkaError as error:
            code = error.code
        answer = end.PartitionDataResponse(
            error_code=code, leader_id=quorum.leader_id, leader_epoch=quorum.epoch
        )
        return end.EndQuorumEpochResponse(
            topics=[end.TopicDataResponse(topic_name=CLUSTER_METADATA, partitions=[answer])],
            node_endpoints=[
                end.NodeEndpoint(node_id=id, host=a.host, port=a.port) for id, a in self._leader()
            ],
        )

    def _hear_of(self, leader_id: int, epoch: int, addresses: tuple[Address, ...], now_ms: int) -> None:
        if epoch < self._quorum.epoch:
            raise FencedLeaderEpoch
        if leader_id < 0 or leader_id == self._quorum.node.id:
            raise InvalidRequest
        self._quorum.discover(leader_id, epoch, addresses, now_ms)

    def _leader(self) -> list[tuple[int, Address]]:
        quorum = self._quorum
        address = quorum.choose(quorum.leader_addresses)
        return [(quorum.leader_id, address)] if address and quorum.has_leader else []

    def _turn_ms(self, partition: end.PartitionData) -> int:
        """How long to wait before we run for leader: not at all if we are the preferred successor."""
        node = self._quorum.node
        keys = [(c.candidate_id, c.candidate_directory_id) for c in partition.preferred_candidates]
        keys = keys or [(id, ZERO_UUID) for id in partition.preferred_successors]
        places = [place for place, key in enumerate(keys) if key in (node, (node.id, ZERO_UUID))]
        place = places[0] if places else len(keys)
        if place == 0:
            return 0
        longest = self._quorum.settings.election_backoff_max_ms
        return min(longest, (longest >> (len(keys) - 1)) << (place - 1))


def _partition(response: FetchResponse) -> PartitionData:
    if len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
        raise InvalidRequest
    return response.responses[0].partitions[0]
