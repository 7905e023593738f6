from __future__ import annotations

from typing import Any

import pytest

from ottla.core.ids import Uuid
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)

UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_CONTROLLER = 41
INVALID_REQUEST = 42
FENCED_LEADER_EPOCH = 74
STALE_BROKER_EPOCH = 77
INVALID_UPDATE_VERSION = 95
UNKNOWN_TOPIC_ID = 100
INELIGIBLE_REPLICA = 107
NEW_LEADER_ELECTED = 108


@pytest.fixture
def orders(cluster: Any) -> Any:
    cluster.create("orders", (1, 2, 3))
    return cluster


def alter(
    cluster: Any, *isr: int | tuple[int, int], sender: int = 1, topic_id: Uuid | None = None, **given: Any
) -> Any:
    """The answer for the one partition. Members of the new ISR may come with a broker epoch."""
    state = cluster.image.topics["orders"].partitions[0]
    members = [member if isinstance(member, tuple) else (member, -1) for member in isr]
    values = {
        "partition_index": 0,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "new_isr_with_epochs": [BrokerState(broker_id=b, broker_epoch=e) for b, e in members],
    }
    topic = TopicData(
        topic_id=topic_id or cluster.image.topics["orders"].id, partitions=[PartitionData(**(values | given))]
    )
    epoch = cluster.image.brokers[sender].epoch
    response = cluster.do(AlterPartitionRequest(broker_id=sender, broker_epoch=epoch, topics=[topic]))
    return response.topics[0].partitions[0]


def test_a_leader_shrinks_and_grows_its_in_sync_set_without_a_new_leader_epoch(orders: Any) -> None:
    answer = alter(orders, 1, 2)
    assert (answer.error_code, answer.isr, answer.leader_id) == (0, [1, 2], 1)
    assert (answer.leader_epoch, answer.partition_epoch) == (0, 1)
    epoch = orders.image.brokers[3].epoch
    assert alter(orders, 1, 2, (3, epoch)).partition_epoch == 2
    assert orders.state("orders").isr == (1, 2, 3)


def test_below_min_isr_who_leaves_stays_eligible(cluster: Any) -> None:
    cluster.create("orders", (1, 2, 3), min_insync_replicas="2")
    alter(cluster, 1)
    assert cluster.state("orders").elr == (2, 3)
    alter(cluster, 1, 2)
    assert cluster.state("orders").elr == ()


def test_asking_for_what_is_writes_nothing(orders: Any) -> None:
    assert alter(orders, 1, 2, 3).error_code == 0
    assert orders.last == []


@pytest.mark.parametrize(
    ("isr", "given", "error"),
    [
        ((1, 2), {"partition_index": 7}, UNKNOWN_TOPIC_OR_PARTITION),
        ((1, 2), {"topic_id": Uuid(b"x" * 16)}, UNKNOWN_TOPIC_ID),
        ((1, 2), {"leader_epoch": 5}, NOT_CONTROLLER),
        ((1, 2), {"partition_epoch": 5}, NOT_CONTROLLER),
        ((1, 2), {"leader_epoch": -1}, FENCED_LEADER_EPOCH),
        ((1, 2), {"sender": 2}, INVALID_REQUEST),
        ((1, 2), {"partition_epoch": -1}, INVALID_UPDATE_VERSION),
        ((1, 9), {}, INVALID_REQUEST),
        ((2, 3), {}, INVALID_REQUEST),
        ((), {}, INVALID_REQUEST),
        ((1, 1), {}, INVALID_REQUEST),
        ((1, 2), {"leader_recovery_state": 1}, INVALID_REQUEST),
        ((1,), {"leader_recovery_state": 1}, INVALID_REQUEST),
        ((1, (2, 4711)), {}, INELIGIBLE_REPLICA),
        # The order of checks: a fenced leader learns that before anything else is said about its request.
        ((1, 9), {"leader_epoch": -1, "sender": 2, "partition_epoch": -1}, FENCED_LEADER_EPOCH),
        ((1, 9), {"sender": 2, "partition_epoch": -1}, INVALID_REQUEST),
        ((1, 9), {"partition_epoch": -1}, INVALID_UPDATE_VERSION),
    ],
)
def test_a_request_that_does_not_fit_is_refused(orders: Any, isr: Any, given: Any, error: int) -> None:
    assert alter(orders, *isr, **given).error_code == error
    assert orders.last == []


def test_the_sender_has_to_be_the_broker_it_says(orders: Any) -> None:
    response = orders.do(AlterPartitionRequest(broker_id=1, broker_epoch=4711))
    assert response.error_code == STALE_BROKER_EPOCH


def test_who_is_fenced_or_leaving_or_unknown_cannot_be_in_sync(orders: Any) -> None:
    orders.heartbeat(2, want_fence=True)
    assert alter(orders, 1, 2).error_code == INELIGIBLE_REPLICA
    assert alter(orders, 1, 3).error_code == 0


def test_old_versions_give_no_epochs(orders: Any) -> None:
    topic = TopicData(
        topic_id=orders.image.topics["orders"].id, partitions=[PartitionData(partition_index=0, new_isr=[1])]
    )
    request = AlterPartitionRequest(broker_id=1, broker_epoch=orders.image.brokers[1].epoch, topics=[topic])
    assert orders.do(request, version=2).topics[0].partitions[0].isr == [1]


def test_a_leader_that_recovered_says_so(make_cluster: Any) -> None:
    cluster = make_cluster()
    cluster.start(1, 2)
    cluster.create("orders", (1, 2))
    cluster.crash(2)
    cluster.crash(1)
    cluster.start(1)
    assert cluster.state("orders").leader_recovery_state == 1
    assert alter(cluster, 1, leader_recovery_state=1).error_code == 0
    answer = alter(cluster, 1, leader_recovery_state=0)
    assert (answer.error_code, answer.leader_recovery_state) == (0, 0)


def test_a_change_that_completes_a_move_may_cost_the_leader_its_place(orders: Any) -> None:
    from ottla.protocol.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        ReassignablePartition,
        ReassignableTopic,
    )

    alter(orders, 1, 2)
    move = ReassignablePartition(partition_index=0, replicas=[3])
    orders.do(
        AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=[move])])
    )

    answer = alter(orders, 1, 2, 3)

    assert answer.error_code == NEW_LEADER_ELECTED
    state = orders.state("orders")
    assert (state.replicas, state.isr, state.leader, state.removing) == ((3,), (3,), 3, ())
