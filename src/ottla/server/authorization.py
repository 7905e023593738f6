"""What the handlers of topics, records, configs and the cluster ask before they do anything.

A check that fails raises, and the handler answers with the error as with any other one. A topic that may not
be described is asked about before it is looked for, so that nobody learns from the error whether it exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from ottla.server.context import Context

_FAILED: Final[dict[ResourceType, type[KafkaError]]] = {
    ResourceType.TOPIC: TopicAuthorizationFailed,
    ResourceType.GROUP: GroupAuthorizationFailed,
    ResourceType.CLUSTER: ClusterAuthorizationFailed,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed,
}


def check(ctx: Context, operation: Operation, resource_type: ResourceType, name: str) -> None:
    """Raise unless whoever asks may do this."""
    if not ctx.allows(operation, resource_type, name):
        raise _FAILED[resource_type]


def check_topic(ctx: Context, operation: Operation, name: str) -> None:
    check(ctx, operation, ResourceType.TOPIC, name)


def check_cluster(ctx: Context, operation: Operation) -> None:
    check(ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME)


class AllowedTopics(dict[str, bool]):
    """Whether an operation is allowed, by the name of the topic. Each name is asked about once."""

    __slots__ = ("_ctx", "_operation")

    def __init__(self, ctx: Context, operation: Operation) -> None:
        super().__init__()
        self._ctx = ctx
        self._operation = operation

    def __missing__(self, name: str) -> bool:
        allowed = self[name] = self._ctx.allows(self._operation, ResourceType.TOPIC, name)
        return allowed


def refused_topics(names: Iterable[str], allowed: AllowedTopics) -> set[str]:
    """The topics of a request that are not allowed.

    One that is named twice is not among them: the request is wrong there whoever sent it, and says so.
    """
    return {name for name, times in Counter(names).items() if times == 1 and not allowed[name]}
