"""DeleteTopics, key 20, versions 0-6 (topic ids from 6). Decided by the controller, which this broker asks.

Answers once this broker has let the partitions go, so that Metadata asked right after no longer shows them.
"""

from __future__ import annotations

from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from ottla.server.context import Context


async def delete_topics(request: DeleteTopicsRequest, ctx: Context) -> DeleteTopicsResponse:
    try:
        response: DeleteTopicsResponse = await ctx.node.quorum.submit(request, ctx.version)
    except KafkaError as error:
        return _refused(request, ctx.version, error)
    await ctx.node.caught_up()
    return response


def _refused(request: DeleteTopicsRequest, version: int, error: KafkaError) -> DeleteTopicsResponse:
    if version >= 6:
        asked = [DeletableTopicResult(name=topic.name, topic_id=topic.topic_id) for topic in request.topics]
    else:
        asked = [DeletableTopicResult(name=name) for name in request.topic_names]
    for topic in asked:
        topic.error_code = error.code
        topic.error_message = str(error)
    return DeleteTopicsResponse(responses=asked)
