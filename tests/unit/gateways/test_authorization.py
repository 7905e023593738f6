"""Whoever comes through another door is asked about as a Kafka client is: as who they are, here nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from ottla import Broker
from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.core.principal import ANONYMOUS
from tests.unit.gateways.conftest import Caller
from tests.unit.gateways.grpc_client import Reflected
from tests.unit.server.authorization.conftest import GUARDED, Right, allowing

NEW: Right = (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
WRITE: Right = (Operation.WRITE, ResourceType.TOPIC, "secret")
REFUSED = (
    "ERR TOPIC_AUTHORIZATION_FAILED The access rules do not let you do this with the topic: "
    "ask for a rule, or come as a user who has one"
)


def allow(broker: Broker, *rights: Right) -> None:
    assert broker.node.authorizer is not None
    broker.node.authorizer.load(allowing(str(ANONYMOUS), *rights))


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker(properties=GUARDED) as broker:
        allow(broker, NEW, WRITE)
        with Caller(broker.addresses[0]) as caller:
            assert caller.ask("PRODUCE secret key value") == "OK secret 0 0"
        yield broker


@pytest.fixture
def broker(running: Broker) -> Broker:
    allow(running)
    return running


@pytest.mark.parametrize("topic", ["secret", "nowhere"])
def test_the_text_door_refuses_who_has_no_rule_whether_the_topic_exists_or_not(
    broker: Broker, topic: str
) -> None:
    with Caller(broker.addresses[0]) as caller:
        for line in (
            f"PRODUCE {topic} key value",
            f"CONSUME {topic} 0 0",
            f"OFFSETS {topic}",
            f"FOLLOW {topic} 0 0",
        ):
            assert caller.ask(line) == REFUSED
        assert caller.ask("CREATE other").startswith("ERR TOPIC_AUTHORIZATION_FAILED Authorization failed")
        assert caller.ask_all("TOPICS") == ["END 0"]
    assert set(broker.node.image.topics) == {"secret"}
    assert broker.node.replicas.get("secret", 0).log.end_offset == 1


def test_the_text_door_opens_as_far_as_a_rule_goes(broker: Broker) -> None:
    with Caller(broker.addresses[0]) as caller:
        allow(broker, (Operation.READ, ResourceType.TOPIC, "secret"))
        assert caller.ask_all("CONSUME secret 0 0 1") == ["0 0 key value", "END 1"]
        assert caller.ask("PRODUCE secret key value").startswith(
            "ERR TOPIC_AUTHORIZATION_FAILED Not authorized"
        )


def test_the_grpc_door_denies_permission(broker: Broker) -> None:
    with Reflected(broker.bootstrap) as client:

        def refused(method: str, **fields: Any) -> None:
            with pytest.raises(grpc.RpcError) as caught:
                client.call(method, **fields)
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
            assert "access rules" in caught.value.details() or "uthoriz" in caught.value.details()

        for topic in ("secret", "nowhere"):
            refused("Produce", topic=topic, partition=0, payload=b"v")
            refused("Consume", topic=topic, partition=0, offset=0)
        refused("CreateTopic", topic="other", partitions=1)
        assert not client.call("ListTopics").topics
    assert broker.node.replicas.get("secret", 0).log.end_offset == 1


def test_the_http_door_tells_the_names_of_topics_to_those_who_may_describe_the_cluster(
    broker: Broker,
) -> None:
    def scraped() -> bytes:
        with Caller(broker.addresses[0]) as caller:
            caller.socket.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            return caller.hang_up()

    page = scraped()
    assert page.startswith(b"HTTP/1.1 403 ")
    assert b"User:ANONYMOUS" in page
    assert b"secret" not in page
    allow(broker, (Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME))
    page = scraped()
    assert page.startswith(b"HTTP/1.1 200 ")
    assert b'topic="secret"' in page
