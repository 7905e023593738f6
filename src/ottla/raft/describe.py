"""DescribeQuorum (key 55): who leads the metadata quorum, and how far each voter has come."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID
from ottla.core.types import CLUSTER_METADATA
from ottla.protocol.errors import InvalidRequest, UnknownTopicOrPartition
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionDataResponse,
    ReplicaState,
    TopicDataResponse,
)
from ottla.protocol.stored.quorum import Voter
from ottla.raft.leader import Leader


def describe_quorum(
    request: DescribeQuorumRequest,
    leader: Leader,
    voters: list[Voter],
    version: int,
    now_ms: int,
) -> DescribeQuorumResponse:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        error = InvalidRequest()
        return DescribeQuorumResponse(error_code=error.code, error_message=str(error))
    topic = request.topics[0]
    number = topic.partitions[0].partition_index
    if topic.topic_name != CLUSTER_METADATA or number != 0:
        unknown = UnknownTopicOrPartition()
        partition = PartitionDataResponse(
            partition_index=number, error_code=unknown.code, error_message=str(unknown)
        )
        return _response(topic.topic_name, partition, [])
    if version < 2:
        voters = []  # an older answer has no place for their directories and addresses
    directories = {voter.voter_id: voter.voter_directory_id for voter in voters}
    partition = PartitionDataResponse(
        partition_index=0,
        error_message=None,
        leader_id=leader.node_id,
        leader_epoch=leader.epoch,
        high_watermark=-1 if leader.high_watermark is None else leader.high_watermark,
        current_voters=[
            ReplicaState(
                replica_id=voter,
                replica_directory_id=directories.get(voter, ZERO_UUID),
                log_end_offset=end,
                # A leader is never behind itself, whatever the time.
                last_fetch_timestamp=now_ms if voter == leader.node_id else -1,
                last_caught_up_timestamp=now_ms if voter == leader.node_id else -1,
            )
            for voter, end in leader.ends.items()
        ],
    )
    nodes = [
        Node(
            node_id=voter.voter_id,
            listeners=[Listener(name=e.name, host=e.host, port=e.port) for e in voter.endpoints],
        )
        for voter in voters
    ]
    return _response(CLUSTER_METADATA, partition, nodes)


def _response(topic: str, partition: PartitionDataResponse, nodes: list[Node]) -> DescribeQuorumResponse:
    topics = [TopicDataResponse(topic_name=topic, partitions=[partition])]
    return DescribeQuorumResponse(error_message=None, topics=topics, nodes=nodes)
