"""ElectLeaders (key 43): bring the preferred leaders back, or elect anyone where nobody leads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.metadata.election import Election
from ottla.metadata.image import MetadataRecord
from ottla.metadata.leadership import change_of
from ottla.metadata.partition import NO_LEADER
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.protocol.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    KafkaError,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_KINDS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def elect_leaders(state: ControllerState, request: ElectLeadersRequest, context: Context) -> Decision:
    kind = _KINDS.get(request.election_type)
    if kind is None:
        return Decision([], ElectLeadersResponse(error_code=InvalidRequest.code))
    # Without a list, every partition is meant, and those that need nothing are not worth a line.
    everything = request.topic_partitions is None
    records: list[MetadataRecord] = []
    results = []
    for topic, partitions in _wanted(state, request):
        answers = []
        for partition in partitions:
            try:
                records.append(_elect(state, topic, partition, kind))
            except ElectionNotNeeded as error:
                if not everything:
                    answers.append(_failed(partition, error))
            except KafkaError as error:
                answers.append(_failed(partition, error))
            else:
                answers.append(PartitionResult(partition_id=partition, error_message=None))
        results.append(ReplicaElectionResult(topic=topic, partition_result=answers))
    return Decision(records, ElectLeadersResponse(replica_election_results=results), atomic=False)


def _wanted(state: ControllerState, request: ElectLeadersRequest) -> Iterator[tuple[str, list[int]]]:
    if request.topic_partitions is None:
        for topic in state.image.topics.values():
            yield topic.name, list(topic.partitions)
    else:
        for asked in request.topic_partitions:
            yield asked.topic, asked.partitions


def _elect(state: ControllerState, name: str, number: int, kind: Election) -> MetadataRecord:
    topic = state.image.topics.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"No such topic as {name}")
    partition = topic.partitions.get(number)
    if partition is None:
        raise UnknownTopicOrPartition(f"No such partition as {name}-{number}")
    if kind is Election.PREFERRED:
        if partition.leader == partition.preferred_leader:
            raise ElectionNotNeeded
    elif partition.leader != NO_LEADER:
        raise ElectionNotNeeded
    record = change_of(state, topic, number, partition, election=kind).record()
    if record is None:
        raise PreferredLeaderNotAvailable if kind is Election.PREFERRED else EligibleLeadersNotAvailable
    return record


def _failed(partition: int, error: KafkaError) -> PartitionResult:
    return PartitionResult(partition_id=partition, error_code=error.code, error_message=str(error))
