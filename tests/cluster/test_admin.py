"""What administrators do to a cluster: move replicas, elect leaders, look."""

from __future__ import annotations

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient

from kafka import KafkaAdminClient
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.testing import cluster_state
from ottla.testing.asking import ask
from ottla.testing.cluster import TestCluster
from tests.cluster.feeds import ConfluentFeed
from tests.cluster.replicas import check_replicas
from tests.cluster.test_failover import sound
from tests.interop.transactional import drain

SECONDS = 60.0
ALTER_PARTITION_REASSIGNMENTS, DESCRIBE_CLUSTER = 45, 60
BROKERS, CONTROLLERS = 1, 2


def test_every_node_names_the_cluster_its_brokers_and_its_quorum(cluster: TestCluster) -> None:
    for node in cluster.nodes:
        found = ask(node.bootstrap, DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=BROKERS))
        assert found.cluster_id == cluster.cluster_id
        assert {(each.broker_id, f"{each.host}:{each.port}") for each in found.brokers} == {
            (each.id, each.bootstrap) for each in cluster.nodes
        }
        quorum = cluster_state.quorum(node.bootstrap)
        assert quorum.leader == cluster.controller.id
        assert set(quorum.voters) == {1, 2, 3}
        assert quorum.high_watermark > 0


def test_a_topic_may_have_as_many_replicas_as_there_are_brokers(cluster: TestCluster) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    try:
        topic = cluster.topic(partitions=6)
        (found,) = admin.describe_topics([topic])
        leaders = [each["leader_id"] for each in found["partitions"]]
        assert sorted(leaders) == [1, 1, 2, 2, 3, 3]
        assert all(sorted(each["replica_nodes"]) == [1, 2, 3] for each in found["partitions"])
    finally:
        admin.close()


def test_the_preferred_leader_is_elected_when_asked(cluster: TestCluster) -> None:
    topic = cluster.topic()
    preferred = cluster.leader(topic)
    preferred.restart()
    cluster.wait_until_stable()
    assert cluster.leader(topic) is not preferred
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    partition = TopicPartition(topic, 0)
    outcome = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(SECONDS)
    assert outcome[partition] is None
    cluster_state.eventually(
        "the preferred leader leads", lambda: cluster.leader(topic) is preferred, SECONDS
    )


def reassign(cluster: TestCluster, topic: str, replicas: list[int]) -> None:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=30_000, topics=[ReassignableTopic(name=topic, partitions=[partition])]
    )
    answer = ask(cluster.controller.bootstrap, ALTER_PARTITION_REASSIGNMENTS, 0, request)
    assert answer.error_code == 0, answer
    assert [each.error_code for found in answer.responses for each in found.partitions] in ([], [0]), answer
    cluster_state.eventually(
        f"{topic} is on {replicas}",
        lambda: (
            set(cluster.state().partitions[f"{topic}-0"].replicas) == set(replicas)
            and set(cluster.state().partitions[f"{topic}-0"].isr) == set(replicas)
        ),
        SECONDS,
    )


def test_replicas_move_while_a_client_writes(cluster: TestCluster) -> None:
    topic = cluster.topic(replication_factor=1)
    home = cluster.leader(topic).id
    others = [node.id for node in cluster.nodes if node.id != home]
    with ConfluentFeed(cluster.bootstrap, topic, 1) as feed:
        feed.more(20)
        reassign(cluster, topic, [home, *others])
        feed.more(20)
        reassign(cluster, topic, [others[0]])
        assert cluster.leader(topic).id == others[0]
        feed.more(20)
    assert not feed.failed
    sound([feed.recorder, drain(cluster.bootstrap, feed.names(), committed=False)])
    check_replicas(cluster)
    for id in (home, others[1]):
        directory = cluster.node(id).data_dir / f"{topic}-0"
        cluster_state.eventually(f"{directory} is gone", lambda at=directory: not at.exists(), SECONDS)
