"""AlterPartitionReassignments (key 45): move partitions to other brokers, or give up a move.

A move adds the new replicas to the old ones, waits until all the new ones are in sync, and then drops the
old ones. The last step is taken by whatever change completes the in-sync set, see `election.PartitionChange`.
"""

from __future__ import annotations

from ottla.metadata.commands.placing import check_assignment
from ottla.metadata.election import Election
from ottla.metadata.image import MetadataRecord, Topic
from ottla.metadata.leadership import change_of
from ottla.metadata.partition import PartitionState
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.protocol.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    KafkaError,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def alter_partition_reassignments(
    state: ControllerState, request: AlterPartitionReassignmentsRequest, context: Context
) -> Decision:
    records: list[MetadataRecord] = []
    responses = []
    may_change_factor = request.allow_replication_factor_change
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = ReassignablePartitionResponse(partition_index=asked.partition_index, error_message=None)
            answers.append(answer)
            try:
                record = _reassign(state, topic.name, asked, may_change_factor)
            except KafkaError as error:
                answer.error_code, answer.error_message = error.code, str(error)
            else:
                if record is not None:
                    records.append(record)
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=answers))
    return Decision(
        records,
        AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=may_change_factor, error_message=None, responses=responses
        ),
    )


def _reassign(
    state: ControllerState, name: str, asked: ReassignablePartition, may_change_factor: bool
) -> MetadataRecord | None:
    topic = state.image.topics.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        raise UnknownTopicOrPartition(f"Unable to find partition {name}:{asked.partition_index}.")
    if asked.replicas is None:
        return _cancel(state, topic, asked.partition_index, partition)
    check_assignment(state, asked.replicas, None)
    if not may_change_factor:
        _check_factor(partition, asked.replicas)
    target = tuple(asked.replicas)
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    return change_of(
        state,
        topic,
        asked.partition_index,
        partition,
        replicas=target + removing,
        removing=removing or None,
        adding=adding or None,
    ).record()


def _check_factor(partition: PartitionState, target: list[int]) -> None:
    current = len((set(partition.replicas) | set(partition.adding)) - set(partition.removing))
    if current != len(target):
        raise InvalidReplicationFactor(f"The replication factor is changed from {current} to {len(target)}")


def _cancel(
    state: ControllerState, topic: Topic, number: int, partition: PartitionState
) -> MetadataRecord | None:
    """Back to the replicas before the move: those it was adding go, those it was removing stay."""
    if not partition.is_reassigning:
        raise NoReassignmentInProgress
    replicas = tuple(r for r in partition.replicas if r not in partition.adding)
    isr = tuple(r for r in partition.isr if r not in partition.adding)
    may_be_unclean = state.is_unclean_election_enabled(topic.name)
    if not isr:
        if not replicas:
            raise InvalidReplicaAssignment(
                "Invalid replica assignment: addingReplicas contains all replicas."
            )
        if not may_be_unclean:
            raise InvalidReplicaAssignment(
                f"Unable to revert partition assignment for {topic.name}:{number} because it would "
                "require an unclean leader election."
            )
        isr = replicas[:1]
    return change_of(
        state,
        topic,
        number,
        partition,
        election=Election.UNCLEAN if may_be_unclean else Election.ONLINE,
        isr=isr,
        replicas=replicas,
        removing=(),
        adding=(),
    ).record()
