from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_PARTITIONS = 37
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_REQUEST = 42


def grow(cluster: Any, count: int, *replicas: list[int], name: str = "orders", **given: Any) -> Any:
    assignments = [CreatePartitionsAssignment(broker_ids=ids) for ids in replicas] or None
    topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    (answer,) = cluster.do(CreatePartitionsRequest(topics=[topic], **given)).results
    return answer


def test_new_partitions_have_as_many_replicas_as_the_old(cluster: Any) -> None:
    cluster.create("orders", (1, 2))

    assert grow(cluster, 3).error_code == 0

    assert sorted(cluster.image.topics["orders"].partitions) == [0, 1, 2]
    assert all(len(state.replicas) == 2 for _, _, state in cluster.image.partitions())


def test_new_partitions_may_be_placed_by_hand(cluster: Any) -> None:
    cluster.create("orders", (1, 2))

    assert grow(cluster, 2, [3, 1]).error_code == 0

    state = cluster.state("orders", 1)
    assert (state.replicas, state.leader, state.leader_epoch) == ((3, 1), 3, 0)


def test_validating_only_writes_nothing(cluster: Any) -> None:
    cluster.create("orders", (1,))
    assert grow(cluster, 2, validate_only=True).error_code == 0
    assert cluster.last == []


@pytest.mark.parametrize(
    ("count", "replicas", "error"),
    [
        (2, (), INVALID_PARTITIONS),
        (1, (), INVALID_PARTITIONS),
        (4, ([1, 2],), INVALID_REPLICA_ASSIGNMENT),
        (3, ([1],), INVALID_REPLICA_ASSIGNMENT),
        (3, ([1, 1],), INVALID_REPLICA_ASSIGNMENT),
        (3, ([1, 9],), INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_topics_only_grow_and_only_sensibly(cluster: Any, count: int, replicas: Any, error: int) -> None:
    cluster.create("orders", (1, 2), (2, 1))

    assert grow(cluster, count, *replicas).error_code == error
    assert cluster.last == []


def test_an_unknown_topic_does_not_grow(cluster: Any) -> None:
    assert grow(cluster, 2).error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_given_twice_gets_one_answer(cluster: Any) -> None:
    cluster.create("orders", (1,))
    twice = [CreatePartitionsTopic(name="orders", count=n, assignments=None) for n in (2, 3)]
    (answer,) = cluster.do(CreatePartitionsRequest(topics=twice)).results
    assert answer.error_code == INVALID_REQUEST
