"""CreateTopics (key 19)."""

from __future__ import annotations

from collections import Counter

from ottla.core.ids import ZERO_UUID
from ottla.core.types import CLUSTER_METADATA
from ottla.metadata.commands.configs import clear_elr_records, config_records
from ottla.metadata.commands.placing import assigned, placed
from ottla.metadata.image import TOPIC_RESOURCE, MetadataRecord
from ottla.metadata.partition import PartitionState
from ottla.metadata.state import MAX_RECORDS_PER_REQUEST, Context, ControllerState, Decision
from ottla.metadata.topic_names import check_topic_name, collision_key
from ottla.protocol.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    KafkaError,
    PolicyViolation,
    TopicAlreadyExists,
)
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.stored.metadata import TopicRecord


def create_topics(state: ControllerState, request: CreateTopicsRequest, context: Context) -> Decision:
    records: list[MetadataRecord] = []
    results = []
    times = Counter(topic.name for topic in request.topics)
    excessive = _partitions_asked(state, request) > MAX_RECORDS_PER_REQUEST
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if excessive:
                raise PolicyViolation("Excessively large number of partitions per request.")
            if times[topic.name] > 1:
                raise InvalidRequest("Duplicate topic name.")
            made, result = _create(state, topic, context)
        except KafkaError as error:
            results.append(
                CreatableTopicResult(name=topic.name, error_code=error.code, error_message=str(error))
            )
            continue
        if request.validate_only:
            result.topic_id = ZERO_UUID
        records += made
        results.append(result)
    return Decision([] if request.validate_only else records, CreateTopicsResponse(topics=results))


def _create(
    state: ControllerState, topic: CreatableTopic, context: Context
) -> tuple[list[MetadataRecord], CreatableTopicResult]:
    _check_name(state, topic.name)
    configs = state.configs.creation(state.image, [(config.name, config.value) for config in topic.configs])
    made = config_records(TOPIC_RESOURCE, topic.name, {}, configs, ())
    made += clear_elr_records(state, made)

    partitions = _by_hand(state, topic) if topic.assignments else _by_count(state, topic, context)
    topic_id = context.new_id()
    level = state.image.metadata_version
    # The configs stand between the topic and its partitions, so that whoever reads along knows how to
    # open a log when it comes to it.
    records: list[MetadataRecord] = [TopicRecord(name=topic.name, topic_id=topic_id), *made]
    records += [partition.to_record(topic_id, number, level) for number, partition in enumerate(partitions)]
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=None if entry.is_sensitive else entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in state.configs.topic_entries(state.image, configs)
        ],
    )
    return records, result


def _check_name(state: ControllerState, name: str) -> None:
    if name == CLUSTER_METADATA:
        raise InvalidRequest(f"Creation of internal topic {CLUSTER_METADATA} is prohibited.")
    if name in state.image.topics:
        raise TopicAlreadyExists(f"Topic '{name}' already exists.")
    check_topic_name(name)
    others = state.image.colliding.get(collision_key(name) or "")
    if others:
        raise InvalidTopic(f"Topic '{name}' collides with existing topic: {min(others)}")


def _by_hand(state: ControllerState, topic: CreatableTopic) -> list[PartitionState]:
    if topic.replication_factor != -1:
        raise InvalidRequest(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if topic.num_partitions != -1:
        raise InvalidRequest(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    made: dict[int, PartitionState] = {}
    replication_factor = None
    for assignment in topic.assignments:
        number = assignment.partition_index
        if number in made:
            raise InvalidReplicaAssignment(
                f"Found multiple manual partition assignments for partition {number}"
            )
        made[number] = assigned(state, number, assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
    if sorted(made) != list(range(len(made))):
        raise InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")
    return [made[number] for number in range(len(made))]


def _by_count(state: ControllerState, topic: CreatableTopic, context: Context) -> list[PartitionState]:
    partitions, replication_factor = topic.num_partitions, topic.replication_factor
    if replication_factor < -1 or replication_factor == 0:
        raise InvalidReplicationFactor(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    if partitions < -1 or partitions == 0:
        raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
    settings = state.settings
    if partitions == -1:
        partitions = settings.default_partitions
    if replication_factor == -1:
        replication_factor = settings.default_replication_factor
    return placed(state, partitions, replication_factor, context)


def _partitions_asked(state: ControllerState, request: CreateTopicsRequest) -> int:
    total = 0
    for topic in request.topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += state.settings.default_partitions
        elif topic.num_partitions > 0:
            total += topic.num_partitions
    return total
