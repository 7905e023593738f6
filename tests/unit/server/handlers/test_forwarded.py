"""The requests that only the controller can answer, and what a client hears when there is none."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import (
    BrokerIdNotRegistered,
    ElectionNotNeeded,
    NoReassignmentInProgress,
    NotController,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.server.handlers.alter_partition_reassignments import alter_partition_reassignments
from ottla.server.handlers.describe_quorum import describe_quorum
from ottla.server.handlers.elect_leaders import elect_leaders
from ottla.server.handlers.list_partition_reassignments import list_partition_reassignments
from ottla.server.handlers.unregister_broker import unregister_broker
from ottla.server.handlers.update_features import update_features


class NoLeader:
    is_active = True

    async def submit(self, request: Any, version: int, caller: Any = None) -> Any:
        raise NotController("no controller is active")


@pytest.fixture
def leaderless(node: Any) -> Any:
    node.quorum = NoLeader()
    return node


def test_an_election_that_is_not_needed_says_so(cluster: Any) -> None:
    cluster.create("a")
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="a", partitions=[0, 7])])
    response = cluster.call(elect_leaders, request)
    (topic,) = response.replica_election_results
    assert response.error_code == 0
    assert [(p.partition_id, p.error_code) for p in topic.partition_result] == [
        (0, ElectionNotNeeded.code),
        (7, UnknownTopicOrPartition.code),
    ]


@pytest.mark.parametrize("version", range(3))
def test_every_partition_to_elect_hears_that_no_controller_was_found(leaderless: Any, version: int) -> None:
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="a", partitions=[0, 1])])
    response = leaderless.call(elect_leaders, request, version)
    assert response.error_code == (NotController.code if version else 0)
    (topic,) = response.replica_election_results
    assert [p.error_code for p in topic.partition_result] == [NotController.code] * 2


def test_an_election_everywhere_shows_only_what_it_changed(cluster: Any) -> None:
    cluster.create("a", 2)
    response = cluster.call(elect_leaders, ElectLeadersRequest(topic_partitions=None))
    assert [(t.topic, t.partition_result) for t in response.replica_election_results] == [("a", [])]


def test_nothing_is_being_reassigned(cluster: Any) -> None:
    cluster.create("a")
    response = cluster.call(list_partition_reassignments, ListPartitionReassignmentsRequest(topics=None))
    assert (response.error_code, response.error_message, response.topics) == (0, None, [])


def test_a_reassignment_that_is_not_there_cannot_be_cancelled(cluster: Any) -> None:
    cluster.create("a")
    partitions = [ReassignablePartition(partition_index=0, replicas=None)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="a", partitions=partitions)])
    (topic,) = cluster.call(alter_partition_reassignments, request).responses
    assert [p.error_code for p in topic.partitions] == [NoReassignmentInProgress.code]


def test_only_registered_brokers_can_be_unregistered(cluster: Any) -> None:
    response = cluster.call(unregister_broker, UnregisterBrokerRequest(broker_id=9))
    assert response.error_code == BrokerIdNotRegistered.code
    assert cluster.call(unregister_broker, UnregisterBrokerRequest(broker_id=1)).error_code == 0
    assert not cluster.image.brokers


def test_a_feature_nobody_knows_is_refused(cluster: Any) -> None:
    updates = [FeatureUpdateKey(feature="nope", max_version_level=1)]
    response = cluster.call(update_features, UpdateFeaturesRequest(feature_updates=updates))
    assert response.error_code != 0
    assert "nope" in response.error_message


@pytest.mark.parametrize("version", range(3))
def test_a_feature_is_not_updated_without_a_controller(leaderless: Any, version: int) -> None:
    updates = [FeatureUpdateKey(feature="metadata.version", max_version_level=30)]
    response = leaderless.call(update_features, UpdateFeaturesRequest(feature_updates=updates), version)
    assert response.error_code == NotController.code
    assert [r.error_code for r in response.results] == ([] if version >= 2 else [NotController.code])


@pytest.mark.parametrize(
    ("handler", "request_"),
    [
        (alter_partition_reassignments, AlterPartitionReassignmentsRequest()),
        (list_partition_reassignments, ListPartitionReassignmentsRequest()),
        (describe_quorum, DescribeQuorumRequest()),
        (unregister_broker, UnregisterBrokerRequest()),
    ],
)
def test_the_request_fails_as_a_whole_without_a_controller(
    leaderless: Any, handler: Any, request_: Any
) -> None:
    response = leaderless.call(handler, request_)
    assert (response.error_code, response.error_message) == (NotController.code, "no controller is active")
