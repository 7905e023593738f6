"""Groups and their offsets as administrators see and change them, with two admin clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from kafka.admin import MemberToRemove
from kafka.errors import GroupSubscribedToTopicError

from kafka import KafkaAdminClient, OffsetAndMetadata
from kafka import TopicPartition as PythonPartition
from tests.interop.clients import ConfluentProducer
from tests.interop.topics import Names, NewTopic, eventually

SECONDS = 30.0
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@contextmanager
def member(bootstrap: str, group: str, topic: str, protocol: str, **settings: Any) -> Iterator[Consumer]:
    """A member that has its partitions and has read the first record."""
    words = {name.replace("_", "."): value for name, value in settings.items()}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "a-member",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            **words,
        }
    )
    consumer.subscribe([topic])
    try:
        eventually(lambda: consumer.poll(0.05) is not None)
        yield consumer
    finally:
        consumer.close()


def fill(bootstrap: str, topic: str) -> None:
    producer = ConfluentProducer(bootstrap)
    for partition in (0, 1):
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=partition)
    producer.flush()


def offsets(admin: AdminClient, group: str) -> dict[tuple[str | None, int | None], int | None]:
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {(at.topic, at.partition): at.offset for at in future.result(SECONDS).topic_partitions}


def alter(admin: AdminClient, group: str, topic: str, *offsets: int) -> list[TopicPartition]:
    """One offset for each partition."""
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in enumerate(offsets)]
    (future,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)]).values()
    return list(future.result(SECONDS).topic_partitions)


@PROTOCOLS
def test_a_group_is_listed_and_described(
    bootstrap: str, admin: AdminClient, new_topic: NewTopic, unique: Names, protocol: str
) -> None:
    topic, group = new_topic(partitions=2), unique("group")
    fill(bootstrap, topic)
    type = ConsumerGroupType[protocol.upper()]
    with member(bootstrap, group, topic, protocol):
        listed = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}, types={type}).result(SECONDS)
        (found,) = [each for each in listed.valid if each.group_id == group]
        assert (found.type, found.state) == (type, ConsumerGroupState.STABLE)
        (future,) = admin.describe_consumer_groups([group]).values()
        described = future.result(SECONDS)
        assert (described.state, described.type) == (ConsumerGroupState.STABLE, type)
        (only,) = described.members
        assert (only.client_id, only.host) == ("a-member", "/127.0.0.1")
        assigned = {(at.topic, at.partition) for at in only.assignment.topic_partitions}
        assert assigned == {(topic, 0), (topic, 1)}
    empty = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(SECONDS)
    assert group in {each.group_id for each in empty.valid}


@PROTOCOLS
def test_offsets_are_altered_while_nobody_is_there(
    bootstrap: str, admin: AdminClient, new_topic: NewTopic, unique: Names, protocol: str
) -> None:
    topic, group = new_topic(partitions=2), unique("group")
    fill(bootstrap, topic)
    with member(bootstrap, group, topic, protocol) as consumer:
        committed = [TopicPartition(topic, 0, 4), TopicPartition(topic, 1, 6)]
        consumer.commit(offsets=committed, asynchronous=False)
        assert offsets(admin, group) == {(topic, 0): 4, (topic, 1): 6}
        try:
            refused = [each.error.code() for each in alter(admin, group, topic, 9) if each.error]
        except KafkaException as error:
            refused = [error.args[0].code()]
        assert refused == [KafkaError.UNKNOWN_MEMBER_ID]
        assert offsets(admin, group) == {(topic, 0): 4, (topic, 1): 6}
    alter(admin, group, topic, 9, 10)
    assert offsets(admin, group) == {(topic, 0): 9, (topic, 1): 10}
    # A member that comes back goes on from there: one record is left.
    with member(bootstrap, group, topic, protocol) as consumer:
        assert [at.offset for at in consumer.position([TopicPartition(topic, 0)])] == [10]
        assert consumer.poll(0.2) is None


@PROTOCOLS
def test_a_group_is_deleted_when_nobody_is_there(
    bootstrap: str, admin: AdminClient, new_topic: NewTopic, unique: Names, protocol: str
) -> None:
    topic, group = new_topic(partitions=2), unique("group")
    fill(bootstrap, topic)
    with member(bootstrap, group, topic, protocol) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups([group])[group].result(SECONDS)
        assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    admin.delete_consumer_groups([group])[group].result(SECONDS)
    assert offsets(admin, group) == {}
    assert group not in {each.group_id for each in admin.list_consumer_groups().result(SECONDS).valid}
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([group])[group].result(SECONDS)
    assert refused.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


def test_offsets_with_kafka_python(bootstrap: str, new_topic: NewTopic, unique: Names) -> None:
    """A group without members, which exists because somebody committed to it."""
    topic, group = new_topic(partitions=2), unique("group")
    fill(bootstrap, topic)
    first, second = PythonPartition(topic, 0), PythonPartition(topic, 1)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        wanted = {first: OffsetAndMetadata(3, "why", -1), second: OffsetAndMetadata(7, "", -1)}
        admin.alter_group_offsets(group, wanted)
        found = admin.list_group_offsets({group: None})[group]
        assert (found[first].offset, found[first].metadata, found[second].offset) == (3, "why", 7)
        admin.delete_group_offsets(group, [first])
        found = admin.list_group_offsets({group: None})[group]
        assert first not in found or found[first].offset == -1
        assert found[second].offset == 7
    finally:
        admin.close()


def test_offsets_of_a_topic_that_is_being_read_are_not_deleted(
    bootstrap: str, new_topic: NewTopic, unique: Names
) -> None:
    topic, group = new_topic(partitions=2), unique("group")
    fill(bootstrap, topic)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        with member(bootstrap, group, topic, "classic") as consumer:
            consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
            partition = PythonPartition(topic, 0)
            result = admin.delete_group_offsets(group, [partition])
            assert result[partition] is GroupSubscribedToTopicError
            assert admin.list_group_offsets({group: None})[group][partition].offset == 4
    finally:
        admin.close()


def test_a_static_member_is_removed_by_its_instance(
    bootstrap: str, admin: AdminClient, new_topic: NewTopic, unique: Names
) -> None:
    """It is gone for days and its partitions wait for it: an administrator lets it go."""
    topic, group = new_topic(partitions=2), unique("group")
    fill(bootstrap, topic)
    with member(bootstrap, group, topic, "classic", group_instance_id="one", session_timeout_ms=300_000):
        pass

    def instances() -> list[str | None]:
        (future,) = admin.describe_consumer_groups([group]).values()
        return [each.group_instance_id for each in future.result(SECONDS).members]

    assert instances() == ["one"]
    python = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        python.remove_group_members(group, [MemberToRemove(group_instance_id="one")])
    finally:
        python.close()
    assert instances() == []
