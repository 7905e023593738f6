"""The short way of a producer that repeats itself ends where the access rules change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla import Broker
from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.core.principal import ANONYMOUS
from ottla.protocol.batch import TRANSACTIONAL
from ottla.protocol.errors import (
    ClusterAuthorizationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.server.produce_lane import ProduceLane
from tests.unit.server.authorization.conftest import GUARDED, Right, allowing
from tests.unit.server.test_produce_lane import Client, new_topic, produce, values

CREATE: Right = (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
OF_ANOTHER: Right = (Operation.WRITE, ResourceType.TOPIC, "another")
WRITE_ID: Right = (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transfer")


def write(topic: str) -> Right:
    return Operation.WRITE, ResourceType.TOPIC, topic


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(properties=GUARDED) as broker:
        yield broker


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One entry for each request that went through a lane."""
    outcomes: list[bool] = []
    original = ProduceLane.append

    def watched(self: ProduceLane, *args: Any) -> Any:
        answer = original(self, *args)
        outcomes.append(answer is not None)
        return answer

    monkeypatch.setattr(ProduceLane, "append", watched)
    return outcomes


def allow(broker: Broker, *rights: Right) -> None:
    assert broker.node.authorizer is not None
    broker.node.authorizer.load(allowing(str(ANONYMOUS), *rights))


def topic_named(broker: Broker, name: str) -> str:
    allow(broker, CREATE)
    return new_topic(broker, name)


@pytest.mark.parametrize("version", [7, 9, 13])
@pytest.mark.parametrize("acks", [1, -1])
def test_a_producer_with_a_lane_is_stopped_at_its_next_request(
    broker: Broker, taken: list[bool], version: int, acks: int
) -> None:
    topic = topic_named(broker, f"stopped-{version}-{acks}")
    allow(broker, write(topic), OF_ANOTHER)
    with Client(broker) as client:

        def send() -> int:
            answer = client.ask(produce(broker, topic, 0, b"v", acks), version)
            code: int = answer.responses[0].partition_responses[0].error_code
            return code

        assert [send(), send(), send()] == [0, 0, 0]
        assert taken == [True, True]
        allow(broker, OF_ANOTHER)
        assert [send(), send()] == [TopicAuthorizationFailed.code] * 2
        assert taken == [True, True], "what is refused is no lane to be learned"
        allow(broker, write(topic))
        assert [send(), send()] == [0, 0]
        assert taken == [True] * 3
    assert values(broker, topic, 0) == [b"v"] * 5


def test_a_lane_is_not_learned_from_a_refused_request(broker: Broker, taken: list[bool]) -> None:
    topic = topic_named(broker, "refused")
    allow(broker)
    with Client(broker) as client:
        for _ in range(3):
            answer = client.ask(produce(broker, topic, 0, b"v"), 9)
            assert answer.responses[0].partition_responses[0].error_code == TopicAuthorizationFailed.code
    assert taken == []
    assert values(broker, topic, 0) == []


def test_many_lanes_are_learned_again_after_the_rules_have_changed(broker: Broker, taken: list[bool]) -> None:
    topic = topic_named(broker, "again")
    with Client(broker) as client:
        for _ in range(3):
            allow(broker, write(topic))
            for partition in (0, 1, 2, 0, 1, 2):
                answer = client.ask(produce(broker, topic, partition, b"v"), 9)
                assert answer.responses[0].partition_responses[0].error_code == 0
    assert taken == [True] * 9


def test_an_idempotent_producer_with_a_lane_is_stopped(broker: Broker, taken: list[bool]) -> None:
    topic = topic_named(broker, "idempotent")
    allow(broker, write(topic))
    with Client(broker) as client:
        # Who may write to some topic may have a producer id (KIP-679).
        started = client.ask(InitProducerIdRequest(transactional_id=None), 5)
        assert started.error_code == 0

        def send(sequence: int) -> int:
            request = produce(
                broker,
                topic,
                0,
                b"v",
                -1,
                producer_id=started.producer_id,
                producer_epoch=started.producer_epoch,
                base_sequence=sequence,
            )
            code: int = client.ask(request, 9).responses[0].partition_responses[0].error_code
            return code

        assert [send(0), send(1), send(2)] == [0, 0, 0]
        assert taken == [True, True]
        allow(broker)
        assert send(3) == TopicAuthorizationFailed.code
        assert client.ask(InitProducerIdRequest(transactional_id=None), 5).error_code == (
            ClusterAuthorizationFailed.code
        )
    assert values(broker, topic, 0) == [b"v"] * 3


def test_a_transaction_is_stopped_in_the_middle(broker: Broker) -> None:
    topic = topic_named(broker, "transactional")
    allow(broker, write(topic), WRITE_ID)
    with Client(broker) as client:
        found = client.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["transfer"]), 4)
        assert found.coordinators[0].error_code == 0
        started = client.ask(
            InitProducerIdRequest(transactional_id="transfer", transaction_timeout_ms=60_000), 5
        )
        assert started.error_code == 0

        def send(sequence: int) -> int:
            request = produce(
                broker,
                topic,
                0,
                b"v",
                -1,
                attributes=TRANSACTIONAL,
                producer_id=started.producer_id,
                producer_epoch=started.producer_epoch,
                base_sequence=sequence,
            )
            request.transactional_id = "transfer"
            code: int = client.ask(request, 12).responses[0].partition_responses[0].error_code
            return code

        assert [send(0), send(1)] == [0, 0]
        allow(broker, write(topic))
        assert send(2) == TransactionalIdAuthorizationFailed.code
        allow(broker, WRITE_ID)
        assert send(2) == TopicAuthorizationFailed.code
        allow(broker, write(topic), WRITE_ID)
        assert send(2) == 0
    assert values(broker, topic, 0) == [b"v"] * 3
