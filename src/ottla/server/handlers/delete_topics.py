"""DeleteTopics, key 20, versions 0-6 (topic ids from 6). Decided by the controller, which this broker asks.

Answers once this broker has let the partitions go, so that Metadata asked right after no longer shows them.
"""

from __future__ import annotations

from collections import Counter

from ottla.core.acl import Operation
from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.errors import (
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.server.authorization import AllowedTopics
from ottla.server.context import Context
from ottla.server.controller import ask_controller, seen_here


async def delete_topics(request: DeleteTopicsRequest, ctx: Context) -> DeleteTopicsResponse:
    if ctx.node.authorizer is None or ctx.allows_on_cluster(Operation.DELETE):
        return await _delete(request, ctx)
    allowed, refused = _Rights(ctx).split(_asked(request, ctx.version))
    response = DeleteTopicsResponse()
    if allowed:
        if ctx.version >= 6:
            request.topics = allowed
        else:
            request.topic_names = [topic.name or "" for topic in allowed]
        response = await _delete(request, ctx)
    response.responses += refused
    return response


async def _delete(request: DeleteTopicsRequest, ctx: Context) -> DeleteTopicsResponse:
    try:
        response: DeleteTopicsResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return DeleteTopicsResponse(
            responses=[_refused(topic, error) for topic in _asked(request, ctx.version)]
        )
    await seen_here(ctx)
    return response


def _asked(request: DeleteTopicsRequest, version: int) -> list[DeleteTopicState]:
    if version >= 6:
        return request.topics
    return [DeleteTopicState(name=name) for name in request.topic_names]


def _refused(asked: DeleteTopicState, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=asked.name, topic_id=asked.topic_id, error_code=error.code, error_message=str(error)
    )


class _Rights:
    """What of a request may be deleted, told from this broker's image.

    What the image does not have is not passed on in hope: the controller may know it already, and does not
    ask who may delete it.
    """

    def __init__(self, ctx: Context) -> None:
        self._image = ctx.node.image
        self._describable = AllowedTopics(ctx, Operation.DESCRIBE)
        self._deletable = AllowedTopics(ctx, Operation.DELETE)

    def split(
        self, topics: list[DeleteTopicState]
    ) -> tuple[list[DeleteTopicState], list[DeletableTopicResult]]:
        """What to hand to the controller, and the answers for the rest.

        Handed over is also what is wrong with the request whoever sent it: a topic that is named twice, or by
        name and id, or by neither.
        """
        names = Counter(topic.name for topic in topics)
        ids = Counter(topic.topic_id for topic in topics)
        allowed = []
        refused = []
        for topic in topics:
            error: KafkaError | None = None
            if topic.name is None:
                if topic.topic_id != ZERO_UUID and ids[topic.topic_id] == 1:
                    error = self._why_not_id(topic.topic_id)
            elif topic.topic_id == ZERO_UUID and names[topic.name] == 1:
                error = self._why_not_name(topic.name)
            if error is None:
                allowed.append(topic)
            else:
                answer = _refused(topic, error)
                if topic.name is None:
                    answer.name = self._name_shown(topic.topic_id)
                refused.append(answer)
        return allowed, refused

    def _why_not_name(self, name: str) -> KafkaError | None:
        if self._deletable[name]:
            return None
        # Whoever may not describe a topic is not told whether there is one.
        if self._describable[name] and name not in self._image.topics:
            return UnknownTopicOrPartition()
        return TopicAuthorizationFailed()

    def _why_not_id(self, topic_id: Uuid) -> KafkaError | None:
        topic = self._image.topic_by_id.get(topic_id)
        if topic is None:
            return UnknownTopicId()
        return None if self._deletable[topic.name] else TopicAuthorizationFailed()

    def _name_shown(self, topic_id: Uuid) -> str | None:
        topic = self._image.topic_by_id.get(topic_id)
        return topic.name if topic is not None and self._describable[topic.name] else None
