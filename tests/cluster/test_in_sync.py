"""How many replicas have to be in sync, and what a producer hears when they are not."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer

from ottla.testing import cluster_state
from ottla.testing.cluster import TestCluster
from tests.cluster.replicas import check_replicas

SECONDS = 60.0


def send(cluster: TestCluster, topic: str, value: str, timeout_ms: int) -> KafkaError | None:
    """One record with acks=all, from a producer that gives up soon."""
    outcome: list[KafkaError | None] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "message.timeout.ms": timeout_ms,
            "request.timeout.ms": min(timeout_ms, 2000),
            "retries": 0,
            "log_level": 2,
        }
    )
    producer.produce(topic, value, partition=0, on_delivery=lambda error, _: outcome.append(error))
    assert producer.flush(SECONDS) == 0
    return outcome[0]


def test_too_few_in_sync_replicas_refuse_writes_until_they_are_back(cluster: TestCluster) -> None:
    topic = cluster.topic(replication_factor=2, min_insync_replicas=2)
    assert send(cluster, topic, "both", 10_000) is None
    leader = cluster.leader(topic)
    partition = cluster.state().partitions[f"{topic}-0"]
    other = cluster.node(next(id for id in partition.replicas if id != leader.id))
    other.kill()
    cluster_state.eventually(
        "the in-sync set shrinks",
        lambda: cluster.state().partitions[f"{topic}-0"].isr == (leader.id,),
        SECONDS,
    )
    error = send(cluster, topic, "one", 10_000)
    assert error is not None and error.name() == "NOT_ENOUGH_REPLICAS"
    other.start()
    cluster.wait_until_stable()
    assert send(cluster, topic, "both again", 10_000) is None
    check_replicas(cluster)


@pytest.mark.heavy
def test_without_a_majority_nothing_is_acknowledged(cluster: TestCluster) -> None:
    topic = cluster.topic(min_insync_replicas=2)
    assert send(cluster, topic, "all", 10_000) is None
    leader = cluster.leader(topic)
    others = [node for node in cluster.nodes if node is not leader]
    for node in others:
        node.kill()
    error = send(cluster, topic, "alone", 4000)
    assert error is not None
    cluster.start()
    cluster.wait_until_stable()
    assert send(cluster, topic, "together", 20_000) is None
    check_replicas(cluster)
