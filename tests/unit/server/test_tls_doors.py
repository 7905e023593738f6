"""The other doors of a listener with TLS: the same ones, and they act as whoever's certificate it was."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import grpc
import httpx
import pytest
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from ottla import Broker
from tests.unit.server.authentication.wire import LOOPS, Client, broker_on
from tests.unit.server.authority import Authority

SECONDS = 20.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    for name in ("server", "alice", "mallory"):
        authority.issue(name)
    return authority


@pytest.fixture(scope="module", params=LOOPS)
def broker(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Broker]:
    secured = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.client.auth": "required",
        "ssl.keystore.location": str(authority.home / "server.pem"),
        "ssl.truststore.location": str(authority.pem),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:CN=alice",
    }
    with broker_on(request.param, secured) as broker:
        yield broker


def context(authority: Authority, name: str = "alice") -> ssl.SSLContext:
    return authority.client_context(authority.home / f"{name}.pem")


def said(broker: Broker, context: ssl.SSLContext, *lines: str) -> str:
    """What the text door answers to these lines."""
    with (
        socket.create_connection(broker.addresses[0], timeout=SECONDS) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as connection,
    ):
        connection.sendall("".join(f"{line}\n" for line in lines).encode())
        answer = b""
        while answer.count(b"\n") < len(lines):
            part = connection.recv(4096)
            assert part, answer
            answer += part
        return answer.decode()


def test_text_is_spoken_as_whoever_shows_the_certificate(broker: Broker, authority: Authority) -> None:
    assert said(broker, context(authority), "CREATE over-tls 1").startswith("OK")
    assert "AUTHORIZATION_FAILED" in said(broker, context(authority, "mallory"), "CREATE another 1")


def test_http_is_spoken_over_tls(broker: Broker, authority: Authority) -> None:
    host, port = broker.addresses[0]
    with httpx.Client(verify=context(authority), timeout=SECONDS) as client:
        for _ in range(3):
            answer = client.get(f"https://{host}:{port}/health/ready")
            assert answer.status_code == 200
            assert answer.http_version == "HTTP/1.1"


def test_grpc_is_spoken_over_tls(broker: Broker, authority: Authority) -> None:
    own = (authority.home / "alice.key").read_bytes(), (authority.home / "alice.crt").read_bytes()
    credentials = grpc.ssl_channel_credentials(authority.pem.read_bytes(), *own)
    host, port = broker.addresses[0]
    with grpc.secure_channel(f"{host}:{port}", credentials) as channel:
        grpc.channel_ready_future(channel).result(SECONDS)
        assert "broker.Broker" in ProtoReflectionDescriptorDatabase(channel).get_services()


def test_kafka_is_spoken_beside_them(broker: Broker, authority: Authority) -> None:
    with Client(broker.addresses[0], context(authority)) as client:
        assert client.is_served()
