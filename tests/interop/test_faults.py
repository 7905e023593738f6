"""Scripted faults, seen by real clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from ottla.testing.broker import TestBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as broker:
        yield broker


@pytest.fixture
def ottla(broker: TestBroker) -> Iterator[TestBroker]:
    yield broker
    broker.heal()


def send(ottla: TestBroker, topic: str, *values: str, **config: object) -> list[KafkaError | None]:
    """Send values one after the other; how each of them fared."""
    producer = ottla.producer(retry_backoff_ms=10, **config)
    outcomes: list[KafkaError | None] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(30) == 0
    return outcomes


def values(ottla: TestBroker, topic: str, count: int) -> list[bytes]:
    consumer = ottla.consumer(topic)
    return [message.value() for message in ottla.take(consumer, count)]


def test_a_failed_produce_is_retried_and_stored_once(ottla: TestBroker) -> None:
    topic = ottla.topic()
    fault = ottla.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2, topic=topic)
    assert send(ottla, topic, "a", "b") == [None, None]
    assert fault.hits == 2
    assert values(ottla, topic, 2) == [b"a", b"b"]


def test_an_error_that_is_not_retriable_reaches_the_sender(ottla: TestBroker) -> None:
    topic = ottla.topic()
    ottla.fail("Produce", error="InvalidRecord", topic=topic)
    first, second = send(ottla, topic, "a", "b")
    assert first is not None and first.code() == KafkaError.INVALID_RECORD
    assert second is None


def test_the_nth_request_is_counted_by_client(ottla: TestBroker) -> None:
    topic = ottla.topic()
    fault = ottla.fail("Produce", error="INVALID_RECORD", skip=2, client_id="careless")
    assert send(ottla, topic, "a", "b", "c", client_id="careful") == [None, None, None]
    outcomes = send(ottla, topic, "a", "b", "c", "d", client_id="careless")
    assert [error is None for error in outcomes] == [True, True, False, True]
    assert fault.hits == 1


def test_an_answer_that_is_lost_makes_a_careless_producer_repeat_itself(ottla: TestBroker) -> None:
    topic = ottla.topic()
    ottla.disconnect("Produce", topic=topic, handled=True)
    send(ottla, topic, "a")
    assert values(ottla, topic, 2) == [b"a", b"a"]
    careful = ottla.topic()
    ottla.disconnect("Produce", topic=careful, handled=True)
    send(ottla, careful, "a", "b", enable_idempotence=True)
    assert values(ottla, careful, 2) == [b"a", b"b"]


def test_a_connection_that_is_cut_before_the_request_stores_nothing(ottla: TestBroker) -> None:
    topic = ottla.topic()
    fault = ottla.disconnect("Produce", topic=topic)
    send(ottla, topic, "a", "b")
    assert fault.hits == 1
    assert values(ottla, topic, 2) == [b"a", b"b"]


def test_a_delayed_request_keeps_its_records_and_its_place(ottla: TestBroker) -> None:
    topic = ottla.topic()
    fault = ottla.delay("Produce", 0.3, topic=topic)
    started = time.monotonic()
    send(ottla, topic, "a", "b")
    assert time.monotonic() - started >= 0.3
    assert fault.hits == 1
    assert values(ottla, topic, 2) == [b"a", b"b"]


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_SERVER_ERROR"])
@pytest.mark.parametrize("client", ["confluent", "aiokafka"])
def test_a_failed_fetch_is_asked_again(ottla: TestBroker, client: str, error: str) -> None:
    topic = ottla.topic()
    send(ottla, topic, "a", "b")
    fault = ottla.fail("Fetch", error=error, times=2, topic=topic)
    if client == "confluent":
        assert values(ottla, topic, 2) == [b"a", b"b"]
    else:

        async def read() -> list[bytes]:
            async with ottla.consumer(topic, client="aiokafka") as consumer:
                return [message.value for message in await ottla.take(consumer, 2)]

        assert asyncio.run(read()) == [b"a", b"b"]
    assert fault.hits == 2


def test_metadata_that_is_not_there_yet_is_asked_again(ottla: TestBroker) -> None:
    topic = ottla.topic()
    fault = ottla.fail("Metadata", error="LEADER_NOT_AVAILABLE", times=2, topic=topic)
    send(ottla, topic, "a")
    assert fault.hits == 2


def test_a_commit_that_is_refused_is_an_error_for_who_commits(ottla: TestBroker) -> None:
    topic = ottla.topic()
    send(ottla, topic, "a")
    consumer = ottla.consumer(topic, group=ottla.unique("refused"))
    ottla.take(consumer, 1)
    with ottla.fail("OffsetCommit", error="GROUP_AUTHORIZATION_FAILED", times=None):
        with pytest.raises(KafkaException) as caught:
            consumer.commit(asynchronous=False)
        assert caught.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.commit(asynchronous=False)


def test_a_coordinator_that_is_busy_is_waited_for(ottla: TestBroker) -> None:
    topic = ottla.topic()
    send(ottla, topic, "a")
    faults = [
        ottla.fail("FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", times=2),
        ottla.fail("JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS", times=1),
    ]
    assert values(ottla, topic, 1) == [b"a"]
    assert [fault.hits for fault in faults] == [2, 1]


def test_a_fault_can_be_taken_back(ottla: TestBroker) -> None:
    topic = ottla.topic()
    fault = ottla.fail("Produce", error="INVALID_RECORD", times=None, topic=topic)
    assert all(send(ottla, topic, "a", "b"))
    fault.heal()
    assert send(ottla, topic, "c") == [None]
    assert fault.hits == 2


def test_a_killed_broker_comes_back_with_what_it_had_and_without_faults() -> None:
    with TestBroker() as ottla:
        topic = ottla.topic()
        fault = ottla.fail("Produce", error="INVALID_RECORD", times=None)
        assert all(send(ottla, topic, "a"))
        bootstrap, pid = ottla.bootstrap, ottla.pid
        ottla.restart(kill=True)
        assert ottla.bootstrap == bootstrap and ottla.pid != pid
        assert fault.hits == 1
        assert send(ottla, topic, "b") == [None]
        ottla.restart()
        assert values(ottla, topic, 1) == [b"b"]
        assert "ottla" in ottla.log_text
