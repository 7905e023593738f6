from __future__ import annotations

from typing import Any

import pytest

from ottla.metadata import balancing
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from tests.unit.metadata.cluster import Cluster

MINUTE_MS = 60_000


def pass_time(cluster: Any, milliseconds: int) -> None:
    """Time in which all brokers that serve go on doing so."""
    cluster.now_ms += milliseconds
    for broker in cluster.image.brokers.values():
        if not broker.fenced:
            cluster.heartbeat(broker.id)
    while records := cluster.controller.expire(cluster.now_ms):
        cluster.apply(records)


def grow_isr(cluster: Any, topic: str, *brokers: int, partition: int = 0) -> None:
    state = cluster.state(topic, partition)
    data = PartitionData(
        partition_index=partition,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=broker) for broker in brokers],
    )
    wanted = TopicData(topic_id=cluster.image.topics[topic].id, partitions=[data])
    epoch = cluster.image.brokers[state.leader].epoch
    cluster.do(AlterPartitionRequest(broker_id=state.leader, broker_epoch=epoch, topics=[wanted]))


def test_leadership_goes_back_to_the_preferred_replica_after_a_while(cluster: Any) -> None:
    cluster.create("orders", (1, 2, 3))
    cluster.crash(1)
    cluster.start(1)
    pass_time(cluster, 5 * MINUTE_MS)
    assert cluster.state("orders").leader == 2  # it is not in sync yet

    grow_isr(cluster, "orders", 1, 2, 3)
    assert cluster.state("orders").leader == 2
    assert cluster.controller.deadline() is not None
    pass_time(cluster, 5 * MINUTE_MS)
    assert cluster.state("orders").leader == 1


def test_leadership_stays_where_it_is_if_that_is_wished() -> None:
    cluster = Cluster(balances_leaders=False)
    cluster.start(1, 2, 3)
    cluster.create("orders", (1, 2, 3))
    cluster.crash(1)
    cluster.start(1)
    grow_isr(cluster, "orders", 1, 2, 3)
    pass_time(cluster, 60 * MINUTE_MS)
    assert cluster.state("orders").leader == 2


def test_many_leaders_are_moved_in_several_goes(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balancing, "ELECTIONS_MAX", 2)
    cluster.create("orders", *[(1, 2)] * 5)
    cluster.crash(1)
    cluster.start(1)
    for number in range(5):
        grow_isr(cluster, "orders", 1, 2, partition=number)

    def led_by_one() -> int:
        return sum(state.leader == 1 for _, _, state in cluster.image.partitions())

    pass_time(cluster, 5 * MINUTE_MS)
    assert led_by_one() == 2
    pass_time(cluster, 1)
    assert led_by_one() == 4
    pass_time(cluster, 1)
    assert led_by_one() == 5


def test_a_topic_that_may_lose_records_gets_a_leader_in_the_end(cluster: Any) -> None:
    cluster.create("orders", (1, 2), min_insync_replicas="1")
    cluster.crash(2)
    cluster.crash(1)
    cluster.start(2)
    assert cluster.state("orders").leader == -1
    pass_time(cluster, 5 * MINUTE_MS)
    assert cluster.state("orders").leader == -1

    from ottla.protocol.stored.metadata import ConfigRecord

    name = "unclean.leader.election.enable"
    cluster.apply([ConfigRecord(resource_type=2, resource_name="orders", name=name, value="true")])
    pass_time(cluster, 5 * MINUTE_MS)
    state = cluster.state("orders")
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), 1)
