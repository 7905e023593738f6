"""Snapshots between nodes, piece by piece (FetchSnapshot, key 59): sent by the leader, put together by a
follower whose log ends before the leader's begins."""

from __future__ import annotations

from ottla.core.types import CLUSTER_METADATA
from ottla.protocol.errors import (
    NONE,
    KafkaError,
    PositionOutOfRange,
    SnapshotNotFound,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
    PartitionSnapshotResponse,
    SnapshotIdResponse,
    TopicSnapshot,
    TopicSnapshotResponse,
)
from ottla.protocol.messages.fetch_snapshot import SnapshotId as WireSnapshotId
from ottla.raft.effects import LoadSnapshot
from ottla.raft.leading import Leading
from ottla.raft.log import BOOTSTRAP_SNAPSHOT, SnapshotId
from ottla.raft.membership import VoterKey
from ottla.raft.partition import Heading, addresses_in, check_cluster
from ottla.raft.quorum_state import QuorumState
from ottla.raft.states import Follower


class FetchingSnapshots:
    def __init__(self, quorum: QuorumState, leading: Leading) -> None:
        self._quorum = quorum
        self._leading = leading

    # --- as leader -----------------------------------------------------------------------------

    def fetch_snapshot(self, request: FetchSnapshotRequest, now_ms: int) -> FetchSnapshotResponse:
        try:
            check_cluster(request.cluster_id, self._quorum.cluster_id)
            asked = _asked(request)
        except UnknownTopicOrPartition as error:
            return self._response(PartitionSnapshotResponse(error_code=error.code))
        except KafkaError as error:
            return FetchSnapshotResponse(error_code=error.code)
        try:
            answer = self._read(request, asked, now_ms)
        except KafkaError as error:
            answer = PartitionSnapshotResponse(error_code=error.code)
        return self._response(answer)

    def _read(
        self, request: FetchSnapshotRequest, asked: PartitionSnapshot, now_ms: int
    ) -> PartitionSnapshotResponse:
        quorum = self._quorum
        state = self._leading.check(asked.current_leader_epoch)
        snapshot = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        size = None if snapshot == BOOTSTRAP_SNAPSHOT else quorum.log.snapshot_size(snapshot)
        if size is None:
            raise SnapshotNotFound
        if not 0 <= asked.position < size:
            raise PositionOutOfRange
        if request.replica_id >= 0:
            state.leading.heard(VoterKey(request.replica_id, asked.replica_directory_id), now_ms)
        max_bytes = min(max(request.max_bytes, 1), quorum.settings.fetch_snapshot_max_bytes)
        return PartitionSnapshotResponse(
            snapshot_id=SnapshotIdResponse(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
            size=size,
            position=asked.position,
            unaligned_records=quorum.log.read_snapshot(snapshot, asked.position, max_bytes),
        )

    def _response(self, answer: PartitionSnapshotResponse) -> FetchSnapshotResponse:
        quorum = self._quorum
        answer.current_leader = LeaderIdAndEpoch(leader_id=quorum.leader_id, leader_epoch=quorum.epoch)
        address = quorum.choose(quorum.leader_addresses)
        return FetchSnapshotResponse(
            topics=[TopicSnapshotResponse(name=CLUSTER_METADATA, partitions=[answer])],
            node_endpoints=[NodeEndpoint(node_id=quorum.leader_id, host=address.host, port=address.port)]
            if address and quorum.has_leader
            else [],
        )

    # --- as follower ---------------------------------------------------------------------------

    def start(self, state: Follower, snapshot: SnapshotId) -> None:
        """The leader has no records for us any more, only this."""
        self._quorum.log.start_snapshot(snapshot)
        state.snapshot, state.position = snapshot, 0

    def request(self, state: Follower) -> FetchSnapshotRequest:
        quorum = self._quorum
        assert state.snapshot is not None
        partition = PartitionSnapshot(
            current_leader_epoch=quorum.epoch,
            snapshot_id=WireSnapshotId(end_offset=state.snapshot.end_offset, epoch=state.snapshot.epoch),
            position=state.position,
            replica_directory_id=quorum.node.directory_id,
        )
        return FetchSnapshotRequest(
            cluster_id=quorum.cluster_id,
            replica_id=quorum.node.id,
            max_bytes=quorum.settings.fetch_snapshot_max_bytes,
            topics=[TopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])],
        )

    def heading(self, response: FetchSnapshotResponse) -> Heading:
        if response.error_code:
            return Heading(response.error_code, -1, -1, ())
        partition = _answer(response)
        leader = partition.current_leader
        name = self._quorum.listener_name
        addresses = addresses_in(response.node_endpoints, leader.leader_id, name)
        code = partition.error_code
        if code in (SnapshotNotFound.code, PositionOutOfRange.code, UnknownTopicOrPartition.code):
            code = NONE  # not an error of ours: `answered` starts over
        return Heading(code, leader.leader_id, leader.leader_epoch, addresses)

    def answered(self, response: FetchSnapshotResponse, now_ms: int) -> None:
        """A piece of the snapshot from the leader of our epoch."""
        quorum, state = self._quorum, self._quorum.state
        if not isinstance(state, Follower) or state.snapshot is None:
            return
        state.deadline_ms = now_ms + quorum.settings.fetch_timeout_ms
        answer = _answer(response)
        received = SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
        piece = answer.unaligned_records
        if answer.error_code or received != state.snapshot or answer.position != state.position or not piece:
            # The leader has a later one by now. The next fetch says which.
            state.snapshot = None
            return
        state.has_fetched = True
        quorum.log.write_snapshot(state.snapshot, piece)
        state.position += len(piece)
        if state.position >= answer.size:
            snapshot, state.snapshot = state.snapshot, None
            self._load(snapshot)

    def _load(self, snapshot: SnapshotId) -> None:
        """The log begins anew. What it held before is in the snapshot, or it was never committed."""
        quorum = self._quorum
        quorum.log.finish_snapshot(snapshot)
        quorum.log.truncate_fully(snapshot)
        quorum.membership.restart(quorum.log.snapshot_control(snapshot))
        quorum.durable_end = quorum.log.end_offset
        quorum.effects.append(LoadSnapshot(snapshot))
        quorum.advance_high_watermark(snapshot.end_offset)


def _asked(request: FetchSnapshotRequest) -> PartitionSnapshot:
    if len(request.topics) == 1 and len(request.topics[0].partitions) == 1:
        partition = request.topics[0].partitions[0]
        if request.topics[0].name == CLUSTER_METADATA and partition.partition == 0:
            return partition
    raise UnknownTopicOrPartition


def _answer(response: FetchSnapshotResponse) -> PartitionSnapshotResponse:
    if len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        raise UnknownTopicOrPartition
    return response.topics[0].partitions[0]
