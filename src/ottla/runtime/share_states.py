"""What this broker asks the share coordinator for, one share partition at a time.

Kafka calls this the persister. The coordinator of a share partition's state is found by its key; it may be
this broker or another one, and only `Coordinator.call` knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from ottla.core.ids import Uuid
from ottla.core.share import SharePartitionKey
from ottla.groups.share.heartbeat import Initialize
from ottla.groups.share_state import ReadState, Summary
from ottla.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    FencedStateEpoch,
    GroupIdNotFound,
    KafkaError,
    NotCoordinator,
    NotLeaderOrFollower,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from ottla.replication.share_ranges import Write
from ottla.runtime.coordinator import Coordinator

Errors = dict[tuple[Uuid, int], KafkaError]


class ShareStates:
    def __init__(self, coordinator: Coordinator[Any]) -> None:
        self._coordinator = coordinator

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ReadState:
        state: ReadState = await self._coordinator.call(
            str(key), lambda machine, now, ticket: machine.read(key, leader_epoch, now)
        )
        return state

    async def write(
        self, key: SharePartitionKey, write: Write, *, state_epoch: int, leader_epoch: int
    ) -> None:
        await self._coordinator.call(
            str(key),
            lambda machine, now, ticket: machine.write(
                key,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=write.start_offset,
                delivery_complete_count=write.delivery_complete_count,
                batches=write.batches,
                now=now,
            ),
        )

    async def summary(self, key: SharePartitionKey) -> Summary:
        summary: Summary = await self._coordinator.call(
            str(key), lambda machine, now, ticket: machine.read_summary(key)
        )
        return summary

    async def initialize(self, wanted: Initialize) -> Errors:
        """Set up states; answers for which partitions it failed."""

        async def one(key: SharePartitionKey) -> None:
            start_offset = wanted.start_offsets[key.topic_id][key.partition]
            await self._coordinator.call(
                str(key),
                lambda machine, now, ticket: machine.initialize(key, wanted.state_epoch, start_offset, now),
            )

        return await _each(wanted.group_id, wanted.indices, one)

    async def delete(self, group_id: str, topics: Mapping[Uuid, frozenset[int]]) -> Errors:
        """Forget states; answers for which partitions it failed."""

        async def one(key: SharePartitionKey) -> None:
            await self._coordinator.call(str(key), lambda machine, now, ticket: machine.delete(key, now))

        return await _each(group_id, topics, one)


async def _each(
    group_id: str,
    topics: Mapping[Uuid, frozenset[int]],
    call: Callable[[SharePartitionKey], Coroutine[Any, Any, None]],
) -> Errors:
    keys = [
        SharePartitionKey(group_id, topic_id, index)
        for topic_id in topics
        for index in sorted(topics[topic_id])
    ]
    results = await asyncio.gather(*map(call, keys), return_exceptions=True)
    errors: Errors = {}
    for key, result in zip(keys, results, strict=True):
        if isinstance(result, KafkaError):
            errors[key.topic_id, key.partition] = result
        elif isinstance(result, BaseException):
            raise result
    return errors


_NOT_AVAILABLE = (NotCoordinator, CoordinatorNotAvailable, CoordinatorLoadInProgress)
_FENCED = (FencedLeaderEpoch, FencedStateEpoch)
_AS_IT_IS = (GroupIdNotFound, UnknownTopicOrPartition)


def as_client_hears(error: KafkaError) -> KafkaError:
    """What a consumer is told when the state of its partition could not be read or written."""
    if isinstance(error, _NOT_AVAILABLE):
        return CoordinatorNotAvailable(str(error))
    if isinstance(error, _FENCED):
        return NotLeaderOrFollower(str(error))
    if isinstance(error, _AS_IT_IS):
        return error
    return UnknownServerError(str(error))
