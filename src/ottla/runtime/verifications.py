"""What leaders ask the coordinators of transactions on other brokers (AddPartitionsToTxn from version 4 on).

The questions of one turn of the loop to one broker share a request, where a transactional id has one place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from ottla.core.types import TopicPartition
from ottla.protocol.errors import (
    ClusterAuthorizationFailed,
    InvalidTxnState,
    KafkaError,
    NetworkException,
    UnknownServerError,
    error_class,
)
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.runtime.elsewhere import Elsewhere

PURPOSE: Final = "verification"

Codes = dict[TopicPartition, int]


class Question(NamedTuple):
    """Whether partitions are in a transaction; unless `verify_only` they are made part of it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Collection[TopicPartition]
    verify_only: bool


class _Asked(NamedTuple):
    question: Question
    answer: asyncio.Future[Codes]
    within: float
    still_leads: Callable[[], bool]


class Verifications:
    def __init__(self, elsewhere: Elsewhere) -> None:
        self._elsewhere = elsewhere
        # By broker, the questions that no request holds yet.
        self._waiting: dict[int, list[_Asked]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(
        self, broker_id: int, question: Question, *, within: float, still_leads: Callable[[], bool]
    ) -> Codes:
        """The coordinator's word on each partition. Raises `NetworkException` when there is none."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._send)
        asked = _Asked(question, loop.create_future(), within, still_leads)
        self._waiting.setdefault(broker_id, []).append(asked)
        return await asked.answer

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for broker_id, questions in waiting.items():
            for batch in _batches(questions):
                task = asyncio.get_running_loop().create_task(self._exchange(broker_id, batch))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _exchange(self, broker_id: int, batch: dict[str, _Asked]) -> None:
        try:
            response = await self._elsewhere.ask(
                broker_id,
                AddPartitionsToTxnRequest(
                    transactions=[_transaction(each.question) for each in batch.values()]
                ),
                AddPartitionsToTxnResponse,
                purpose=PURPOSE,
                within=max(each.within for each in batch.values()),
                still_leads=lambda: all(each.still_leads() for each in batch.values()),
            )
            codes = _codes(response)
        except KafkaError as error:
            _refuse(batch, error)
        except BaseException:
            _refuse(batch, NetworkException("The coordinator could not be asked."))
            raise
        else:
            for asked in batch.values():
                if not asked.answer.done():  # the client may have hung up
                    asked.answer.set_result(_answer(asked.question, codes))


def _batches(questions: list[_Asked]) -> list[dict[str, _Asked]]:
    """As few requests as will do. A client that sends again what is being asked about is in a later one."""
    batches: list[dict[str, _Asked]] = []
    for asked in questions:
        transactional_id = asked.question.transactional_id
        for batch in batches:
            if transactional_id not in batch:
                batch[transactional_id] = asked
                break
        else:
            batches.append({transactional_id: asked})
    return batches


def _transaction(question: Question) -> AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for topic, index in question.partitions:
        topics.setdefault(topic, []).append(index)
    return AddPartitionsToTxnTransaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.producer_epoch,
        verify_only=question.verify_only,
        topics=[AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()],
    )


def _codes(response: AddPartitionsToTxnResponse) -> dict[tuple[str, TopicPartition], int]:
    if response.error_code == ClusterAuthorizationFailed.code:
        # That is between brokers, and nothing that a client should hear.
        raise InvalidTxnState("The coordinator does not answer this broker.")
    if response.error_code:
        raise error_class(response.error_code)
    return {
        (result.transactional_id, TopicPartition(topic.name, each.partition_index)): each.partition_error_code
        for result in response.results_by_transaction
        for topic in result.topic_results
        for each in topic.results_by_partition
    }


def _answer(question: Question, codes: dict[tuple[str, TopicPartition], int]) -> Codes:
    missing = UnknownServerError.code
    return {each: codes.get((question.transactional_id, each), missing) for each in question.partitions}


def _refuse(batch: dict[str, _Asked], error: KafkaError) -> None:
    for asked in batch.values():
        if not asked.answer.done():
            asked.answer.set_exception(error)
