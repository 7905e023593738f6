"""Metadata, key 3, versions 0-13.

Departs from Kafka where a topic is created because a client asked for it. Kafka answers at once with
UNKNOWN_TOPIC_OR_PARTITION and lets the client ask again until the topic is there; here the answer waits for
the creation (which is short, and bounded by `AUTO_CREATION_TIMEOUT_MS`) and holds the topic, so a client's
first message does not start with a warning and a pause. When the creation is refused the topic carries the
reason, where Kafka would say UNKNOWN_TOPIC_OR_PARTITION until the client gives up.
"""

from __future__ import annotations

from typing import Final

from ottla.core.acl import Operation
from ottla.core.ids import ZERO_UUID
from ottla.core.types import INTERNAL_TOPICS
from ottla.metadata.image import Topic
from ottla.protocol.errors import (
    InvalidRequest,
    KafkaError,
    LeaderNotAvailable,
    ListenerNotFound,
    ReplicaNotAvailable,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    error_class,
)
from ottla.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.runtime.internal_topics import creatable_topic
from ottla.server import authorized_operations
from ottla.server.authorization import AllowedTopics
from ottla.server.brokers import NO_BROKER, Brokers
from ottla.server.context import Context
from ottla.server.controller import ask_controller, seen_here
from ottla.server.hosting import why_missing

AUTO_CREATION_TIMEOUT_MS: Final = 5_000
CREATE_TOPICS_VERSION: Final = 7


async def metadata(request: MetadataRequest, ctx: Context) -> MetadataResponse:
    node, version = ctx.node, ctx.version
    wanted = request.topics
    if wanted is None or (version == 0 and not wanted):
        missing: list[MetadataResponseTopic] = []
        found = list(node.image.topics.values())
        if node.authorizer is not None:
            describable = AllowedTopics(ctx, Operation.DESCRIBE)
            found = [topic for topic in found if describable[topic.name]]
    else:
        try:
            _check_names(wanted, version)
        except InvalidRequest as error:
            return _refused(wanted, error)
        found, missing = _find(wanted, ctx)
        if missing and request.allow_auto_topic_creation and node.settings.auto_create_topics_enable:
            _refuse_creation(missing, ctx)
            found += await _create(missing, ctx)
            missing = [topic for topic in missing if topic.error_code]
    brokers = Brokers(node.image, ctx.connection.listener_name)
    topics = [_topic(topic, brokers, version) for topic in found] + missing
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None and topic.error_code != TopicAuthorizationFailed.code:
                topic.topic_authorized_operations = authorized_operations.on_topic(ctx, topic.name)
    response = MetadataResponse(
        brokers=_brokers(brokers, ctx),
        cluster_id=node.cluster_id,
        controller_id=brokers.controller_id(node),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_operations.on_cluster(ctx)
    return response


def _check_names(wanted: list[MetadataRequestTopic], version: int) -> None:
    if version >= 12:
        return
    for topic in wanted:
        # Versions 10 and 11 have the fields but not yet the meaning.
        if topic.name is None:
            raise InvalidRequest(f"Topic name can not be null for version {version}")
        if topic.topic_id != ZERO_UUID:
            raise InvalidRequest(f"Topic IDs are not supported in requests for version {version}")


def _find(
    wanted: list[MetadataRequestTopic], ctx: Context
) -> tuple[list[Topic], list[MetadataResponseTopic]]:
    """The topics that exist, and an answer for each that does not. Each is answered once.

    One id among the topics makes the whole request one by id, in which names count for nothing. A name that
    may not be described is answered without a look whether it exists; an id is no secret.
    """
    image = ctx.node.image
    describable = AllowedTopics(ctx, Operation.DESCRIBE)
    found: dict[str, Topic] = {}
    missing: list[MetadataResponseTopic] = []
    ids = dict.fromkeys(topic.topic_id for topic in wanted if topic.topic_id != ZERO_UUID)
    if ids:
        for topic_id in ids:
            topic = image.topic_by_id.get(topic_id)
            if topic is None:
                missing.append(
                    MetadataResponseTopic(error_code=UnknownTopicId.code, name=None, topic_id=topic_id)
                )
            elif not describable[topic.name]:
                missing.append(
                    MetadataResponseTopic(
                        error_code=TopicAuthorizationFailed.code, name=None, topic_id=topic_id
                    )
                )
            else:
                found[topic.name] = topic
        return list(found.values()), missing
    for name in dict.fromkeys(topic.name or "" for topic in wanted):
        if not describable[name]:
            missing.append(MetadataResponseTopic(error_code=TopicAuthorizationFailed.code, name=name))
            continue
        topic = image.topics.get(name)
        # A topic shows once its first partition does.
        if topic is not None and topic.partitions:
            found[topic.name] = topic
        else:
            missing.append(
                MetadataResponseTopic(
                    error_code=why_missing(name).code,
                    name=name,
                    is_internal=name in INTERNAL_TOPICS,
                )
            )
    return list(found.values()), missing


def _refuse_creation(missing: list[MetadataResponseTopic], ctx: Context) -> None:
    if ctx.allows_on_cluster(Operation.CREATE):
        return
    creatable = AllowedTopics(ctx, Operation.CREATE)
    for topic in missing:
        if topic.name is not None and not creatable[topic.name]:
            topic.error_code = TopicAuthorizationFailed.code


async def _create(missing: list[MetadataResponseTopic], ctx: Context) -> list[Topic]:
    """Create what can be; clears the error of those that are there now, and answers with them."""
    node = ctx.node
    wanted = {
        topic.name: topic
        for topic in missing
        if topic.name is not None and topic.error_code == UnknownTopicOrPartition.code
    }
    if not wanted:
        return []
    request = CreateTopicsRequest(
        topics=[creatable_topic(name, node.settings) for name in wanted], timeout_ms=AUTO_CREATION_TIMEOUT_MS
    )
    try:
        response: CreateTopicsResponse = await ask_controller(request, ctx, CREATE_TOPICS_VERSION)
        await seen_here(ctx)
    except KafkaError:
        return []  # the controller cannot be asked now; the client asks again as it would ask Kafka
    created = []
    for result in response.topics:
        topic = node.image.topics.get(result.name)
        if topic is not None and result.error_code in (0, TopicAlreadyExists.code):
            wanted[result.name].error_code = 0
            created.append(topic)
        elif result.error_code and not error_class(result.error_code).retriable:
            wanted[result.name].error_code = result.error_code
    return created


def _brokers(brokers: Brokers, ctx: Context) -> list[MetadataResponseBroker]:
    answer = []
    for broker in brokers.alive.values():
        host, port = ctx.node.broker_endpoint(broker, ctx.connection)
        answer.append(MetadataResponseBroker(node_id=broker.id, host=host, port=port, rack=broker.rack))
    return answer


def _topic(topic: Topic, brokers: Brokers, version: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=_partitions(topic, brokers, version),
    )


def _partitions(topic: Topic, brokers: Brokers, version: int) -> list[MetadataResponsePartition]:
    answer = []
    reachable = brokers.reachable
    for index, state in topic.partitions.items():
        leader = state.leader
        partition = MetadataResponsePartition(
            partition_index=index,
            leader_id=leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=brokers.listed(state.replicas),
            isr_nodes=brokers.listed(state.isr),
            offline_replicas=brokers.offline(state),
        )
        if version == 0:
            _leave_out_unavailable(partition, brokers)
        if leader not in reachable:
            partition.error_code = _no_leader(leader, version, brokers)
            partition.leader_id = NO_BROKER
        answer.append(partition)
    return answer


def _leave_out_unavailable(partition: MetadataResponsePartition, brokers: Brokers) -> None:
    """Version 0 shows only replicas that are alive, and says when these are not all."""
    alive = brokers.alive
    replicas = [replica for replica in partition.replica_nodes if replica in alive]
    isr = [replica for replica in partition.isr_nodes if replica in alive]
    if len(replicas) < len(partition.replica_nodes) or len(isr) < len(partition.isr_nodes):
        partition.error_code = ReplicaNotAvailable.code
    partition.replica_nodes, partition.isr_nodes = replicas, isr


def _no_leader(leader: int, version: int, brokers: Brokers) -> int:
    """A leader that is registered but has no such listener is a mistake in its settings; clients that can
    tell (from version 6) are told so."""
    if version >= 6 and leader in brokers.registered:
        return ListenerNotFound.code
    return LeaderNotAvailable.code


def _refused(wanted: list[MetadataRequestTopic], error: KafkaError) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=error.code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in wanted
        ],
        error_code=error.code,
    )
