from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import (
    InvalidTopic,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.server.handlers.delete_records import delete_records


def delete(node: Any, *offsets: int, topic: str = "a", index: int = 0, version: int = 2) -> tuple[int, int]:
    """The low watermark and the error code."""
    partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for offset in offsets]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=partitions)])
    response = node.call(delete_records, request, version)
    ((answer,),) = [topic.partitions for topic in response.topics]
    return answer.low_watermark, answer.error_code


@pytest.fixture
def four(node: Any) -> Any:
    node.create("a")
    node.produce("a", 1, 2)
    node.produce("a", 3, 4)
    return node


def test_records_before_an_offset_are_gone(four: Any) -> None:
    assert delete(four, 3) == (3, 0)
    assert four.partition("a").log.start_offset == 3


def test_minus_one_deletes_up_to_the_high_watermark(four: Any) -> None:
    assert delete(four, -1, version=0) == (4, 0)


def test_deleting_what_is_gone_already_changes_nothing(four: Any) -> None:
    assert delete(four, 3) == (3, 0)
    assert delete(four, 1) == (3, 0)


@pytest.mark.parametrize("offset", [5, -2])
def test_only_offsets_up_to_the_high_watermark_will_do(four: Any, offset: int) -> None:
    assert delete(four, offset) == (-1, OffsetOutOfRange.code)
    assert four.partition("a").log.start_offset == 0


def test_what_is_not_replicated_cannot_be_deleted(node: Any) -> None:
    node.register(2)
    node.create("a", replicas=(1, 2))
    node.produce("a", 1, 2)
    assert delete(node, 1) == (-1, OffsetOutOfRange.code)
    assert delete(node, -1) == (0, 0)


def test_a_topic_kept_by_key_alone_refuses(node: Any) -> None:
    node.create("a", configs={"cleanup.policy": "compact"})
    node.create("both", configs={"cleanup.policy": "compact,delete"})
    assert delete(node, 0) == (-1, PolicyViolation.code)
    assert delete(node, 0, topic="both") == (0, 0)


def test_internal_topics_refuse(node: Any) -> None:
    node.create("__consumer_offsets")
    assert delete(node, 0, topic="__consumer_offsets") == (-1, InvalidTopic.code)


def test_unknown_partitions_are_told_apart_from_those_led_elsewhere(four: Any) -> None:
    assert delete(four, 0, index=7) == (-1, UnknownTopicOrPartition.code)
    assert delete(four, 0, topic="nope") == (-1, UnknownTopicOrPartition.code)
    four.partition("a").stop_leading(2, 1, 1)
    assert delete(four, 0) == (-1, NotLeaderOrFollower.code)


def test_a_partition_named_twice_is_answered_once_for_the_last(four: Any) -> None:
    assert delete(four, 1, 2) == (2, 0)


def test_a_failed_disk_is_a_storage_error(four: Any) -> None:
    four.partition("a").fail()
    assert delete(four, 1) == (-1, KafkaStorageError.code)


def test_followers_that_are_there_are_waited_for(node: Any) -> None:
    node.register(2)
    node.register(3)
    node.create("a", replicas=(1, 2, 3))
    node.produce("a", 1, 2)
    partition = node.partition("a")
    for follower in (2, 3):
        partition.isr.fetched(follower, 2, 0, -1, 2, 0)
    partition._advance(0)
    assert delete(node, 1) == (-1, RequestTimedOut.code)
    assert partition.log.start_offset == 1
    for follower in (2, 3):
        partition.isr.fetched(follower, 2, 1, -1, 2, 0)
    assert delete(node, 1) == (1, 0)
