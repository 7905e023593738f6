from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import InvalidRequest, InvalidTopic, UnknownTopicOrPartition
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ottla.server.handlers.describe_topic_partitions import describe_topic_partitions


def of(
    *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def shape(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(topic.name, [p.partition_index for p in topic.partitions]) for topic in response.topics]


def next_of(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.fixture
def three(node: Any) -> Any:
    for name, partitions in (("b", 3), ("a", 2), ("c", 1)):
        node.create(name, partitions)
    return node


def test_topics_come_in_the_order_of_their_names(three: Any) -> None:
    response = three.call(describe_topic_partitions, of())
    assert shape(response) == [("a", [0, 1]), ("b", [0, 1, 2]), ("c", [0])]
    assert next_of(response) is None
    assert {topic.topic_authorized_operations for topic in response.topics} == {3576}


def test_a_partition_carries_who_may_lead_it(node: Any) -> None:
    node.register(2, fenced=True)
    topic_id = node.create(
        "a", replicas=(1, 2, 3), isr=(1,), leader_epoch=7, eligible_leader_replicas=[2], last_known_elr=[3]
    )
    (topic,) = node.call(describe_topic_partitions, of("a")).topics
    (partition,) = topic.partitions
    assert (topic.topic_id, partition.leader_id, partition.leader_epoch) == (topic_id, 1, 7)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1, 2, 3], [1])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([2], [3])
    assert partition.offline_replicas == [2, 3]


def test_a_leader_that_cannot_be_reached_is_none(node: Any) -> None:
    node.register(2, listener="INTERNAL")
    node.create("a", replicas=(2,))
    (topic,) = node.call(describe_topic_partitions, of("a")).topics
    assert (topic.partitions[0].leader_id, topic.partitions[0].error_code) == (-1, 0)


def test_missing_topics_have_codes_when_they_were_named(three: Any) -> None:
    response = three.call(describe_topic_partitions, of("nope", "c", "not a name"))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("c", 0),
        ("nope", UnknownTopicOrPartition.code),
        ("not a name", InvalidTopic.code),
    ]


def test_following_the_cursor_shows_everything_once(three: Any) -> None:
    seen = []
    cursor = None
    for _ in range(10):
        response = three.call(describe_topic_partitions, of(limit=2, cursor=cursor))
        assert sum(len(topic.partitions) for topic in response.topics) <= 2
        seen += [(t.name, p.partition_index) for t in response.topics for p in t.partitions]
        cursor = next_of(response)
        if cursor is None:
            break
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


def test_a_page_that_ends_with_a_topic_points_to_the_next(three: Any) -> None:
    response = three.call(describe_topic_partitions, of(limit=2))
    assert (shape(response), next_of(response)) == ([("a", [0, 1])], ("b", 0))
    response = three.call(describe_topic_partitions, of("c", "nope", limit=1))
    assert next_of(response) == ("nope", 0)


def test_the_broker_has_a_limit_of_its_own(make_node: Any) -> None:
    node = make_node(max_request_partition_size_limit="3")
    node.register()
    node.create("a", 5)
    response = node.call(describe_topic_partitions, of("a"))
    assert (shape(response), next_of(response)) == ([("a", [0, 1, 2])], ("a", 3))


@pytest.mark.parametrize("limit", [0, -5])
def test_a_page_holds_at_least_one_partition(three: Any, limit: int) -> None:
    response = three.call(describe_topic_partitions, of("a", limit=limit))
    assert (shape(response), next_of(response)) == ([("a", [0])], ("a", 1))


def test_a_cursor_past_the_end_of_its_topic_goes_on_with_the_next(three: Any) -> None:
    response = three.call(describe_topic_partitions, of(cursor=("b", 9)))
    assert shape(response) == [("b", []), ("c", [0])]


def test_a_cursor_whose_topic_is_gone_starts_the_next_at_its_beginning(three: Any) -> None:
    assert shape(three.call(describe_topic_partitions, of(cursor=("aa", 7)))) == [
        ("b", [0, 1, 2]),
        ("c", [0]),
    ]


@pytest.mark.parametrize("cursor", [("zzz", 0), ("a", -1)])
def test_a_cursor_that_is_none_of_ours_is_refused(three: Any, cursor: tuple[str, int]) -> None:
    response = three.call(describe_topic_partitions, of("a", "b", cursor=cursor))
    assert [topic.error_code for topic in response.topics] == [InvalidRequest.code] * 2
