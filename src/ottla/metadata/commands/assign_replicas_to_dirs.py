"""AssignReplicasToDirs (key 73): a broker says in which of its directories it put a replica (KIP-858)."""

from __future__ import annotations

from ottla.core.ids import Uuid
from ottla.metadata.image import MetadataRecord
from ottla.metadata.leadership import change_of, changes
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.metadata.versions import MV_DIRECTORY_ASSIGNMENT
from ottla.protocol.errors import (
    KafkaError,
    NotLeaderOrFollower,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from ottla.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryDataResponse,
    PartitionDataResponse,
    TopicDataResponse,
)


def assign_replicas_to_dirs(
    state: ControllerState, request: AssignReplicasToDirsRequest, context: Context
) -> Decision:
    broker = request.broker_id
    try:
        if state.image.metadata_version < MV_DIRECTORY_ASSIGNMENT:
            raise UnsupportedVersion("Directory assignment is not supported yet.")
        state.check_broker_epoch(broker, request.broker_epoch)
    except KafkaError as error:
        return Decision([], AssignReplicasToDirsResponse(error_code=error.code))
    records: list[MetadataRecord] = []
    directories = []
    for directory in request.directories:
        topics = []
        for topic in directory.topics:
            answers = []
            for partition in topic.partitions:
                answer = PartitionDataResponse(partition_index=partition.partition_index)
                answers.append(answer)
                try:
                    records += _assign(
                        state, broker, Uuid(directory.id), Uuid(topic.topic_id), partition.partition_index
                    )
                except KafkaError as error:
                    answer.error_code = error.code
            topics.append(TopicDataResponse(topic_id=topic.topic_id, partitions=answers))
        directories.append(DirectoryDataResponse(id=directory.id, topics=topics))
    return Decision(records, AssignReplicasToDirsResponse(directories=directories), atomic=False)


def _assign(
    state: ControllerState, broker: int, directory: Uuid, topic_id: Uuid, number: int
) -> list[MetadataRecord]:
    topic = state.image.topic_by_id.get(topic_id)
    if topic is None:
        raise UnknownTopicId
    partition = topic.partitions.get(number)
    if partition is None:
        raise UnknownTopicOrPartition
    if broker not in partition.replicas:
        raise NotLeaderOrFollower
    record = change_of(state, topic, number, partition, directories={broker: directory}).record()
    records: list[MetadataRecord] = [] if record is None else [record]
    if not state.image.brokers[broker].has_online(directory):
        # It put the replica into a directory that has failed since: somebody else has to lead.
        after = partition if record is None else partition.changed(record)
        records += changes(state, [(topic, number, after)], removed=broker)
    return records
