"""DescribeQuorum (key 55): who leads the metadata quorum, and how far each voter has come."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID
from ottla.core.types import CLUSTER_METADATA
from ottla.protocol.errors import InvalidRequest, KafkaError, NotLeaderOrFollower, UnknownTopicOrPartition
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionDataResponse,
    ReplicaState,
    TopicDataResponse,
)
from ottla.raft.leader_state import ReplicaState as Replica
from ottla.raft.quorum_state import QuorumState
from ottla.raft.states import Leader


def describe(
    request: DescribeQuorumRequest, quorum: QuorumState, version: int, now_ms: int, wall_ms: int
) -> DescribeQuorumResponse:
    """As the leader sees the quorum. Its own times are monotonic, those it tells are of the wall clock."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        error = InvalidRequest()
        return DescribeQuorumResponse(error_code=error.code, error_message=str(error))
    topic = request.topics[0]
    number = topic.partitions[0].partition_index
    refusal: KafkaError | None = None
    if topic.topic_name != CLUSTER_METADATA or number != 0:
        refusal = UnknownTopicOrPartition()
    elif not isinstance(quorum.state, Leader):
        refusal = NotLeaderOrFollower()
    if refusal is not None:
        partition = PartitionDataResponse(
            partition_index=number,
            error_code=refusal.code,
            error_message=str(refusal),
            leader_id=quorum.leader_id,
            leader_epoch=quorum.epoch,
        )
        return _response(topic.topic_name, partition, [])
    assert isinstance(quorum.state, Leader)
    leading = quorum.state.leading
    leading.forget_silent_observers(now_ms)

    def told(replica: Replica) -> ReplicaState:
        is_me = replica.key.id == quorum.node.id

        def on_the_wall(at_ms: int) -> int:
            # A leader is never behind itself, whatever the time.
            return wall_ms if is_me else -1 if at_ms < 0 else wall_ms - (now_ms - at_ms)

        return ReplicaState(
            replica_id=replica.key.id,
            # An older answer has no place for directories.
            replica_directory_id=replica.key.directory_id if version >= 2 else ZERO_UUID,
            log_end_offset=quorum.log.end_offset if is_me else replica.end_offset,
            last_fetch_timestamp=on_the_wall(replica.last_fetch_ms),
            last_caught_up_timestamp=on_the_wall(replica.last_caught_up_ms),
        )

    known = leading.high_watermark
    partition = PartitionDataResponse(
        partition_index=0,
        error_message=None,
        leader_id=quorum.node.id,
        leader_epoch=quorum.epoch,
        high_watermark=-1 if known is None else known,
        current_voters=[told(replica) for replica in leading.voters.values()],
        observers=[told(replica) for replica in leading.observers.values()],
    )
    nodes = [
        Node(
            node_id=node.key.id,
            listeners=[Listener(name=a.name, host=a.host, port=a.port) for a in node.addresses],
        )
        for node in quorum.voters.nodes.values()
    ]
    return _response(CLUSTER_METADATA, partition, nodes if version >= 2 else [])


def _response(topic: str, partition: PartitionDataResponse, nodes: list[Node]) -> DescribeQuorumResponse:
    topics = [TopicDataResponse(topic_name=topic, partitions=[partition])]
    return DescribeQuorumResponse(error_message=None, topics=topics, nodes=nodes)
