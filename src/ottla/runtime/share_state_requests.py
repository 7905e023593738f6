"""What a share coordinator on another broker is asked, about one share partition, and what its answers mean.

Every question is a `Question`: the request, the class of its response, and how to read what that says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.core.share import SharePartitionKey, StateBatch
from ottla.groups.share_state import ReadState, Summary
from ottla.protocol.errors import UnknownServerError, error_class
from ottla.protocol.messages import delete_share_group_state as deleting
from ottla.protocol.messages import initialize_share_group_state as initializing
from ottla.protocol.messages import read_share_group_state as reading
from ottla.protocol.messages import read_share_group_state_summary as summing
from ottla.protocol.messages import write_share_group_state as writing
from ottla.replication.share_ranges import Write

T = TypeVar("T")


class Question(NamedTuple, Generic[T]):
    request: Any
    response: type[Any]
    meaning: Callable[[Any], T]  # of the result for the one partition

    def read(self, response: Any) -> T:
        """What the coordinator said, or the error that it answered with."""
        results = [result for topic in response.results for result in topic.partitions]
        if len(results) != 1:
            raise UnknownServerError("The share coordinator did not answer what it was asked.")
        (result,) = results
        if result.error_code:
            raise error_class(result.error_code)(result.error_message or "")
        return self.meaning(result)


def read(key: SharePartitionKey, leader_epoch: int) -> Question[ReadState]:
    asked = reading.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
    return Question(
        reading.ReadShareGroupStateRequest(
            group_id=key.group_id, topics=[reading.ReadStateData(topic_id=key.topic_id, partitions=[asked])]
        ),
        reading.ReadShareGroupStateResponse,
        _state,
    )


def _state(result: reading.PartitionResult) -> ReadState:
    batches = [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in result.state_batches
    ]
    return ReadState(result.state_epoch, result.start_offset, batches)


def write(key: SharePartitionKey, stored: Write, state_epoch: int, leader_epoch: int) -> Question[None]:
    asked = writing.PartitionData(
        partition=key.partition,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=stored.start_offset,
        delivery_complete_count=stored.delivery_complete_count,
        state_batches=[
            writing.StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in stored.batches
        ],
    )
    return Question(
        writing.WriteShareGroupStateRequest(
            group_id=key.group_id, topics=[writing.WriteStateData(topic_id=key.topic_id, partitions=[asked])]
        ),
        writing.WriteShareGroupStateResponse,
        _nothing,
    )


def summary(key: SharePartitionKey) -> Question[Summary]:
    asked = summing.PartitionData(partition=key.partition, leader_epoch=-1)
    return Question(
        summing.ReadShareGroupStateSummaryRequest(
            group_id=key.group_id,
            topics=[summing.ReadStateSummaryData(topic_id=key.topic_id, partitions=[asked])],
        ),
        summing.ReadShareGroupStateSummaryResponse,
        lambda result: Summary(
            result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count
        ),
    )


def initialize(key: SharePartitionKey, state_epoch: int, start_offset: int) -> Question[None]:
    asked = initializing.PartitionData(
        partition=key.partition, state_epoch=state_epoch, start_offset=start_offset
    )
    return Question(
        initializing.InitializeShareGroupStateRequest(
            group_id=key.group_id,
            topics=[initializing.InitializeStateData(topic_id=key.topic_id, partitions=[asked])],
        ),
        initializing.InitializeShareGroupStateResponse,
        _nothing,
    )


def delete(key: SharePartitionKey) -> Question[None]:
    asked = deleting.PartitionData(partition=key.partition)
    return Question(
        deleting.DeleteShareGroupStateRequest(
            group_id=key.group_id,
            topics=[deleting.DeleteStateData(topic_id=key.topic_id, partitions=[asked])],
        ),
        deleting.DeleteShareGroupStateResponse,
        _nothing,
    )


def _nothing(result: Any) -> None:
    return None
