from __future__ import annotations

from typing import Any

import pytest

from ottla.core.ids import ZERO_UUID
from ottla.metadata.image import TOPIC_RESOURCE
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.stored.metadata import ClearElrRecord, ConfigRecord, PartitionRecord, TopicRecord

NONE = 0
INVALID_TOPIC = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
INVALID_REQUEST = 42
POLICY_VIOLATION = 44


def topic(name: str = "orders", partitions: int = 1, factor: int = 1, **given: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, **given)


def by_hand(*replicas: list[int], name: str = "orders", start: int = 0) -> CreatableTopic:
    return topic(
        name,
        -1,
        -1,
        assignments=[
            CreatableReplicaAssignment(partition_index=start + number, broker_ids=ids)
            for number, ids in enumerate(replicas)
        ],
    )


def create(cluster: Any, *topics: CreatableTopic, **given: Any) -> list[Any]:
    answers: list[Any] = cluster.do(CreateTopicsRequest(topics=list(topics), **given)).topics
    return answers


def test_a_topic_is_its_record_then_its_configs_then_its_partitions(cluster: Any) -> None:
    configs = [CreatableTopicConfig(name="retention.ms", value="1000")]
    (answer,) = create(cluster, topic(partitions=2, factor=3, configs=configs))

    kinds = [type(record) for record in cluster.last]
    assert kinds == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (NONE, 2, 3)
    assert answer.topic_id == cluster.image.topics["orders"].id
    assert cluster.image.config(TOPIC_RESOURCE, "orders") == {"retention.ms": "1000"}
    for state in cluster.image.topics["orders"].partitions.values():
        assert sorted(state.replicas) == [1, 2, 3]
        assert state.isr == state.replicas
        assert state.leader == state.replicas[0]
        assert (state.leader_epoch, state.partition_epoch) == (0, 0)


def test_the_answer_tells_the_configs_that_the_topic_will_go_by(cluster: Any) -> None:
    (answer,) = create(cluster, topic(configs=[CreatableTopicConfig(name="retention.ms", value="1000")]))

    named = {config.name: config for config in answer.configs}
    assert (named["retention.ms"].value, named["retention.ms"].config_source) == ("1000", 1)
    assert named["cleanup.policy"].value == "delete"
    # The cluster's default, which tracking eligible replicas asks for.
    assert (named["min.insync.replicas"].value, named["min.insync.replicas"].config_source) == ("1", 3)
    assert list(named) == sorted(named)


def test_defaults_stand_in_for_minus_one(make_cluster: Any) -> None:
    cluster = make_cluster(default_partitions=4, default_replication_factor=2)
    cluster.start(1, 2)

    (answer,) = create(cluster, topic(partitions=-1, factor=-1))

    assert (answer.num_partitions, answer.replication_factor) == (4, 2)


def test_validating_only_writes_nothing_and_gives_no_id(cluster: Any) -> None:
    (answer,) = create(cluster, topic(), validate_only=True)

    assert (answer.error_code, answer.topic_id, answer.num_partitions) == (NONE, ZERO_UUID, 1)
    assert cluster.last == []


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (topic(""), INVALID_TOPIC),
        (topic("."), INVALID_TOPIC),
        (topic(".."), INVALID_TOPIC),
        (topic("a" * 250), INVALID_TOPIC),
        (topic("a/b"), INVALID_TOPIC),
        (topic("ünder"), INVALID_TOPIC),
        (topic("__cluster_metadata"), INVALID_REQUEST),
        (topic(partitions=0), INVALID_PARTITIONS),
        (topic(partitions=-2), INVALID_PARTITIONS),
        (topic(factor=0), INVALID_REPLICATION_FACTOR),
        (topic(factor=-2), INVALID_REPLICATION_FACTOR),
        (topic(factor=4), INVALID_REPLICATION_FACTOR),
        (topic(configs=[CreatableTopicConfig(name="no.such", value="1")]), INVALID_CONFIG),
        (topic(configs=[CreatableTopicConfig(name="segment.bytes", value="1000")]), INVALID_CONFIG),
        (topic(configs=[CreatableTopicConfig(name="retention.ms", value=None)]), INVALID_CONFIG),
        (topic(partitions=10_001), POLICY_VIOLATION),
        (by_hand([1, 2], [2]), INVALID_REPLICA_ASSIGNMENT),
        (by_hand([1, 1]), INVALID_REPLICA_ASSIGNMENT),
        (by_hand([]), INVALID_REPLICA_ASSIGNMENT),
        (by_hand([9]), INVALID_REPLICA_ASSIGNMENT),
        (by_hand([1], start=1), INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_be_created_is_refused_and_leaves_nothing(
    cluster: Any, wanted: CreatableTopic, error: int
) -> None:
    (answer,) = create(cluster, wanted)

    assert answer.error_code == error
    assert answer.error_message
    assert cluster.last == []


def test_counts_and_replicas_by_hand_do_not_go_together(cluster: Any) -> None:
    for change in ({"num_partitions": 1}, {"replication_factor": 1}):
        wanted = by_hand([1])
        for name, value in change.items():
            setattr(wanted, name, value)
        assert create(cluster, wanted)[0].error_code == INVALID_REQUEST


def test_the_same_partition_by_hand_twice_is_refused(cluster: Any) -> None:
    wanted = by_hand([1], [1])
    wanted.assignments[1].partition_index = 0
    assert create(cluster, wanted)[0].error_code == INVALID_REPLICA_ASSIGNMENT


def test_a_topic_exists_once(cluster: Any) -> None:
    create(cluster, topic())
    assert create(cluster, topic())[0].error_code == TOPIC_ALREADY_EXISTS


def test_a_name_that_a_metric_could_not_tell_from_another_is_refused(cluster: Any) -> None:
    create(cluster, topic("x_y"))

    (answer,) = create(cluster, topic("x.y"))

    assert answer.error_code == INVALID_TOPIC
    assert answer.error_message == "Topic 'x.y' collides with existing topic: x_y"


def test_a_name_given_twice_gets_one_answer(cluster: Any) -> None:
    (answer,) = create(cluster, topic(), topic())

    assert (answer.error_code, answer.error_message) == (INVALID_REQUEST, "Duplicate topic name.")


def test_one_bad_topic_does_not_hold_up_the_others(cluster: Any) -> None:
    answers = create(cluster, topic("good"), topic("bad", factor=9), topic("fine"))

    assert [answer.error_code for answer in answers] == [NONE, INVALID_REPLICATION_FACTOR, NONE]
    assert set(cluster.image.topics) == {"good", "fine"}


def test_without_a_broker_that_serves_there_is_no_topic(make_cluster: Any) -> None:
    cluster = make_cluster()
    assert create(cluster, topic())[0].error_code == INVALID_REPLICATION_FACTOR
    cluster.register(1)
    assert create(cluster, topic())[0].error_code == INVALID_REPLICATION_FACTOR
    assert create(cluster, by_hand([1]))[0].error_code == INVALID_REPLICA_ASSIGNMENT


def test_a_fenced_replica_is_placed_but_not_in_sync(cluster: Any) -> None:
    cluster.heartbeat(2, want_fence=True)

    create(cluster, by_hand([2, 1]))

    state = cluster.state("orders")
    assert (state.replicas, state.isr, state.leader) == ((2, 1), (1,), 1)


def test_a_replica_goes_to_the_only_directory_or_waits_for_the_broker_to_choose(make_cluster: Any) -> None:
    from ottla.core.ids import UNASSIGNED_DIRECTORY, Uuid

    cluster = make_cluster()
    one, two, three = (Uuid(bytes([50 + number]) * 16) for number in range(3))
    cluster.start(1, log_dirs=[one])
    cluster.start(2, log_dirs=[two, three])

    create(cluster, by_hand([1, 2]))

    assert cluster.state("orders").directories == (one, UNASSIGNED_DIRECTORY)


def test_a_topic_with_its_own_min_isr_starts_with_a_clean_slate(cluster: Any) -> None:
    create(cluster, topic(configs=[CreatableTopicConfig(name="min.insync.replicas", value="1")]))

    kinds = [type(record) for record in cluster.last]
    assert kinds == [TopicRecord, ConfigRecord, ClearElrRecord, PartitionRecord]
