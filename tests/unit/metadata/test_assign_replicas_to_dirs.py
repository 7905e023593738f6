from __future__ import annotations

from typing import Any

from ottla.core.ids import UNASSIGNED_DIRECTORY, Uuid
from ottla.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6
STALE_BROKER_EPOCH = 77
UNKNOWN_TOPIC_ID = 100

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


def assign(
    cluster: Any, directory: Uuid, broker: int = 1, topic_id: Uuid | None = None, partition: int = 0
) -> int:
    topic = TopicData(
        topic_id=topic_id or cluster.image.topics["orders"].id,
        partitions=[PartitionData(partition_index=partition)],
    )
    request = AssignReplicasToDirsRequest(
        broker_id=broker,
        broker_epoch=cluster.image.brokers[broker].epoch,
        directories=[DirectoryData(id=directory, topics=[topic])],
    )
    code: int = cluster.do(request).directories[0].topics[0].partitions[0].error_code
    return code


def test_a_broker_says_where_it_put_a_replica(make_cluster: Any) -> None:
    cluster = make_cluster()
    cluster.start(1, log_dirs=[ONE, TWO])
    cluster.start(2)
    cluster.create("orders", (1, 2))
    assert cluster.state("orders").directory(1) == UNASSIGNED_DIRECTORY

    assert assign(cluster, TWO) == 0

    assert cluster.state("orders").directory(1) == TWO
    assert cluster.state("orders").leader_epoch == 0


def test_a_directory_that_is_offline_leads_nothing(make_cluster: Any) -> None:
    cluster = make_cluster()
    cluster.start(1, log_dirs=[ONE, TWO])
    cluster.start(2)
    cluster.create("orders", (1, 2))
    cluster.heartbeat(1, offline_log_dirs=[TWO])
    assert cluster.image.brokers[1].directories == (ONE,)
    assert cluster.state("orders").leader == 1

    assert assign(cluster, TWO) == 0

    assert cluster.state("orders").leader == 2


def test_only_a_replica_has_a_place(cluster: Any) -> None:
    cluster.create("orders", (1,))
    assert assign(cluster, ONE, topic_id=TWO) == UNKNOWN_TOPIC_ID
    assert assign(cluster, ONE, partition=3) == UNKNOWN_TOPIC_OR_PARTITION
    assert assign(cluster, ONE, broker=2) == NOT_LEADER_OR_FOLLOWER
    stale = AssignReplicasToDirsRequest(broker_id=1, broker_epoch=4711)
    assert cluster.do(stale).error_code == STALE_BROKER_EPOCH
