"""CreatePartitions, key 37, versions 0-3. Decided by the controller, which this broker asks.

Answers once the new partitions can be used on this broker.
"""

from __future__ import annotations

from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ottla.server.context import Context


async def create_partitions(request: CreatePartitionsRequest, ctx: Context) -> CreatePartitionsResponse:
    try:
        response: CreatePartitionsResponse = await ctx.node.quorum.submit(request, ctx.version)
    except KafkaError as error:
        return CreatePartitionsResponse(
            results=[
                CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=str(error))
                for topic in request.topics
            ]
        )
    if not request.validate_only:
        await ctx.node.caught_up()
    return response
