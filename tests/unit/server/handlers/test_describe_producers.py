from __future__ import annotations

from typing import Any

from ottla.protocol.errors import (
    InvalidTopic,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)
from ottla.server.handlers.describe_producers import describe_producers


def of(node: Any, topic: str, *indexes: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(indexes))])
    (answer,) = node.call(describe_producers, request).topics
    assert answer.name == topic
    return answer.partitions  # type: ignore[no-any-return]


def test_it_shows_what_a_partition_remembers_of_its_producers(node: Any) -> None:
    node.create("a", 2)
    node.produce("a", 10, 20, producer_id=7, producer_epoch=2, base_sequence=0)
    node.produce("a", 30, attributes=0x10, producer_id=8, producer_epoch=0, base_sequence=0)
    node.produce("a", 40)
    first, second = of(node, "a", 0, 1)
    assert [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.last_timestamp, p.current_txn_start_offset)
        for p in first.active_producers
    ] == [(7, 2, 1, 20, -1), (8, 0, 0, 30, 2)]
    assert {p.coordinator_epoch for p in first.active_producers} == {-1}
    assert (second.error_code, second.error_message, second.active_producers) == (0, None, [])


def test_a_follower_answers_too(node: Any) -> None:
    node.create("a")
    node.partition("a").stop_leading(2, 1, 1)
    (answer,) = of(node, "a", 0)
    assert answer.error_code == 0


def test_unknown_topics_and_illegal_names_say_so_for_every_partition(node: Any) -> None:
    assert [(p.partition_index, p.error_code) for p in of(node, "nope", 0, 1)] == [
        (0, UnknownTopicOrPartition.code),
        (1, UnknownTopicOrPartition.code),
    ]
    (answer,) = of(node, "not a name", 0)
    assert answer.error_code == InvalidTopic.code
    assert answer.error_message is not None and "Topic name is invalid" in answer.error_message


def test_partitions_that_are_not_here_say_why(node: Any) -> None:
    node.register(2)
    node.create("a")
    node.create("theirs", replicas=(2,))
    assert [p.error_code for p in of(node, "a", 5)] == [UnknownTopicOrPartition.code]
    assert [p.error_code for p in of(node, "theirs", 0)] == [NotLeaderOrFollower.code]
    node.partition("a").fail()
    assert [p.error_code for p in of(node, "a", 0)] == [KafkaStorageError.code]
