"""CreatePartitions (key 37). Topics only grow."""

from __future__ import annotations

from collections import Counter

from ottla.metadata.commands.placing import assigned, placed
from ottla.metadata.image import MetadataRecord
from ottla.metadata.state import MAX_RECORDS_PER_REQUEST, Context, ControllerState, Decision
from ottla.protocol.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    KafkaError,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(state: ControllerState, request: CreatePartitionsRequest, context: Context) -> Decision:
    records: list[MetadataRecord] = []
    results = []
    times = Counter(topic.name for topic in request.topics)
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if times[topic.name] > 1:
                raise InvalidRequest("Duplicate topic name.")
            records += _grow(state, topic, context)
        except KafkaError as error:
            results.append(
                CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=str(error))
            )
        else:
            results.append(CreatePartitionsTopicResult(name=topic.name))
    return Decision([] if request.validate_only else records, CreatePartitionsResponse(results=results))


def _grow(state: ControllerState, asked: CreatePartitionsTopic, context: Context) -> list[MetadataRecord]:
    topic = state.image.topics.get(asked.name)
    if topic is None:
        raise UnknownTopicOrPartition
    existing = len(topic.partitions)
    if asked.count == existing:
        raise InvalidPartitions(f"Topic already has {existing} partition(s).")
    if asked.count < existing:
        raise InvalidPartitions(
            f"The topic {asked.name} currently has {existing} partition(s); "
            f"{asked.count} would not be an increase."
        )
    additional = asked.count - existing
    if asked.assignments is not None and len(asked.assignments) != additional:
        raise InvalidReplicaAssignment(
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(asked.assignments)} assignment(s) were specified."
        )
    if additional > MAX_RECORDS_PER_REQUEST:
        raise PolicyViolation("Excessively large number of partitions per request.")
    replication_factor = len(next(iter(topic.partitions.values())).replicas)
    if asked.assignments is not None:
        made = [
            assigned(state, existing + number, assignment.broker_ids, replication_factor)
            for number, assignment in enumerate(asked.assignments)
        ]
    else:
        made = placed(state, additional, replication_factor, context)
    level = state.image.metadata_version
    return [partition.to_record(topic.id, existing + number, level) for number, partition in enumerate(made)]
