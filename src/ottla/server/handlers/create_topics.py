"""CreateTopics, key 19, versions 0-7. Decided by the controller, which this broker asks.

Departs from Kafka in when it answers: once the new partitions can be used on this broker, not merely once
the metadata log holds them. A client that produces right after sees no UNKNOWN_TOPIC_OR_PARTITION here.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.core.types import CLUSTER_METADATA
from ottla.protocol.errors import KafkaError, TopicAuthorizationFailed
from ottla.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.server.authorization import AllowedTopics, refused_topics
from ottla.server.context import Context
from ottla.server.controller import ask_controller, seen_here


async def create_topics(request: CreateTopicsRequest, ctx: Context) -> CreateTopicsResponse:
    if ctx.node.authorizer is None:
        return await _create(request, ctx)
    refused = _refused(request, ctx)
    request.topics = [topic for topic in request.topics if topic.name not in refused]
    response = await _create(request, ctx) if request.topics else CreateTopicsResponse()
    _hide_configs(response, ctx)
    response.topics += [
        CreatableTopicResult(
            name=name, error_code=TopicAuthorizationFailed.code, error_message="Authorization failed."
        )
        for name in sorted(refused)
    ]
    return response


def _refused(request: CreateTopicsRequest, ctx: Context) -> set[str]:
    if ctx.allows_on_cluster(Operation.CREATE):
        return set()
    names = (topic.name for topic in request.topics)
    # Nobody may create the metadata log, which the controller says to everybody.
    return refused_topics(names, AllowedTopics(ctx, Operation.CREATE)) - {CLUSTER_METADATA}


def _hide_configs(response: CreateTopicsResponse, ctx: Context) -> None:
    """To create a topic is one right, to see how it is set another."""
    visible = AllowedTopics(ctx, Operation.DESCRIBE_CONFIGS)
    for topic in response.topics:
        if not topic.error_code and not visible[topic.name]:
            topic.topic_config_error_code = TopicAuthorizationFailed.code
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []


async def _create(request: CreateTopicsRequest, ctx: Context) -> CreateTopicsResponse:
    try:
        response: CreateTopicsResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=topic.name, error_code=error.code, error_message=str(error))
                for topic in request.topics
            ]
        )
    if not request.validate_only:
        await seen_here(ctx)
    return response
