"""CreatePartitions, key 37, versions 0-3. Decided by the controller, which this broker asks.

Answers once the new partitions can be used on this broker.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError, TopicAuthorizationFailed
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ottla.server.authorization import AllowedTopics, refused_topics
from ottla.server.context import Context
from ottla.server.controller import ask_controller, seen_here


async def create_partitions(request: CreatePartitionsRequest, ctx: Context) -> CreatePartitionsResponse:
    if ctx.node.authorizer is None:
        return await _create(request, ctx)
    refused = refused_topics((topic.name for topic in request.topics), AllowedTopics(ctx, Operation.ALTER))
    request.topics = [topic for topic in request.topics if topic.name not in refused]
    response = await _create(request, ctx) if request.topics else CreatePartitionsResponse()
    response.results += [
        CreatePartitionsTopicResult(name=name, error_code=TopicAuthorizationFailed.code)
        for name in sorted(refused)
    ]
    return response


async def _create(request: CreatePartitionsRequest, ctx: Context) -> CreatePartitionsResponse:
    try:
        response: CreatePartitionsResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return CreatePartitionsResponse(
            results=[
                CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=str(error))
                for topic in request.topics
            ]
        )
    if not request.validate_only:
        await seen_here(ctx)
    return response
