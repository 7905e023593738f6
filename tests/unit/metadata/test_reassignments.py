from __future__ import annotations

from typing import Any

from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
NO_REASSIGNMENT_IN_PROGRESS = 85


def move(
    cluster: Any, replicas: list[int] | None, topic: str = "orders", partition: int = 0, **given: Any
) -> int:
    asked = ReassignablePartition(partition_index=partition, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[asked])], **given
    )
    code: int = cluster.do(request).responses[0].partitions[0].error_code
    return code


def moving(cluster: Any, **given: Any) -> list[tuple[str, int, list[int], list[int], list[int]]]:
    response = cluster.do(ListPartitionReassignmentsRequest(**given))
    return [
        (topic.name, p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas)
        for topic in response.topics
        for p in topic.partitions
    ]


def test_a_move_adds_before_it_removes(cluster: Any) -> None:
    cluster.create("orders", (1, 2))
    assert moving(cluster) == []

    assert move(cluster, [2, 3]) == 0

    state = cluster.state("orders")
    assert (state.replicas, state.adding, state.removing) == ((2, 3, 1), (3,), (1,))
    assert (state.isr, state.leader) == ((1, 2), 1)
    expected = ("orders", 0, [2, 3, 1], [3], [1])
    assert moving(cluster) == [expected]
    asked = [ListPartitionReassignmentsTopics(name="orders", partition_indexes=[0, 7])]
    assert moving(cluster, topics=asked) == [expected]
    assert moving(cluster, topics=[ListPartitionReassignmentsTopics(name="other")]) == []


def test_a_move_among_those_in_sync_is_done_at_once(cluster: Any) -> None:
    cluster.create("orders", (1, 2, 3))
    assert move(cluster, [3, 1]) == 0
    state = cluster.state("orders")
    assert (state.replicas, state.isr, state.leader, state.is_reassigning) == ((3, 1), (1, 3), 1, False)
    assert state.leader_epoch == 1


def test_a_move_can_be_given_up(cluster: Any) -> None:
    cluster.create("orders", (1, 2))
    move(cluster, [2, 3])
    assert move(cluster, None) == 0
    state = cluster.state("orders")
    assert (sorted(state.replicas), state.adding, state.removing) == ([1, 2], (), ())
    assert move(cluster, None) == NO_REASSIGNMENT_IN_PROGRESS


def test_a_move_needs_a_place_to_go(cluster: Any) -> None:
    cluster.create("orders", (1, 2))
    assert move(cluster, []) == INVALID_REPLICA_ASSIGNMENT
    assert move(cluster, [1, 9]) == INVALID_REPLICA_ASSIGNMENT
    assert move(cluster, [1, 1]) == INVALID_REPLICA_ASSIGNMENT
    assert move(cluster, [1, 2], topic="missing") == UNKNOWN_TOPIC_OR_PARTITION
    assert move(cluster, [1, 2], partition=4) == UNKNOWN_TOPIC_OR_PARTITION


def test_a_move_may_be_asked_not_to_change_the_number_of_replicas(cluster: Any) -> None:
    cluster.create("orders", (1, 2))
    assert move(cluster, [1], allow_replication_factor_change=False) == INVALID_REPLICATION_FACTOR
    assert move(cluster, [1, 3], allow_replication_factor_change=False) == 0
    assert move(cluster, [3, 2], allow_replication_factor_change=False) == 0
