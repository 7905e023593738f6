"""CreateTopics, DeleteTopics and CreatePartitions: what the controller decided can be used at once."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.ids import ZERO_UUID
from ottla.protocol.errors import (
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidRequest,
    NotController,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.server.handlers.create_partitions import create_partitions
from ottla.server.handlers.create_topics import create_topics
from ottla.server.handlers.delete_topics import delete_topics


class NoLeader:
    """A quorum in the middle of an election."""

    is_active = True

    async def submit(self, request: Any, version: int, caller: Any = None) -> Any:
        raise NotController("no controller is active")


def create(
    *names: str, partitions: int = 1, replicas: int = 1, validate_only: bool = False
) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=n, num_partitions=partitions, replication_factor=replicas) for n in names]
    return CreateTopicsRequest(topics=topics, validate_only=validate_only)


def test_a_created_topic_can_be_used_when_the_answer_comes(cluster: Any) -> None:
    response = cluster.call(create_topics, create("a", partitions=3))
    (topic,) = response.topics
    assert (topic.error_code, topic.num_partitions, topic.replication_factor) == (0, 3, 1)
    assert topic.topic_id == cluster.image.topics["a"].id
    assert [cluster.partition("a", index).is_leader for index in range(3)] == [True] * 3
    cluster.produce("a", 1, index=2)


def test_topics_are_refused_one_by_one(cluster: Any) -> None:
    cluster.create("there")
    response = cluster.call(create_topics, create("there", "new"))
    assert {t.name: t.error_code for t in response.topics} == {"there": TopicAlreadyExists.code, "new": 0}
    response = cluster.call(create_topics, create("wide", replicas=9))
    assert [t.error_code for t in response.topics] == [InvalidReplicationFactor.code]


def test_validating_creates_nothing(cluster: Any) -> None:
    response = cluster.call(create_topics, create("a", validate_only=True))
    assert [(t.error_code, t.topic_id) for t in response.topics] == [(0, ZERO_UUID)]
    assert cluster.replicas.find("a", 0) is None


@pytest.mark.parametrize("version", range(8))
def test_topics_are_created_in_every_version(cluster: Any, version: int) -> None:
    response = cluster.call(create_topics, create("a"), version)
    assert [t.error_code for t in response.topics] == [0]


def test_every_topic_hears_that_no_controller_was_found(node: Any) -> None:
    node.quorum = NoLeader()
    response = node.call(create_topics, create("a", "b"))
    assert [(t.name, t.error_code, t.error_message) for t in response.topics] == [
        ("a", NotController.code, "no controller is active"),
        ("b", NotController.code, "no controller is active"),
    ]


def test_a_deleted_topic_is_gone_when_the_answer_comes(cluster: Any) -> None:
    topic_id = cluster.create("a", 2)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="a"), DeleteTopicState(name="nope")])
    response = cluster.call(delete_topics, request)
    assert [(t.name, t.topic_id, t.error_code) for t in response.responses] == [
        ("a", topic_id, 0),
        ("nope", ZERO_UUID, UnknownTopicOrPartition.code),
    ]
    assert len(cluster.replicas) == 0


def test_a_topic_is_deleted_by_id(cluster: Any) -> None:
    topic_id = cluster.create("a")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)])
    assert [t.error_code for t in cluster.call(delete_topics, request).responses] == [0]
    assert [t.error_code for t in cluster.call(delete_topics, request).responses] == [UnknownTopicId.code]


@pytest.mark.parametrize("version", range(6))
def test_topics_are_deleted_by_name_in_older_versions(cluster: Any, version: int) -> None:
    cluster.create("a")
    response = cluster.call(delete_topics, DeleteTopicsRequest(topic_names=["a", "nope"]), version)
    assert {t.name: t.error_code for t in response.responses} == {
        "a": 0,
        "nope": UnknownTopicOrPartition.code,
    }


def test_deletion_can_be_disabled(make_node: Any) -> None:
    node = make_node(delete_topic_enable="false")
    node.register()
    node.use_controller()
    node.create("a")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")])
    assert [t.error_code for t in node.call(delete_topics, request).responses] == [TopicDeletionDisabled.code]
    response = node.call(delete_topics, DeleteTopicsRequest(topic_names=["a"]), 2)
    assert [t.error_code for t in response.responses] == [InvalidRequest.code]
    assert node.replicas.find("a", 0) is not None


@pytest.mark.parametrize("version", [5, 6])
def test_every_topic_to_delete_hears_that_no_controller_was_found(node: Any, version: int) -> None:
    topic_id = node.create("a")
    node.quorum = NoLeader()
    if version >= 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)])
    else:
        request = DeleteTopicsRequest(topic_names=["a"])
    (topic,) = node.call(delete_topics, request, version).responses
    assert (topic.error_code, topic.error_message) == (NotController.code, "no controller is active")
    assert (topic.name, topic.topic_id) == ((None, topic_id) if version >= 6 else ("a", ZERO_UUID))


def test_new_partitions_can_be_used_when_the_answer_comes(cluster: Any) -> None:
    cluster.create("a", 2)
    topics = [
        CreatePartitionsTopic(name="a", count=4, assignments=None),
        CreatePartitionsTopic(name="nope", count=4, assignments=None),
    ]
    response = cluster.call(create_partitions, CreatePartitionsRequest(topics=topics))
    assert {t.name: t.error_code for t in response.results} == {"a": 0, "nope": UnknownTopicOrPartition.code}
    assert cluster.partition("a", 3).is_leader


def test_partitions_only_become_more(cluster: Any) -> None:
    cluster.create("a", 2)
    topics = [CreatePartitionsTopic(name="a", count=1, assignments=None)]
    response = cluster.call(create_partitions, CreatePartitionsRequest(topics=topics))
    assert [t.error_code for t in response.results] == [InvalidPartitions.code]


def test_every_topic_to_grow_hears_that_no_controller_was_found(node: Any) -> None:
    node.quorum = NoLeader()
    topics = [CreatePartitionsTopic(name="a", count=1, assignments=None)]
    response = node.call(create_partitions, CreatePartitionsRequest(topics=topics))
    assert [(t.name, t.error_code) for t in response.results] == [("a", NotController.code)]
