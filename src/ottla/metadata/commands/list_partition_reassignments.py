"""ListPartitionReassignments (key 46): which partitions are on the move."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.metadata.image import Topic
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def list_partition_reassignments(
    state: ControllerState, request: ListPartitionReassignmentsRequest, context: Context
) -> Decision:
    found: list[tuple[Topic, Iterable[int]]]
    if request.topics is None:
        found = [(topic, topic.partitions) for topic in state.image.topics.values()]
    else:
        named = [(state.image.topics.get(asked.name), asked.partition_indexes) for asked in request.topics]
        found = [(topic, partitions) for topic, partitions in named if topic is not None]
    topics = []
    for topic, partitions in found:
        moving = [
            OngoingPartitionReassignment(
                partition_index=number,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
            for number in partitions
            if (partition := topic.partitions.get(number)) is not None and partition.is_reassigning
        ]
        if moving:
            topics.append(OngoingTopicReassignment(name=topic.name, partitions=moving))
    return Decision([], ListPartitionReassignmentsResponse(error_message=None, topics=topics))
