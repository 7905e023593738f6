"""What a leader does: announces its epoch, answers fetches, commits, and steps down when it is alone.

BeginQuorumEpoch (53) and EndQuorumEpoch (54) as sender, Fetch (1) of the metadata log as leader.
"""

from __future__ import annotations

from ottla.core.ids import METADATA_TOPIC_ID
from ottla.core.types import CLUSTER_METADATA
from ottla.protocol.errors import (
    NONE,
    FencedLeaderEpoch,
    InvalidRequest,
    KafkaError,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from ottla.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    LeaderEndpoint,
)
from ottla.protocol.messages.begin_quorum_epoch import PartitionData as BeginPartition
from ottla.protocol.messages.begin_quorum_epoch import TopicData as BeginTopic
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, ReplicaInfo
from ottla.protocol.messages.end_quorum_epoch import LeaderEndpoint as EndEndpoint
from ottla.protocol.messages.end_quorum_epoch import PartitionData as EndPartition
from ottla.protocol.messages.end_quorum_epoch import TopicData as EndTopic
from ottla.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from ottla.raft.log import EpochEnd
from ottla.raft.log import SnapshotId as LogSnapshotId
from ottla.raft.membership import VoterKey
from ottla.raft.partition import check_cluster, fetched_partition
from ottla.raft.quorum_state import QuorumState
from ottla.raft.states import Leader, Resigned


class Leading:
    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum

    # --- keeping the lead ----------------------------------------------------------------------

    def poll(self, state: Leader, now_ms: int) -> None:
        quorum, leading = self._quorum, state.leading
        if now_ms >= leading.check_quorum_at_ms and not quorum.voters.is_only_voter(quorum.node):
            # A majority may have elected somebody else by now.
            quorum.become_resigned(now_ms)
            return
        for node in quorum.voters.others(quorum.node.id):
            replica, address = leading.voters[node.key.id], quorum.choose(node.addresses)
            if (
                now_ms >= self._begin_epoch_at(state, node.key.id)
                and address is not None
                and quorum.requests.is_ready(address, BeginQuorumEpochRequest, now_ms)
            ):
                replica.begin_epoch_at_ms = now_ms + quorum.settings.fetch_timeout_ms // 2
                quorum.send(address, node.key.id, self._begin_request(node.key))

    def deadline(self, state: Leader) -> int | None:
        quorum = self._quorum
        found = []
        for node in quorum.voters.others(quorum.node.id):
            address = quorum.choose(node.addresses)
            ready_at = address and quorum.requests.ready_at(address, BeginQuorumEpochRequest)
            if ready_at is not None:
                found.append(max(self._begin_epoch_at(state, node.key.id), ready_at))
        if not quorum.voters.is_only_voter(quorum.node):
            found.append(state.leading.check_quorum_at_ms)
        return min(found, default=None)

    def _begin_epoch_at(self, state: Leader, voter: int) -> int:
        """When a voter has to be told that we lead. One that fetches knows."""
        replica = state.leading.voters[voter]
        if replica.last_fetch_ms < 0:
            return replica.begin_epoch_at_ms
        return max(
            replica.begin_epoch_at_ms, replica.last_fetch_ms + self._quorum.settings.fetch_timeout_ms // 2
        )

    def _begin_request(self, voter: VoterKey) -> BeginQuorumEpochRequest:
        quorum = self._quorum
        partition = BeginPartition(
            voter_directory_id=voter.directory_id, leader_id=quorum.node.id, leader_epoch=quorum.epoch
        )
        return BeginQuorumEpochRequest(
            cluster_id=quorum.cluster_id,
            voter_id=voter.id,
            topics=[BeginTopic(topic_name=CLUSTER_METADATA, partitions=[partition])],
            leader_endpoints=[
                LeaderEndpoint(name=a.name, host=a.host, port=a.port) for a in quorum.settings.endpoints
            ],
        )

    # --- giving it up --------------------------------------------------------------------------

    def poll_resigned(self, state: Resigned, now_ms: int) -> None:
        quorum = self._quorum
        if now_ms >= state.deadline_ms:
            # In this epoch there is no other leader, so look for one in the next. Nobody is harmed by that.
            quorum.become_unattached(quorum.epoch + 1, now_ms)
            return
        for node in quorum.voters.others(quorum.node.id):
            address = quorum.choose(node.addresses)
            if (
                node.key.id in state.unacknowledged
                and address is not None
                and quorum.requests.is_ready(address, EndQuorumEpochRequest, now_ms)
            ):
                quorum.send(address, node.key.id, self._end_request(state))

    def resigned_deadline(self, state: Resigned) -> int:
        quorum = self._quorum
        found = state.deadline_ms
        for node in quorum.voters.others(quorum.node.id):
            address = quorum.choose(node.addresses)
            if node.key.id in state.unacknowledged and address is not None:
                ready_at = quorum.requests.ready_at(address, EndQuorumEpochRequest)
                found = found if ready_at is None else min(found, ready_at)
        return found

    def _end_request(self, state: Resigned) -> EndQuorumEpochRequest:
        quorum = self._quorum
        partition = EndPartition(
            leader_id=quorum.node.id,
            leader_epoch=quorum.epoch,
            preferred_successors=[key.id for key in state.candidates],
            preferred_candidates=[
                ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
                for key in state.candidates
            ],
        )
        return EndQuorumEpochRequest(
            cluster_id=quorum.cluster_id,
            topics=[EndTopic(topic_name=CLUSTER_METADATA, partitions=[partition])],
            leader_endpoints=[
                EndEndpoint(name=a.name, host=a.host, port=a.port) for a in quorum.settings.endpoints
            ],
        )

    # --- committing ----------------------------------------------------------------------------

    def persisted(self, state: Leader) -> None:
        """Our own log is on disk up to `durable_end`."""
        state.leading.persisted(self._quorum.durable_end)
        self._commit(state)

    def _commit(self, state: Leader) -> None:
        if state.leading.update_high_watermark():
            assert state.leading.high_watermark is not None
            self._quorum.advance_high_watermark(state.leading.high_watermark)

    # --- answering fetches ---------------------------------------------------------------------

    def check(self, epoch: int) -> Leader:
        """Whoever asks a leader has to mean this one, in this epoch."""
        quorum = self._quorum
        if epoch < quorum.epoch:
            raise FencedLeaderEpoch
        if epoch > quorum.epoch:
            raise UnknownLeaderEpoch
        if not isinstance(quorum.state, Leader):
            raise NotLeaderOrFollower
        return quorum.state

    def fetch(self, request: FetchRequest, now_ms: int, *, waited: bool) -> FetchResponse | None:
        try:
            check_cluster(request.cluster_id, self._quorum.cluster_id)
            asked = fetched_partition(request)
            if min(asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch) < 0:
                raise InvalidRequest
        except KafkaError as error:
            return FetchResponse(error_code=error.code)
        named = request.replica_state.replica_id
        replica = VoterKey(named if named >= 0 else request.replica_id, asked.replica_directory_id)
        try:
            state = self.check(asked.current_leader_epoch)
            if replica.id == self._quorum.node.id:
                raise InvalidRequest
            answer = self._read(state, replica, asked, request.max_bytes, now_ms)
        except KafkaError as error:
            answer = PartitionData(error_code=error.code)
        if not waited and request.max_wait_ms > 0 and self._is_nothing_new(answer, asked):
            return None
        return self._response(answer)

    def _read(
        self, state: Leader, replica: VoterKey, asked: FetchPartition, max_bytes: int, now_ms: int
    ) -> PartitionData:
        """Where the follower's log continues in ours, or where it parts from it."""
        log, leading = self._quorum.log, state.leading
        answer = PartitionData()
        found = self._compare(asked.fetch_offset, asked.last_fetched_epoch)
        if isinstance(found, LogSnapshotId):
            answer.snapshot_id = SnapshotId(end_offset=found.end_offset, epoch=found.epoch)
        elif found is not None:
            answer.diverging_epoch = EpochEndOffset(epoch=found.epoch, end_offset=found.end_offset)
        else:
            if replica.id >= 0:
                # The fetch offset is the follower's word that everything before it is on its disk.
                leading.replica(replica).fetched(asked.fetch_offset, log.end_offset, now_ms)
                self._commit(state)
            if asked.fetch_offset < log.end_offset:
                limit = min(max_bytes, self._quorum.settings.fetch_max_bytes)
                answer.records = log.read(asked.fetch_offset, max(limit, 1), log.end_offset)
        if replica.id >= 0:
            leading.heard(replica, now_ms)
        return answer

    def _compare(self, offset: int, epoch: int) -> LogSnapshotId | EpochEnd | None:
        """What keeps a log that ends like this from going on with ours; None if nothing does."""
        log = self._quorum.log
        earliest, latest = log.earliest_snapshot, log.latest_snapshot
        if offset == 0 and latest is not None and latest.end_offset > 0:
            # It has nothing at all: the snapshot is the shorter way.
            return latest
        if offset == 0 and log.start_offset == 0:
            return None
        if earliest is not None and latest is not None:
            is_other = (
                offset == log.start_offset and offset == earliest.end_offset and epoch != earliest.epoch
            )
            if offset < log.start_offset or is_other or epoch < earliest.epoch:
                return latest
        end = log.end_offset_for(epoch)
        return None if end.epoch == epoch and end.end_offset >= offset else end

    def _is_nothing_new(self, answer: PartitionData, asked: FetchPartition) -> bool:
        known = self._quorum.state.leading.high_watermark if isinstance(self._quorum.state, Leader) else None
        return (
            answer.error_code == NONE
            and answer.records is None
            and answer.snapshot_id.end_offset < 0
            and answer.diverging_epoch.epoch < 0
            and (known is None or known <= asked.high_watermark)
        )

    def _response(self, answer: PartitionData) -> FetchResponse:
        quorum = self._quorum
        known = quorum.state.leading.high_watermark if isinstance(quorum.state, Leader) else None
        answer.high_watermark = -1 if known is None else known
        answer.log_start_offset = quorum.log.start_offset
        answer.current_leader = LeaderIdAndEpoch(leader_id=quorum.leader_id, leader_epoch=quorum.epoch)
        answer.records = answer.records or b""
        address = quorum.choose(quorum.leader_addresses)
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=CLUSTER_METADATA, topic_id=METADATA_TOPIC_ID, partitions=[answer]
                )
            ],
            node_endpoints=[NodeEndpoint(node_id=quorum.leader_id, host=address.host, port=address.port)]
            if address and quorum.has_leader
            else [],
        )
