from __future__ import annotations

from typing import Any

from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

PREFERRED, UNCLEAN = 0, 1
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_REQUEST = 42
PREFERRED_LEADER_NOT_AVAILABLE = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84


def elect(cluster: Any, kind: int, *partitions: int, topic: str = "orders") -> list[tuple[int, int]]:
    asked = [TopicPartitions(topic=topic, partitions=list(partitions))] if partitions else None
    response = cluster.do(ElectLeadersRequest(election_type=kind, topic_partitions=asked))
    return [
        (result.partition_id, result.error_code)
        for each in response.replica_election_results
        for result in each.partition_result
    ]


def test_the_preferred_leader_comes_back(cluster: Any) -> None:
    cluster.create("orders", (1, 2, 3), (2, 3, 1))
    cluster.crash(1)
    assert elect(cluster, PREFERRED, 0, 1) == [
        (0, PREFERRED_LEADER_NOT_AVAILABLE),
        (1, ELECTION_NOT_NEEDED),
    ]
    cluster.start(1)
    from ottla.protocol.messages.alter_partition import (
        AlterPartitionRequest,
        BrokerState,
        PartitionData,
        TopicData,
    )

    state = cluster.state("orders")
    grow = PartitionData(
        partition_index=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=broker) for broker in (1, 2, 3)],
    )
    topic = TopicData(topic_id=cluster.image.topics["orders"].id, partitions=[grow])
    cluster.do(
        AlterPartitionRequest(broker_id=2, broker_epoch=cluster.image.brokers[2].epoch, topics=[topic])
    )

    assert elect(cluster, PREFERRED, 0) == [(0, 0)]
    assert cluster.state("orders").leader == 1


def test_without_a_list_only_what_needed_an_election_is_told(cluster: Any) -> None:
    cluster.create("orders", (1, 2), (2, 1))
    assert elect(cluster, PREFERRED) == []
    cluster.crash(1)
    assert elect(cluster, PREFERRED) == [(0, PREFERRED_LEADER_NOT_AVAILABLE)]


def test_anyone_alive_leads_after_an_unclean_election(make_cluster: Any) -> None:
    cluster = make_cluster(elr=False)
    cluster.start(1, 2)
    cluster.create("orders", (1, 2))
    cluster.crash(2)
    cluster.crash(1)
    assert elect(cluster, UNCLEAN, 0) == [(0, ELIGIBLE_LEADERS_NOT_AVAILABLE)]
    cluster.start(2)
    assert cluster.state("orders").leader == -1

    assert elect(cluster, UNCLEAN, 0) == [(0, 0)]

    state = cluster.state("orders")
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), 1)
    assert elect(cluster, UNCLEAN, 0) == [(0, ELECTION_NOT_NEEDED)]


def test_a_topic_may_allow_unclean_leaders_by_itself(make_cluster: Any) -> None:
    cluster = make_cluster(elr=False)
    cluster.start(1, 2)
    cluster.create("orders", (1, 2), unclean_leader_election_enable="true")
    cluster.crash(2)
    cluster.crash(1)
    cluster.start(2)
    assert cluster.state("orders").leader == 2


def test_there_is_nothing_to_elect_for_what_is_not_there(cluster: Any) -> None:
    cluster.create("orders", (1,))
    assert elect(cluster, PREFERRED, 5) == [(5, UNKNOWN_TOPIC_OR_PARTITION)]
    assert elect(cluster, PREFERRED, 0, topic="missing") == [(0, UNKNOWN_TOPIC_OR_PARTITION)]
    assert cluster.do(ElectLeadersRequest(election_type=7)).error_code == INVALID_REQUEST
