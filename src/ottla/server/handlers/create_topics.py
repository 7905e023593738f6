"""CreateTopics, key 19, versions 0-7. Decided by the controller, which this broker asks.

Departs from Kafka in when it answers: once the new partitions can be used on this broker, not merely once
the metadata log holds them. A client that produces right after sees no UNKNOWN_TOPIC_OR_PARTITION here.
"""

from __future__ import annotations

from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.server.context import Context


async def create_topics(request: CreateTopicsRequest, ctx: Context) -> CreateTopicsResponse:
    try:
        response: CreateTopicsResponse = await ctx.node.quorum.submit(request, ctx.version)
    except KafkaError as error:
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=topic.name, error_code=error.code, error_message=str(error))
                for topic in request.topics
            ]
        )
    if not request.validate_only:
        await ctx.node.caught_up()
    return response
