"""Tests of the service against a real broker, on good days and on bad ones."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from orders import Totals

from ottla.testing.broker import TestBroker


@pytest.fixture
def service(ottla: TestBroker) -> Iterator[Totals]:
    ottla.topic("orders")
    ottla.topic("totals")
    service = Totals(ottla.bootstrap, "orders", "totals")
    yield service
    service.close()


def place(ottla: TestBroker, *orders: tuple[str, int]) -> None:
    producer = ottla.producer()
    for customer, amount in orders:
        producer.produce("orders", json.dumps({"customer": customer, "amount": amount}))
    assert producer.flush(30) == 0


def published(ottla: TestBroker, count: int) -> list[tuple[bytes, bytes]]:
    consumer = ottla.consumer("totals")
    return [(message.key(), message.value()) for message in ottla.take(consumer, count)]


def test_orders_are_added_up(ottla: TestBroker, service: Totals) -> None:
    place(ottla, ("ann", 5), ("bob", 1), ("ann", 2))
    service.run(3)
    assert published(ottla, 3) == [(b"ann", b"5"), (b"bob", b"1"), (b"ann", b"7")]


def test_a_leader_that_moves_is_retried(ottla: TestBroker, service: Totals) -> None:
    place(ottla, ("ann", 5))
    moved = ottla.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2, client_id="totals")
    service.run(1)
    assert moved.hits == 2
    assert published(ottla, 1) == [(b"ann", b"5")]


def test_a_lost_answer_does_not_publish_twice(ottla: TestBroker, service: Totals) -> None:
    place(ottla, ("ann", 5), ("ann", 1))
    # The broker has stored the record, and the connection breaks before it can say so.
    ottla.disconnect("Produce", client_id="totals", handled=True)
    service.run(2)
    assert published(ottla, 2) == [(b"ann", b"5"), (b"ann", b"6")]


def test_a_refusal_for_good_is_an_error(ottla: TestBroker, service: Totals) -> None:
    place(ottla, ("ann", 5))
    ottla.fail("Produce", error="TOPIC_AUTHORIZATION_FAILED", topic="totals")
    with pytest.raises(KafkaException):
        service.run(1)


def test_a_broker_that_is_killed_loses_nothing(ottla: TestBroker, service: Totals) -> None:
    place(ottla, ("ann", 5))
    service.run(1)
    ottla.restart(kill=True)
    place(ottla, ("ann", 2))
    service.run(1)
    assert published(ottla, 2) == [(b"ann", b"5"), (b"ann", b"7")]
