"""librdkafka's AdminClient."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.interop.clients import ConfluentProducer
from tests.interop.topics import Names, eventually

SECONDS = 30.0


def error_of(future: object) -> int:
    with pytest.raises(KafkaException) as refused:
        future.result(SECONDS)  # type: ignore[attr-defined]
    return int(refused.value.args[0].code())


def test_a_topic_is_created_listed_described_and_deleted(admin: AdminClient, unique: Names) -> None:
    name = unique("lifecycle")
    wanted = NewTopic(name, num_partitions=3, replication_factor=1, config={"retention.ms": "5000"})
    admin.create_topics([wanted])[name].result(SECONDS)
    eventually(lambda: name in admin.list_topics(timeout=SECONDS).topics)
    assert error_of(admin.create_topics([wanted])[name]) == KafkaError.TOPIC_ALREADY_EXISTS

    described = admin.describe_topics(TopicCollection([name]))[name].result(SECONDS)
    assert (described.name, described.is_internal) == (name, False)
    assert [partition.id for partition in described.partitions] == [0, 1, 2]
    assert all(len(partition.isr) == 1 and partition.leader for partition in described.partitions)

    admin.delete_topics([name])[name].result(SECONDS)
    eventually(lambda: name not in admin.list_topics(timeout=SECONDS).topics)
    assert error_of(admin.delete_topics([name])[name]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_partitions_are_added(admin: AdminClient, topic: str) -> None:
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(SECONDS)
    eventually(lambda: len(admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions) == 5)
    shrunk = admin.create_partitions([NewPartitions(topic, 2)])[topic]
    assert error_of(shrunk) == KafkaError.INVALID_PARTITIONS


def test_configs_are_described_and_altered(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(SECONDS)
    assert found["retention.ms"].value == "604800000"
    assert found["retention.ms"].is_default

    def change(name: str, operation: AlterConfigOpType, value: str | None) -> None:
        entry = ConfigEntry(name, value, incremental_operation=operation)
        changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([changed])[changed].result(SECONDS)

    def value(name: str) -> str:
        return str(admin.describe_configs([resource])[resource].result(SECONDS)[name].value)

    change("retention.ms", AlterConfigOpType.SET, "1000")
    eventually(lambda: value("retention.ms") == "1000")
    change("cleanup.policy", AlterConfigOpType.APPEND, "compact")
    eventually(lambda: value("cleanup.policy") == "delete,compact")
    change("retention.ms", AlterConfigOpType.DELETE, None)
    eventually(lambda: value("retention.ms") == "604800000")
    with pytest.raises(KafkaException) as refused:
        change("no.such.config", AlterConfigOpType.SET, "1")
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_the_broker_describes_its_configs(admin: AdminClient) -> None:
    (broker,) = admin.list_topics(timeout=SECONDS).brokers
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    found = admin.describe_configs([resource])[resource].result(SECONDS)
    assert found["num.partitions"].value == "1"
    assert found["log.retention.hours"].value == "168"


def test_the_cluster_describes_itself(admin: AdminClient, bootstrap: str) -> None:
    found = admin.describe_cluster(include_authorized_operations=True).result(SECONDS)
    (node,) = found.nodes
    assert f"{node.host}:{node.port}" == bootstrap
    assert found.controller.id == node.id
    assert found.cluster_id == admin.list_topics(timeout=SECONDS).cluster_id
    assert found.authorized_operations


def test_offsets_are_listed_by_place_and_by_time(admin: AdminClient, bootstrap: str, topic: str) -> None:
    base = round(time.time() * 1000) - 1_000_000
    producer = ConfluentProducer(bootstrap)
    for number in (0, 1, 9, 3, 4):
        producer.send(topic, b"x", timestamp=base + 1000 * number)
    producer.flush()

    def offset(spec: OffsetSpec) -> int:
        partition = TopicPartition(topic, 0)
        return int(admin.list_offsets({partition: spec})[partition].result(SECONDS).offset)

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 5
    assert offset(OffsetSpec.max_timestamp()) == 2
    assert offset(OffsetSpec.for_timestamp(base + 500)) == 1
    assert offset(OffsetSpec.for_timestamp(base + 3000)) == 2
    assert offset(OffsetSpec.for_timestamp(base + 9001)) == -1


def test_records_are_deleted(admin: AdminClient, bootstrap: str, topic: str) -> None:
    producer = ConfluentProducer(bootstrap)
    for _ in range(10):
        producer.send(topic, b"x")
    producer.flush()
    partition = TopicPartition(topic, 0, 4)
    deleted = admin.delete_records([partition])[partition].result(SECONDS)
    assert deleted.low_watermark == 4
    found = admin.list_offsets({partition: OffsetSpec.earliest()})[partition].result(SECONDS)
    assert found.offset == 4
    beyond = TopicPartition(topic, 0, 99)
    assert error_of(admin.delete_records([beyond])[beyond]) == KafkaError.OFFSET_OUT_OF_RANGE


def test_a_leader_that_leads_is_not_elected_again(admin: AdminClient, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    found = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(SECONDS)
    assert found[partition].code() == KafkaError.ELECTION_NOT_NEEDED


def test_two_hundred_topics_at_once(admin: AdminClient, unique: Names) -> None:
    names = [unique("many") for _ in range(200)]
    created = admin.create_topics([NewTopic(name, num_partitions=1) for name in names])
    for future in created.values():
        future.result(SECONDS)
    eventually(lambda: set(names) <= set(admin.list_topics(timeout=SECONDS).topics))
    for future in admin.delete_topics(names).values():
        future.result(SECONDS)
    eventually(lambda: not set(names) & set(admin.list_topics(timeout=SECONDS).topics))
