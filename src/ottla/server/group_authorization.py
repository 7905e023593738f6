"""What the handlers of groups, transactions and share groups ask before they do anything.

Beside `authorization.py`, and as there: a check that fails raises, and the handler answers with the error as
with any other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from ottla.core.acl import Operation, ResourceType
from ottla.core.ids import Uuid
from ottla.protocol.errors import TopicAuthorizationFailed
from ottla.server.authorization import check
from ottla.server.context import Context

T = TypeVar("T")


class TopicOfGroup(Protocol):
    name: str
    topic_id: Uuid


def check_group(ctx: Context, operation: Operation, group_id: str) -> None:
    check(ctx, operation, ResourceType.GROUP, group_id)


def check_transactional_id(ctx: Context, operation: Operation, transactional_id: str) -> None:
    check(ctx, operation, ResourceType.TRANSACTIONAL_ID, transactional_id)


def check_subscription(ctx: Context, topic_names: Iterable[str] | None) -> None:
    """Raise unless a member may see all the topics that it names."""
    if ctx.node.authorizer is not None and not all(may_describe(ctx, name) for name in topic_names or ()):
        raise TopicAuthorizationFailed


def check_described(ctx: Context, topic_names: Iterable[str]) -> None:
    """Raise unless whoever asks may see the topics of a group: otherwise it does not see the group either."""
    if ctx.node.authorizer is not None and not all(may_describe(ctx, name) for name in topic_names):
        raise TopicAuthorizationFailed(
            "The group has described topic(s) that the client is not authorized to describe."
        )


def may_describe(ctx: Context, topic: str) -> bool:
    return ctx.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic)


def split_topics(
    ctx: Context, operation: Operation, topics: list[T], name_of: Callable[[T], str | None]
) -> tuple[list[T], list[T]]:
    """The topics of a request that are allowed, and those that are not.

    One without a name, whose id is unknown, is allowed: there is another error for it.
    """
    if ctx.node.authorizer is None:
        return topics, []
    allowed: list[T] = []
    refused: list[T] = []
    for topic in topics:
        name = name_of(topic)
        is_allowed = name is None or ctx.allows(operation, ResourceType.TOPIC, name)
        (allowed if is_allowed else refused).append(topic)
    return allowed, refused


def name_of_group_topic(ctx: Context, topic: TopicOfGroup) -> str | None:
    """The name of a topic in OffsetCommit and OffsetFetch, whose later versions have its id instead."""
    return topic.name or name_by_id(ctx, topic.topic_id)


def name_by_id(ctx: Context, topic_id: Uuid) -> str | None:
    topic = ctx.node.image.topic_by_id.get(topic_id)
    return None if topic is None else topic.name
