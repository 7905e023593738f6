"""Our clients against a broker behind TLS and SASL."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.blocking.fetch import fetch
from ottla.client.blocking.producer import IdempotentProducer
from ottla.client.cluster import Cluster
from ottla.client.errors import AuthenticationFailed, ClientError, Unreachable
from ottla.client.producer import Producer
from ottla.client.security import PLAINTEXT, Security
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, read_records, write_batch
from ottla.testing.broker import TestBroker
from tests.interop.doorman import CERTIFICATES, Doorman, server_context
from tests.interop.topics import eventually

TLS = Security("SSL", ca_location=str(CERTIFICATES / "authority.pem"))
PLAIN = Security("SASL_PLAINTEXT", "PLAIN", "ada", "secret")


@contextmanager
def broker_behind(door: Doorman) -> Iterator[str]:
    """A broker that clients find at the door's address only."""
    with door:
        properties = {"advertised.listeners": f"PLAINTEXT://localhost:{door.port}"}
        with TestBroker(properties) as broker:
            door.lead_to(broker.bootstrap)
            yield f"localhost:{door.port}"


def write_and_read(bootstrap: str, security: Security, count: int = 3) -> list[bytes | None]:
    """What comes back of `count` records, one in a batch."""
    with BlockingCluster(bootstrap, security=security) as cluster:
        cluster.create_topic("secured")
        partition = TopicPartition("secured", 0)
        producer = IdempotentProducer.start(cluster)
        now_ms = time.time_ns() // 1_000_000
        for number in range(count):
            producer.produce({partition: write_batch([Record(0, now_ms, None, b"%d" % number * 10_000)])})
        producer.flush()
        producer.close()
        found: list[bytes | None] = []
        for fetched in fetch(cluster, partition, 0, count, max_bytes=1):
            found += [record.value for record in read_records(fetched.records)]
        return found


def refused(
    bootstrap: str, security: Security, error: type[ClientError], match: str | None = None, **options: Any
) -> None:
    with BlockingCluster(bootstrap, security=security, **options) as cluster:
        with pytest.raises(error, match=match):
            cluster.topics()
        assert not cluster.brokers


EXPECTED = [b"0" * 10_000, b"1" * 10_000, b"2" * 10_000]


def test_records_are_written_and_read_over_tls() -> None:
    with broker_behind(Doorman(tls=server_context())) as bootstrap:
        assert write_and_read(bootstrap, TLS) == EXPECTED


def test_a_client_shows_its_certificate_to_a_broker_that_wants_one() -> None:
    with broker_behind(Doorman(tls=server_context(client_certificate=True))) as bootstrap:
        certificate = str(CERTIFICATES / "client.pem")
        mine = replace(TLS, certificate_location=certificate, key_location=certificate)
        assert write_and_read(bootstrap, mine) == EXPECTED
        refused(bootstrap, TLS, ClientError)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_authenticates_over_tls(mechanism: str) -> None:
    door = Doorman(tls=server_context(), users={"ada": "secret"}, mechanism=mechanism)
    with broker_behind(door) as bootstrap:
        security = replace(TLS, protocol="SASL_SSL", mechanism=mechanism, username="ada", password="secret")
        assert write_and_read(bootstrap, security) == EXPECTED
    assert door.authenticated >= 1
    assert door.unauthenticated == []


def test_a_session_that_ends_is_renewed_on_the_same_connection() -> None:
    door = Doorman(users={"ada": "secret"}, lifetime_ms=1)
    with broker_behind(door) as bootstrap, BlockingCluster(bootstrap, security=PLAIN) as cluster:
        cluster.refresh()
        before = door.authenticated
        eventually(lambda: cluster.any().session_is_ending)
        cluster.refresh()
        assert (door.visits, door.authenticated) == (1, before + 1)
        assert write_and_read(bootstrap, PLAIN) == EXPECTED
    assert door.unauthenticated == []


def test_a_wrong_password_is_said_at_once_and_not_tried_again() -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        door = Doorman(users={"ada": "secret"}, mechanism=mechanism)
        with broker_behind(door) as bootstrap:
            wrong = replace(PLAIN, mechanism=mechanism, password="wrong")
            refused(bootstrap, wrong, AuthenticationFailed, "refuses ada: Invalid username", patient=True)
        assert (door.authenticated, door.unauthenticated) == (0, [])


def test_a_mechanism_that_the_broker_does_not_take_is_said_with_those_that_it_takes() -> None:
    with broker_behind(Doorman(users={"ada": "secret"}, mechanism="SCRAM-SHA-512")) as bootstrap:
        refused(bootstrap, PLAIN, AuthenticationFailed, "does not take PLAIN; it takes SCRAM-SHA-512")


def test_a_broker_that_does_not_know_the_password_is_not_trusted() -> None:
    door = Doorman(users={"ada": "secret"}, mechanism="SCRAM-SHA-256", server_password="guess")
    with broker_behind(door) as bootstrap:
        scram = replace(PLAIN, mechanism="SCRAM-SHA-256")
        refused(bootstrap, scram, AuthenticationFailed, "is not trusted by ada")


def test_a_certificate_of_another_authority_or_another_name_is_not_trusted() -> None:
    with broker_behind(Doorman(tls=server_context())) as bootstrap:
        refused(bootstrap, Security("SSL"), AuthenticationFailed, "is not trusted")
        by_number = bootstrap.replace("localhost", "127.0.0.1")
        refused(by_number, TLS, AuthenticationFailed, "IP address mismatch")
        unchecked = replace(TLS, check_hostname=False)
        with BlockingCluster(by_number, security=unchecked) as cluster:
            cluster.topics()


def test_tls_and_plain_connections_that_meet_are_told_apart() -> None:
    with TestBroker() as broker:
        refused(broker.bootstrap, TLS, Unreachable, "TLS", timeout=5)
    with broker_behind(Doorman(tls=server_context())) as bootstrap:
        refused(bootstrap, PLAINTEXT, Unreachable, "does it want another security.protocol")


def test_the_asyncio_client_tells_them_apart_too() -> None:
    async def connect(bootstrap: str, security: Security) -> None:
        async with Cluster(bootstrap, security=security, timeout=5) as cluster:
            await cluster.refresh()

    with TestBroker() as broker, pytest.raises(Unreachable, match=r"does not speak TLS: .+"):
        asyncio.run(connect(broker.bootstrap, TLS))
    with (
        broker_behind(Doorman(tls=server_context())) as bootstrap,
        pytest.raises(Unreachable, match="does it want another"),
    ):
        asyncio.run(connect(bootstrap, PLAINTEXT))


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_the_asyncio_client_is_secured_in_the_same_way(protocol: str) -> None:
    door = Doorman(
        tls=server_context() if protocol.endswith("SSL") else None,
        users={"ada": "secret"} if protocol.startswith("SASL") else None,
        mechanism="SCRAM-SHA-256",
        lifetime_ms=1,
    )

    async def client(bootstrap: str, security: Security) -> list[int]:
        async with Cluster(bootstrap, security=security) as cluster, Producer(cluster) as producer:
            deliveries = [await producer.send("secured", b"%d" % number) for number in range(3)]
            return [await each.offset() for each in deliveries]

    security = replace(TLS, protocol=protocol, mechanism="SCRAM-SHA-256", username="ada", password="secret")
    with broker_behind(door) as bootstrap:
        assert asyncio.run(client(bootstrap, security)) == [0, 1, 2]
        if security.uses_sasl:
            with pytest.raises(AuthenticationFailed, match="refuses ada"):
                asyncio.run(client(bootstrap, replace(security, password="wrong")))
        if security.uses_tls:
            with pytest.raises(AuthenticationFailed, match="is not trusted"):
                asyncio.run(client(bootstrap, replace(security, ca_location=None)))
    assert door.unauthenticated == []


def test_a_server_that_says_nothing_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bootstrap = f"localhost:{silent.getsockname()[1]}"
        for security in (PLAINTEXT, TLS):
            refused(bootstrap, security, Unreachable, "does not answer", timeout=0.2)
