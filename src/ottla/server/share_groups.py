"""What the handlers of share groups have in common (KIP-932)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from ottla.core.acl import Operation, ResourceType
from ottla.core.ids import Uuid
from ottla.core.share import SharePartitionKey
from ottla.metadata.versions import SHARE_VERSION
from ottla.protocol.errors import (
    InvalidRequest,
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from ottla.replication.share_partition import REJECT, RENEW, Acknowledged
from ottla.server.context import Context
from ottla.server.group_authorization import check_group

# The length of a UUID as people read it.
LONGEST_MEMBER_ID: Final = 36
RENEW_SINCE: Final = 2  # the version of ShareFetch and ShareAcknowledge that knows renewals

Errors = dict[tuple[Uuid, int], KafkaError | None]


def check_share_groups(ctx: Context) -> None:
    """Raise unless the cluster has share groups at all."""
    if ctx.node.image.features.get(SHARE_VERSION, 0) < 1:
        raise UnsupportedVersion


def check_caller(ctx: Context, group_id: str | None, member_id: str | None) -> tuple[str, str]:
    if group_id is None:
        raise InvalidRequest("Invalid group id in the request.")
    check_group(ctx, Operation.READ, group_id)
    if not member_id or len(member_id) > LONGEST_MEMBER_ID:
        raise InvalidRequest("Invalid member id in the request.")
    return group_id, member_id


class Batch(Protocol):
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Acknowledging:
    """Acknowledgements of one request: decided when this is made, and to be waited for until stored."""

    def __init__(
        self,
        ctx: Context,
        group_id: str,
        member_id: str,
        partitions: Mapping[tuple[Uuid, int], Sequence[Batch]],
        *,
        is_renewal: bool,
    ) -> None:
        self._results: Errors = {}
        self._tasks: dict[tuple[Uuid, int], asyncio.Task[None]] = {}
        for (topic_id, index), batches in partitions.items():
            self._results[topic_id, index] = None
            try:
                topic = ctx.node.image.topic_by_id.get(topic_id)
                if topic is None:
                    raise UnknownTopicId
                _check_batches(batches, may_renew=ctx.version >= RENEW_SINCE, is_renewal=is_renewal)
                if not ctx.allows(Operation.READ, ResourceType.TOPIC, topic.name):
                    raise TopicAuthorizationFailed
                if index not in topic.partitions:
                    raise UnknownTopicOrPartition
                if not batches:
                    continue
                task = ctx.node.shares.acknowledge(
                    SharePartitionKey(group_id, topic_id, index),
                    member_id,
                    [
                        Acknowledged(one.first_offset, one.last_offset, one.acknowledge_types)
                        for one in batches
                    ],
                )
            except KafkaError as error:
                self._results[topic_id, index] = error
            else:
                if task is not None:
                    self._tasks[topic_id, index] = task

    async def stored(self) -> Errors:
        """How each of them went; None for well."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        for place, task in self._tasks.items():
            error = task.exception()
            if error is not None and not isinstance(error, KafkaError):
                raise error
            self._results[place] = error
        return self._results


def _check_batches(batches: Sequence[Batch], *, may_renew: bool, is_renewal: bool) -> None:
    last_offset = -1
    for batch in batches:
        types, size = batch.acknowledge_types, batch.last_offset - batch.first_offset + 1
        if (
            size < 1
            or batch.first_offset < last_offset
            or not types
            or (len(types) > 1 and len(types) != size)
            or not all(0 <= kind <= (RENEW if may_renew else REJECT) for kind in types)
            or (RENEW in types and not is_renewal)
        ):
            raise InvalidRequest
        last_offset = batch.last_offset


def end_with_connection(ctx: Context, group_id: str, member_id: str) -> None:
    """When the connection ends, so does the session that was opened on it."""
    shares, connection = ctx.node.shares, ctx.connection
    connection.endings[group_id, member_id] = lambda: shares.end_session(group_id, member_id, connection)


def end_session(ctx: Context, group_id: str, member_id: str) -> None:
    """The member has closed its session."""
    ctx.connection.endings.pop((group_id, member_id), None)
    ctx.node.shares.end_session(group_id, member_id)
