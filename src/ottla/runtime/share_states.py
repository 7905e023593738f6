"""What this broker asks the share coordinator for, one share partition at a time.

Kafka calls this the persister. The coordinator of a share partition's state is found by its key; it may be
this broker or another one, which is asked over the wire (`share_state_requests`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

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
    NetworkException,
    NotCoordinator,
    NotLeaderOrFollower,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from ottla.replication.share_ranges import Write
from ottla.runtime import share_state_requests as requests
from ottla.runtime.coordinator import Coordinator
from ottla.runtime.elsewhere import Elsewhere
from ottla.runtime.shard import Command
from ottla.runtime.share_state_requests import Question

PURPOSE: Final = "share-state"
# A coordinator answers when its write is committed, or has failed to be within its own time.
ANSWER_SECONDS: Final = 15.0
# Seconds between tries to reach a coordinator that is being moved.
PAUSES: Final = (0.05, 0.1, 0.2, 0.4, 0.8)

Errors = dict[tuple[Uuid, int], KafkaError]
T = TypeVar("T")

_NOT_AVAILABLE = (NotCoordinator, CoordinatorNotAvailable, CoordinatorLoadInProgress, NetworkException)


class ShareStates:
    def __init__(self, coordinator: Coordinator[Any], elsewhere: Elsewhere) -> None:
        self._coordinator = coordinator
        self._elsewhere = elsewhere

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ReadState:
        return await self._ask(
            key,
            lambda machine, now, ticket: machine.read(key, leader_epoch, now),
            lambda: requests.read(key, leader_epoch),
        )

    async def write(
        self, key: SharePartitionKey, write: Write, *, state_epoch: int, leader_epoch: int
    ) -> None:
        await self._ask(
            key,
            lambda machine, now, ticket: machine.write(
                key,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=write.start_offset,
                delivery_complete_count=write.delivery_complete_count,
                batches=write.batches,
                now=now,
            ),
            lambda: requests.write(key, write, state_epoch, leader_epoch),
        )

    async def summary(self, key: SharePartitionKey) -> Summary:
        return await self._ask(
            key,
            lambda machine, now, ticket: machine.read_summary(key),
            lambda: requests.summary(key),
        )

    async def initialize(self, wanted: Initialize) -> Errors:
        """Set up states; answers for which partitions it failed."""

        async def one(key: SharePartitionKey) -> None:
            start_offset = wanted.start_offsets[key.topic_id][key.partition]
            await self._ask(
                key,
                lambda machine, now, ticket: machine.initialize(key, wanted.state_epoch, start_offset, now),
                lambda: requests.initialize(key, wanted.state_epoch, start_offset),
            )

        return await _each(wanted.group_id, wanted.indices, one)

    async def delete(self, group_id: str, topics: Mapping[Uuid, frozenset[int]]) -> Errors:
        """Forget states; answers for which partitions it failed."""

        async def one(key: SharePartitionKey) -> None:
            await self._ask(
                key,
                lambda machine, now, ticket: machine.delete(key, now),
                lambda: requests.delete(key),
            )

        return await _each(group_id, topics, one)

    async def _ask(
        self, key: SharePartitionKey, command: Command[Any], question: Callable[[], Question[T]]
    ) -> T:
        """The coordinator's answer, whoever that is. While it moves from one broker to another it is asked
        for again; where there is no other it is not, since whoever waits asks again anyway."""
        name = str(key)
        for pause in (*PAUSES, None):
            elsewhere = self._coordinator.elsewhere(name)
            try:
                if elsewhere is None:
                    answer: T = await self._coordinator.call(name, command)
                    return answer
                return await self._ask_there(elsewhere, name, question())
            except _NOT_AVAILABLE:
                is_moving = elsewhere is not None or self._coordinator.elsewhere(name) is not None
                if pause is None or not is_moving:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("the last try answers or raises")

    async def _ask_there(self, broker_id: int, name: str, question: Question[T]) -> T:
        response = await self._elsewhere.ask(
            broker_id,
            question.request,
            question.response,
            purpose=PURPOSE,
            within=ANSWER_SECONDS,
            still_leads=lambda: self._coordinator.elsewhere(name) == broker_id,
        )
        return question.read(response)


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
