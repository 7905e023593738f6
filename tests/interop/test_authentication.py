"""Real clients log in: over every security protocol and mechanism, with right passwords and wrong ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AIOKafkaPartition
from aiokafka.errors import KafkaError as AIOKafkaError
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaError as KafkaPythonError
from kafka.errors import SaslAuthenticationFailedError

from kafka import KafkaAdminClient
from tests.interop.cli import Cli
from tests.interop.clients import (
    ConfluentProducer,
    kafka_python_producer,
    read_with_confluent,
    read_with_kafka_python,
)
from tests.interop.secured import MECHANISMS, Secured
from tests.interop.topics import Names, create_topic, eventually

SESSION_MS = 1500
# Every listener, with each mechanism where it asks for one.
WAYS = [
    *((listener, mechanism) for listener in ("PASSWORDS", "BOTH") for mechanism in MECHANISMS),
    ("TLS", "PLAIN"),
    ("MUTUAL", "PLAIN"),
]
PASSWORD_WAYS = [way for way in WAYS if way[0] in ("PASSWORDS", "BOTH")]
LARGE = bytes(range(256)) * 3000


@pytest.fixture(scope="module")
def secured(referee: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    secured = Secured(tmp_path_factory.mktemp("secured"), referee)
    try:
        secured.start()
        yield secured
        secured.node.stop()
    finally:
        secured.node.kill()
        secured.node.remove()


@pytest.fixture
def topic(secured: Secured, unique: Names) -> str:
    name = unique("secured")
    create_topic(secured.node.bootstrap, name)
    return name


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_confluent_writes_and_reads(secured: Secured, topic: str, listener: str, mechanism: str) -> None:
    settings = secured.librdkafka(listener, mechanism)
    bootstrap = settings["bootstrap.servers"]
    words = {name.replace(".", "_"): value for name, value in settings.items() if name != "log_level"}
    producer = ConfluentProducer(bootstrap, **words)
    values = [b"%d" % number + LARGE for number in range(10)]
    for value in values:
        producer.send(topic, value)
    producer.flush()

    found = read_with_confluent(bootstrap, topic, len(values), **words)
    assert [message.value() for message in found] == values


@pytest.mark.parametrize(("listener", "mechanism"), PASSWORD_WAYS)
def test_confluent_is_refused_with_a_wrong_password(secured: Secured, listener: str, mechanism: str) -> None:
    errors: list[KafkaError] = []
    settings = secured.librdkafka(listener, mechanism, "wrong")
    producer = Producer({**settings, "error_cb": errors.append})

    eventually(lambda: producer.poll(0.1) or errors)
    assert errors[0].code() == KafkaError._AUTHENTICATION
    assert "nvalid" in errors[0].str()  # Invalid username or password, or: due to invalid credentials


def test_confluent_is_refused_without_the_certificate_that_is_required(secured: Secured) -> None:
    errors: list[KafkaError] = []
    settings = secured.librdkafka("TLS") | {"bootstrap.servers": secured.bootstrap("MUTUAL")}
    admin = AdminClient({**settings, "error_cb": errors.append})

    eventually(lambda: admin.poll(0.1) or errors)
    assert errors[0].code() in (KafkaError._SSL, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_aiokafka_writes_and_reads(secured: Secured, topic: str, listener: str, mechanism: str) -> None:
    settings = secured.python(listener, mechanism)
    values = [b"%d" % number + LARGE for number in range(5)]

    async def scenario() -> list[bytes]:
        async with AIOKafkaProducer(**settings) as producer:
            for value in values:
                await producer.send_and_wait(topic, value)
        found: list[bytes] = []
        async with AIOKafkaConsumer(**settings, auto_offset_reset="earliest") as consumer:
            consumer.assign([AIOKafkaPartition(topic, 0)])
            while len(found) < len(values):
                found.append((await consumer.getone()).value)
        return found

    assert asyncio.run(asyncio.wait_for(scenario(), 45)) == values


@pytest.mark.parametrize(("listener", "mechanism"), PASSWORD_WAYS)
def test_aiokafka_is_refused_with_a_wrong_password(secured: Secured, listener: str, mechanism: str) -> None:
    async def scenario() -> None:
        producer = AIOKafkaProducer(**secured.python(listener, mechanism, "wrong"))
        try:
            with pytest.raises(AIOKafkaError):
                await producer.start()
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(scenario(), 45))


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_kafka_python_writes_and_reads(secured: Secured, topic: str, listener: str, mechanism: str) -> None:
    settings = secured.python(listener, mechanism)
    bootstrap = settings.pop("bootstrap_servers")
    values = [b"%d" % number + LARGE for number in range(5)]
    with kafka_python_producer(bootstrap, **settings) as producer:
        for value in values:
            producer.send(topic, value)
        producer.flush(45)

    found = read_with_kafka_python(bootstrap, topic, len(values), **settings)
    assert [record.value for record in found] == values


@pytest.mark.parametrize(("listener", "mechanism"), PASSWORD_WAYS)
def test_kafka_python_is_refused_with_a_wrong_password(
    secured: Secured, listener: str, mechanism: str
) -> None:
    with pytest.raises((SaslAuthenticationFailedError, KafkaPythonError)):
        KafkaAdminClient(**secured.python(listener, mechanism, "wrong"), bootstrap_timeout_ms=2000)


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_our_own_command_line_logs_in(secured: Secured, topic: str, listener: str, mechanism: str) -> None:
    cli = Cli(secured.bootstrap(listener))

    assert topic in cli("--client-config", str(secured.java_file(listener, mechanism)), "topic", "list").out


@pytest.mark.parametrize(("listener", "mechanism"), PASSWORD_WAYS)
def test_our_own_command_line_says_what_was_wrong(secured: Secured, listener: str, mechanism: str) -> None:
    cli = Cli(secured.bootstrap(listener))
    said = cli.fails("--client-config", str(secured.java_file(listener, mechanism, "wrong")), "topic", "list")

    assert "refuses ada: Authentication failed" in said


# --- sessions ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def impatient(referee: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker whose clients have to log in again and again."""
    home = tmp_path_factory.mktemp("impatient")
    secured = Secured(home, referee, **{"connections.max.reauth.ms": str(SESSION_MS)})
    try:
        secured.start()
        yield secured
        secured.node.stop()
    finally:
        secured.node.kill()
        secured.node.remove()


def for_three_sessions(step: Callable[[], Any]) -> None:
    until = time.monotonic() + 3 * SESSION_MS / 1000
    while time.monotonic() < until:
        step()


def test_confluent_logs_in_again_while_it_produces(impatient: Secured, unique: Names) -> None:
    topic = unique("again")
    create_topic(impatient.node.bootstrap, topic)
    settings = impatient.librdkafka("BOTH", "SCRAM-SHA-512")
    words = {name.replace(".", "_"): value for name, value in settings.items() if name != "log_level"}
    producer = ConfluentProducer(settings["bootstrap.servers"], **words)
    sent: list[bytes] = []

    def step() -> None:
        sent.append(b"%d" % len(sent))
        producer.send(topic, sent[-1])
        producer.flush()

    for_three_sessions(step)
    found = read_with_confluent(settings["bootstrap.servers"], topic, len(sent), **words)
    assert [message.value() for message in found] == sent
