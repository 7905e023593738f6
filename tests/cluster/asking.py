"""Questions to a cluster that a test has: who coordinates what, and what is committed."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.testing import cluster_state
from ottla.testing.asking import ask
from ottla.testing.cluster import TestCluster, TestNode
from ottla.testing.history import Recorder

FIND_COORDINATOR = 10
GROUP, TRANSACTION = 0, 1
SECONDS = 60.0
MOVING = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")


def coordinator(cluster: TestCluster, key: str, kind: int) -> TestNode:
    """The running node that coordinates a group or a transactional id; waits until there is one."""
    found: list[int] = []

    def is_found() -> bool:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        answer = cluster_state.of_any(
            [node.bootstrap for node in cluster.running],
            lambda bootstrap: ask(bootstrap, FIND_COORDINATOR, 4, request, timeout=5.0),
        )
        (one,) = answer.coordinators
        found[:] = [one.node_id]
        return one.error_code == 0 and one.node_id in {node.id for node in cluster.running}

    cluster_state.eventually(f"{key} has a coordinator", is_found, SECONDS)
    return cluster.node(found[0])


def committed(
    recorder: Recorder, cluster: TestCluster, group: str, partitions: Iterable[str]
) -> dict[str, int | None]:
    """The committed offsets as the coordinator has them, noted in the history."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
    operation = recorder.fetch_offsets(group)
    found: dict[str, int | None] = dict.fromkeys(partitions)

    def is_answered() -> bool:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        try:
            answer = asked[group].result(SECONDS)
        except KafkaException as error:
            # A coordinator that has just moved; librdkafka leaves it to us to ask again.
            if error.args[0].name() not in MOVING:
                raise
            return False
        for at in answer.topic_partitions:
            found[f"{at.topic}-{at.partition}"] = at.offset if at.offset >= 0 else None
        return True

    cluster_state.eventually(f"{group} has offsets", is_answered, SECONDS)
    operation.ok(offsets=found)
    return found
