"""Requests to the share coordinator: one call for each partition they name (KIP-932).

They are for brokers to make. This broker's own parts do not come here; see `runtime/share_states.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

from ottla.core.acl import Operation
from ottla.core.ids import Uuid
from ottla.core.outcome import Now, Outcome
from ottla.core.share import SharePartitionKey
from ottla.groups.share_state import ShareStateMachine
from ottla.protocol.errors import ClusterAuthorizationFailed, KafkaError
from ottla.server.context import Context

P = TypeVar("P", bound="Partition")
R = TypeVar("R", bound="Result")
Command = Callable[[ShareStateMachine, SharePartitionKey, Any, Now], Outcome]


class Partition(Protocol):
    partition: int


class Topic(Protocol):
    topic_id: Uuid
    partitions: list[Any]


class Result(Protocol):
    partition: int
    error_code: int
    error_message: str | None


async def call_each(
    ctx: Context,
    group_id: str,
    topics: Iterable[Topic],
    command: Command,
    result: Callable[..., R],
    fill: Callable[[R, Any], None] | None = None,
) -> list[tuple[Uuid, list[R]]]:
    """The results by topic. A request that names no group, or a topic without partitions, has none."""
    topics = list(topics)
    if not ctx.allows_on_cluster(Operation.CLUSTER_ACTION):
        error = ClusterAuthorizationFailed()
        return [
            (
                topic.topic_id,
                [
                    result(partition=asked.partition, error_code=error.code, error_message=str(error))
                    for asked in topic.partitions
                ],
            )
            for topic in topics
        ]
    if not group_id or not all(topic.partitions for topic in topics):
        return []
    answers: list[tuple[Uuid, list[Awaitable[R]]]] = [
        (
            topic.topic_id,
            [
                _call(
                    ctx,
                    SharePartitionKey(group_id, topic.topic_id, asked.partition),
                    asked,
                    command,
                    result,
                    fill,
                )
                for asked in topic.partitions
            ],
        )
        for topic in topics
    ]
    return [(topic_id, list(await asyncio.gather(*each))) for topic_id, each in answers]


async def _call(
    ctx: Context,
    key: SharePartitionKey,
    asked: Any,
    command: Command,
    result: Callable[..., R],
    fill: Callable[[R, Any], None] | None,
) -> R:
    answer = result(partition=key.partition)
    try:
        reply = await ctx.node.share_state.call(
            str(key), lambda machine, now, ticket: command(machine, key, asked, now)
        )
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, str(error)
    else:
        if fill is not None:
            fill(answer, reply)
    return answer
