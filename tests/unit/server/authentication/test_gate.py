"""A listener with SASL, from outside: what is served before authentication, and how it ends."""

from __future__ import annotations

import logging
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from ottla import Broker
from ottla.client.sasl import Scram
from ottla.metadata.image import Image
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.server.authentication.gate import VERSIONS_ASKED_MAX
from tests.unit.server.authentication.wire import (
    ADA,
    BOB,
    LOOPS,
    PLAIN_USERS,
    Client,
    broker_on,
    eventually,
    frame,
    sized,
)

RECEIVE_MAX = 4096
SECURED = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
    "sasl.server.max.receive.size": str(RECEIVE_MAX),
    "connection.failed.authentication.delay.ms": "1",
}
VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")


@pytest.fixture(scope="module", params=LOOPS)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with broker_on(request.param, SECURED) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.addresses[0]) as client:
        yield client


def test_a_name_and_its_password_open_the_gate(client: Client) -> None:
    assert client.ask(VERSIONS, 4).error_code == 0
    shaken = client.handshake()
    assert (shaken.error_code, shaken.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-512"])
    answer = client.authenticate()

    assert (answer.error_code, answer.error_message, answer.session_lifetime_ms) == (0, "", 0)
    assert client.is_served()
    assert client.ask(VERSIONS, 4).error_code == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_of_authenticate_is_understood(client: Client, version: int) -> None:
    client.handshake()

    assert client.authenticate(version=version).error_code == 0
    assert client.is_served()


def test_old_clients_send_their_tokens_bare(client: Client) -> None:
    assert client.handshake(version=0).error_code == 0
    client.send(sized(ADA))

    assert client.reply() == b""
    assert client.is_served()


def test_a_wrong_bare_token_is_the_last(client: Client) -> None:
    client.handshake(version=0)
    client.send(sized(b"\0ada\0wrong"))

    assert client.is_closed()


def test_a_client_that_does_not_wait_for_answers_gets_all_of_them(client: Client) -> None:
    handshake, token = SaslHandshakeRequest(mechanism="PLAIN"), SaslAuthenticateRequest(auth_bytes=ADA)
    metadata = MetadataRequest(topics=[])
    client.send(
        frame(VERSIONS, 4) + frame(handshake, 1) + frame(token, 2) + frame(metadata, 12) + frame(metadata, 12)
    )

    assert client.answer(VERSIONS, 4).error_code == 0
    assert client.answer(handshake, 1).error_code == 0
    assert client.answer(token, 2).error_code == 0
    assert client.answer(metadata, 12).brokers
    assert client.answer(metadata, 12).brokers


def test_frames_arrive_byte_by_byte(client: Client) -> None:
    for byte in frame(SaslHandshakeRequest(mechanism="PLAIN"), 1):
        client.send(bytes([byte]))

    assert client.answer(SaslHandshakeRequest(), 1).error_code == 0


def test_a_wrong_password_is_answered_and_then_the_connection_closed(client: Client) -> None:
    client.handshake()
    answer = client.authenticate(b"\0ada\0wrong")

    assert answer.error_code == 58
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert client.is_closed()


def test_whatever_follows_a_wrong_password_is_not_even_read(client: Client) -> None:
    client.handshake()
    wrong = SaslAuthenticateRequest(auth_bytes=b"\0ada\0wrong")
    client.send(frame(wrong, 2) + frame(SaslAuthenticateRequest(auth_bytes=ADA), 2))

    assert client.answer(wrong, 2).error_code == 58
    assert client.is_closed()


def test_versions_are_not_asked_for_without_end(client: Client) -> None:
    unknown = struct.pack(">hhih", ApiVersionsRequest.api_key, 99, 7, -1) + b"\0"
    client.send(sized(unknown) * 100)

    assert [client.reply()[4:6] for _ in range(VERSIONS_ASKED_MAX)] == [b"\0\x23"] * VERSIONS_ASKED_MAX
    assert client.is_closed()


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are(client: Client) -> None:
    shaken = client.handshake("SCRAM-SHA-256")

    assert (shaken.error_code, shaken.mechanisms) == (33, ["PLAIN", "SCRAM-SHA-512"])
    assert client.is_closed()


@pytest.mark.parametrize(
    "data",
    [
        frame(MetadataRequest(topics=[]), 12),
        frame(SaslAuthenticateRequest(auth_bytes=ADA), 2),
        frame(CreateTopicsRequest(topics=[CreatableTopic(name="x")], timeout_ms=1), 7),
        frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)[:4] + bytes([0, 17, 0, 9]) + bytes(30),
        struct.pack(">ihhih", 10, 32767, 0, 1, -1),
        struct.pack(">ihhih", 10, -1, 0, 1, -1),
        sized(b""),
        sized(b"\0\x12"),
        sized(b"\0\x11\0\1\0\0\0\1\0\4test\0\xffPLAIN"),
        sized(bytes(20)),
        struct.pack(">i", -1),
        struct.pack(">i", RECEIVE_MAX + 1),
        struct.pack(">i", 2**31 - 1),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"help\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x60" * 64,
    ],
)
def test_before_authentication_nothing_else_is_served(client: Client, data: bytes) -> None:
    client.send(data)

    assert client.is_closed()


@pytest.mark.parametrize(
    "data",
    [
        frame(MetadataRequest(topics=[]), 12),
        frame(VERSIONS, 4),
        frame(SaslHandshakeRequest(mechanism="PLAIN"), 1),
        sized(ADA),
        sized(bytes(RECEIVE_MAX)),
        frame(SaslAuthenticateRequest(auth_bytes=bytes(RECEIVE_MAX)), 2),
    ],
)
def test_between_handshake_and_authentication_nothing_else_is_served(client: Client, data: bytes) -> None:
    client.handshake()
    client.send(data)

    assert client.is_closed()


def test_a_client_newer_than_the_broker_learns_what_it_may_say(client: Client) -> None:
    client.send(struct.pack(">ihhihb", 11, 18, 99, 7, -1, 0))
    reply = client.reply()

    assert reply[:6] == struct.pack(">ih", 7, 35)
    assert client.ask(VERSIONS, 4).error_code == 0
    client.log_in()


def test_a_connection_that_does_not_authenticate_is_closed(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.server.authentication.gate.AUTHENTICATE_SECONDS", 0.05)
    with caplog.at_level(logging.INFO), Client(broker.addresses[0]) as client:
        client.handshake()
        assert client.is_closed()
        eventually(lambda: "it has not authenticated" in caplog.text)


def test_one_that_has_is_not(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.server.authentication.gate.AUTHENTICATE_SECONDS", 0.2)
    with Client(broker.addresses[0]) as client, Client(broker.addresses[0]) as silent:
        client.log_in()
        assert silent.is_closed()  # which takes as long as the other would have been given
        assert client.is_served()


def test_unauthenticated_connections_count(broker: Broker) -> None:
    with broker_on("uvloop", {**SECURED, "listener.name.sasl_plaintext.max.connections": "1"}) as small:
        with Client(small.addresses[0]) as first:
            first.handshake()
            with Client(small.addresses[0]) as second:
                assert second.is_closed()
            assert first.authenticate().error_code == 0
        with Client(small.addresses[1]) as other:
            assert other.is_served()


def test_nothing_secret_is_logged(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for token in (ADA, b"\0ada\0my-other-secret", b"my-other-secret", b"\0bob\0secret"):
            with Client(broker.addresses[0]) as client:
                client.handshake()
                client.authenticate(token)
    assert "authentication failed client=/127.0.0.1 listener=SASL_PLAINTEXT" in caplog.text
    assert "secret" not in caplog.text


def test_a_listener_without_sasl_has_no_use_for_it(broker: Broker) -> None:
    with Client(broker.addresses[1]) as client:
        assert client.handshake().error_code == 34
        answer = client.authenticate()
        assert answer.error_code == 34
        assert client.is_served()


def test_scram_takes_the_credentials_of_the_metadata_log(broker: Broker) -> None:
    image: Image = broker.node.image
    assert not image.scram
    with Client(broker.addresses[0]) as client:
        scram = Scram("sha512", "nobody", "secret", "clientside")
        client.handshake("SCRAM-SHA-512")
        challenge = client.authenticate(scram.start())
        assert challenge.error_code == 0
        proof = scram.answer(challenge.auth_bytes)
        assert proof is not None
        refused = client.authenticate(proof)
        assert refused.error_code == 58
        assert refused.error_message == (
            "Authentication failed during authentication due to invalid credentials "
            "with SASL mechanism SCRAM-SHA-512"
        )
        assert client.is_closed()


def test_many_users_at_once_are_each_themselves() -> None:
    names = [f"user{number}" for number in range(200)]
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required " + " ".join(
        f'user_{name}="{name}-password"' for name in names
    )
    properties = {
        **SECURED,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas + ";",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in names[::2]),
    }
    with broker_on("uvloop", properties) as broker:

        def may_create(name: str) -> bool:
            with Client(broker.addresses[0]) as client:
                client.log_in(f"\0{name}\0{name}-password".encode())
                topic = CreatableTopic(name=f"of-{name}", num_partitions=1, replication_factor=1)
                asked = CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=True)
                codes = {client.ask(asked, 7).topics[0].error_code for _ in range(3)}
                assert len(codes) == 1
                return codes == {0}

        with ThreadPoolExecutor(16) as pool:
            allowed = dict(zip(names, pool.map(may_create, names), strict=True))
    assert [name for name, may in allowed.items() if may] == names[::2]


def test_noise_before_authentication_costs_a_connection_and_nothing_else(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(8412)
    good = [
        frame(VERSIONS, 4),
        frame(SaslHandshakeRequest(mechanism="PLAIN"), 1),
        frame(SaslAuthenticateRequest(auth_bytes=b"\0ada\0wrong"), 2),
    ]
    for _ in range(150):
        data = bytearray(b"".join(good[chance.randrange(3) :]))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with Client(broker.addresses[0]) as client, suppress(ConnectionError):
            client.send(bytes(data[: chance.randrange(1, len(data) + 1)]))
    with Client(broker.addresses[0]) as client:
        assert client.log_in(BOB).is_served()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_broker_without_security_does_not_even_import_it() -> None:
    program = """
import sys
from ottla import Broker

with Broker() as broker:
    found = [name for name in sys.modules if name.startswith("ottla.")]
    secure = ("authentication", "arrival", "tls", "ssl_principal", "jaas", "config.sasl")
    print([name for name in found if name.endswith(secure) or ".authentication." in name])
"""
    ran = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == "[]\n"
