"""What clients are refused, and do once they have the right to: two users, one of whom may do everything.

Rules are added while the broker runs. Whoever was refused tries again, and after a moment it works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.interop.nodes import QUICK, Node
from tests.interop.topics import Names, eventually
from tools.broker_process import BrokerProcess, free_port
from tools.kafka.node import KafkaNode

SECONDS = 30.0
PASSWORD = "secret"
GROUP, TOPIC = KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED
ID = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

SECURED = {
    **QUICK,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root;User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' username="root" password="{PASSWORD}" user_root="{PASSWORD}" user_alice="{PASSWORD}";'
    ),
}


class Secured:
    """A broker that asks for names, what its users say to it, and how `alice` gets rights."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient(self.client("root"))

    def client(self, user: str = "alice", **settings: Any) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORD,
        } | {name.replace("_", "."): value for name, value in settings.items()}

    def allow(self, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
        binding = AclBinding(
            resource_type,
            name,
            ResourcePatternType.LITERAL,
            "User:alice",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for done in self.admin.create_acls([binding], request_timeout=SECONDS).values():
            done.result(SECONDS)

    def topic(self, name: str, *values: str) -> str:
        for done in self.admin.create_topics([NewTopic(name, 1, 1)]).values():
            done.result(SECONDS)
        producer = Producer(self.client("root"))
        for value in values:
            producer.produce(name, value)
        assert producer.flush(SECONDS) == 0
        return name

    def positions(self, group: str) -> dict[str, int]:
        (done,) = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        return {at.topic: at.offset for at in done.result(SECONDS).topic_partitions}

    def values(self, topic: str) -> list[str]:
        """Committed records, as one reads them who may do everything."""
        with Consumer(self.client("root", group_id="unused", enable_partition_eof=True)) as consumer:
            consumer.assign([TopicPartition(topic, 0, 0)])
            found: list[str] = []
            while True:
                message = consumer.poll(SECONDS)
                assert message is not None
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    return found
                found.append((message.value() or b"").decode())


def new_node(referee: bool) -> Node:
    port = free_port()
    listener = f"SASL_PLAINTEXT://127.0.0.1:{port}"
    if not referee:
        settings = {**SECURED, "listeners": listener}
        return BrokerProcess(port=port, settings=[f"{name}={value}" for name, value in settings.items()])
    controller_port = free_port()
    listeners = f"{listener},CONTROLLER://127.0.0.1:{controller_port}"
    settings = {
        **SECURED,
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    return KafkaNode(port=port, controller_port=controller_port, properties=settings)


@pytest.fixture(scope="module")
def secured(referee: bool) -> Iterator[Secured]:
    node = new_node(referee)
    try:
        node.start()
        yield Secured(node.bootstrap)
        node.stop()
    finally:
        node.kill()
        node.remove()


def refusal(act: Callable[[], object]) -> int:
    """The code of the error with which something fails; 0 if it does not."""
    try:
        act()
    except KafkaException as failed:
        error = failed.args[0]
        assert isinstance(error, KafkaError)
        return int(error.code())
    return 0


def works(act: Callable[[], object]) -> None:
    """A rule counts a moment after it was made."""
    eventually(lambda: refusal(act) == 0)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_needs_its_group_and_its_topic(secured: Secured, unique: Names, protocol: str) -> None:
    topic, group = secured.topic(unique("topic"), "a", "b", "c"), unique("group")
    settings = secured.client(
        group_id=group, group_protocol=protocol, auto_offset_reset="earliest", enable_auto_commit=False
    )

    def errors_of(*wanted: int) -> None:
        """Consume until these errors were heard of."""
        with Consumer(settings) as consumer:
            consumer.subscribe([topic])
            heard: set[int] = set()
            while not heard >= set(wanted):
                message = consumer.poll(SECONDS)
                assert message is not None and message.error() is not None, heard
                heard.add(message.error().code())

    errors_of(GROUP)
    secured.allow(AclOperation.READ, ResourceType.GROUP, group)
    errors_of(TOPIC)
    assert secured.positions(group) == {}
    secured.allow(AclOperation.READ, ResourceType.TOPIC, topic)
    with Consumer(settings) as consumer:
        consumer.subscribe([topic])
        values: list[str] = []
        while len(values) < 3:
            message = consumer.poll(SECONDS)
            assert message is not None
            if message.error() is None:
                values.append((message.value() or b"").decode())
        assert values == ["a", "b", "c"]
        consumer.commit(asynchronous=False)
    assert secured.positions(group) == {topic: 3}


def test_positions_are_committed_and_read_with_the_right_to_the_topic(
    secured: Secured, unique: Names
) -> None:
    topic, hidden, group = secured.topic(unique("topic")), secured.topic(unique("hidden")), unique("group")
    secured.allow(AclOperation.READ, ResourceType.GROUP, group)
    with Consumer(secured.client(group_id=group)) as consumer:

        def commit(offset: int, *topics: str) -> None:
            places = [TopicPartition(name, 0, offset) for name in topics]
            consumer.commit(offsets=places, asynchronous=False)

        eventually(lambda: refusal(lambda: commit(5, topic)) == TOPIC)
        assert secured.positions(group) == {}
        secured.allow(AclOperation.READ, ResourceType.TOPIC, topic)
        works(lambda: commit(5, topic))
        # The client raises what was refused; what was not is done.
        assert refusal(lambda: commit(6, topic, hidden)) == TOPIC
        read = consumer.committed([TopicPartition(topic, 0), TopicPartition(hidden, 0)], SECONDS)
        assert [(each.offset, each.error and each.error.code()) for each in read] == [
            (6, None),
            (OFFSET_INVALID, TOPIC),
        ]
    assert secured.positions(group) == {topic: 6}


def test_consume_transform_produce_needs_the_id_the_group_and_both_topics(
    secured: Secured, unique: Names
) -> None:
    source, sink = secured.topic(unique("source"), "a", "b"), secured.topic(unique("sink"))
    group, transactional_id = unique("group"), unique("tx")
    secured.allow(AclOperation.READ, ResourceType.TOPIC, source)
    settings = secured.client(transactional_id=transactional_id)

    assert refusal(lambda: Producer(settings).init_transactions(SECONDS)) == ID
    secured.allow(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    works(lambda: Producer(settings).init_transactions(SECONDS))

    def produce() -> Producer:
        producer = Producer(settings)
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        delivered: list[KafkaError | None] = []
        producer.produce(sink, "transformed", on_delivery=lambda error, _: delivered.append(error))
        producer.flush(SECONDS)
        for error in delivered:
            if error is not None:
                raise KafkaException(error)
        return producer

    assert refusal(produce) == TOPIC
    secured.allow(AclOperation.WRITE, ResourceType.TOPIC, sink)
    works(produce)

    with Consumer(secured.client(group_id=group)) as consumer:
        at = [TopicPartition(source, 0, 2)]

        def whole() -> None:
            producer = produce()
            producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata(), SECONDS)
            producer.commit_transaction(SECONDS)

        assert refusal(whole) == GROUP
        assert secured.values(sink) == []
        secured.allow(AclOperation.READ, ResourceType.GROUP, group)
        works(whole)
    assert secured.values(sink) == ["transformed"]
    assert secured.positions(group) == {source: 2}


def test_a_share_consumer_needs_its_group_and_its_topic(secured: Secured, unique: Names) -> None:
    topic, group = secured.topic(unique("topic"), "a", "b", "c"), unique("share")
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[earliest])
    for done in secured.admin.incremental_alter_configs([resource]).values():
        done.result(SECONDS)

    def share() -> list[str]:
        """What is delivered first; the first error is raised."""
        consumer = ShareConsumer(secured.client(group_id=group))
        consumer.subscribe([topic])
        values: list[str] = []
        try:
            while len(values) < 3:
                for message in consumer.poll(SECONDS):
                    if message.error() is not None:
                        raise KafkaException(message.error())
                    values.append((message.value() or b"").decode())
        finally:
            consumer.close()
        return values

    assert refusal(share) == GROUP
    secured.allow(AclOperation.READ, ResourceType.GROUP, group)
    eventually(lambda: refusal(share) == TOPIC)
    secured.allow(AclOperation.READ, ResourceType.TOPIC, topic)
    works(share)


def test_groups_are_seen_and_deleted_by_those_who_may(secured: Secured, unique: Names) -> None:
    topic, group = secured.topic(unique("topic")), unique("group")
    with Consumer(secured.client("root", group_id=group)) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    admin = AdminClient(secured.client())

    def listed() -> list[str]:
        return [each.group_id for each in admin.list_consumer_groups().result(SECONDS).valid]

    def delete() -> None:
        (done,) = admin.delete_consumer_groups([group]).values()
        done.result(SECONDS)

    def describe() -> object:
        (done,) = admin.describe_consumer_groups([group]).values()
        return done.result(SECONDS)

    assert group not in listed()
    assert (refusal(describe), refusal(delete)) == (GROUP, GROUP)
    secured.allow(AclOperation.DESCRIBE, ResourceType.GROUP, group)
    works(describe)
    assert (group in listed(), refusal(delete)) == (True, GROUP)
    assert secured.positions(group) == {topic: 5}
    secured.allow(AclOperation.DELETE, ResourceType.GROUP, group)
    works(delete)
    assert group not in listed()
