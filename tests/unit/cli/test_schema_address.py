"""Where `ottla schema` finds a registry, and what it says when it is not let in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Broker
from tests.interop.cli import Cli
from tests.unit.server.authentication.wire import PLAIN_USERS
from tests.unit.server.authority import Authority
from tests.unit.server.authorization.conftest import GUARDED

QUICK = {"ottla.durability": "kafka", "offsets.topic.num.partitions": "2"}
PLAIN = ("-X", "sasl.mechanism=PLAIN", "-X", "sasl.username=ada", "-X", "sasl.password=secret")
NOBODY = "127.0.0.1:1"  # a port that nothing listens on


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(properties=QUICK) as broker:
        yield broker


@pytest.fixture(autouse=True)
def nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTTLA_REGISTRY", "OTTLA_CLIENT_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def test_the_first_broker_that_can_be_reached_is_asked(broker: Broker) -> None:
    assert Cli(f"{NOBODY},{broker.bootstrap}").json("schema", "list") == []
    assert Cli(f"PLAINTEXT://{broker.bootstrap}").json("schema", "list") == []


def test_where_nobody_is_that_is_said_with_what_to_do() -> None:
    said = Cli(NOBODY).fails("schema", "list")
    assert "start a broker with `ottla serve`, or name another with --bootstrap" in said
    said = Cli(NOBODY).fails("schema", "list", "--registry", f"http://ann:secret@{NOBODY}/there")
    assert "name another registry with --registry" in said and "secret" not in said
    said = Cli(NOBODY).fails("schema", "list", "--registry", f"http://{'a' * 70}.example")
    assert "no name of a host" in said


def test_another_registry_is_named_by_its_address(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = Cli(NOBODY)
    url = f"http://ann:secret@{broker.bootstrap}/"
    assert elsewhere.json("schema", "list", "--registry", url) == []
    monkeypatch.setenv("OTTLA_REGISTRY", url)
    assert elsewhere.json("schema", "list") == []
    monkeypatch.setenv("OTTLA_REGISTRY", f"http://{NOBODY}")
    elsewhere.fails("schema", "list")
    assert elsewhere.json("schema", "list", "-b", broker.bootstrap) == [], "what is typed counts more"
    assert elsewhere.json("schema", "list", "-b", NOBODY, "--registry", url) == []


def test_what_is_no_registry_is_told_from_one(broker: Broker) -> None:
    said = Cli(NOBODY).fails("schema", "list", "--registry", f"http://{broker.bootstrap}/elsewhere")
    assert "There is nothing here" in said and "(404)" in said


def test_a_broker_with_tls_is_asked_over_https(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    for name in ("server", "alice", "mallory"):
        authority.issue(name)
    secured = QUICK | {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.client.auth": "required",
        "ssl.keystore.location": str(tmp_path / "server.pem"),
        "ssl.truststore.location": str(authority.pem),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:CN=alice",
    }
    trust = ("-X", "security.protocol=SSL", "-X", f"ssl.truststore.location={authority.pem}")
    alice, mallory = (
        (*trust, "-X", f"ssl.keystore.location={tmp_path / f'{name}.pem'}") for name in ("alice", "mallory")
    )
    with Broker(properties=secured) as broker:
        cli = Cli(broker.bootstrap)
        given = '{"type": "record", "name": "r", "fields": []}'
        cli(*alice, "schema", "register", "a", "-", "-t", "avro", given=given)
        assert [each["subject"] for each in cli.json(*alice, "schema", "list")] == ["a"]
        url = f"https://{broker.bootstrap}"
        assert cli.json(*alice, "schema", "list", "--registry", url)
        assert "(40301); ask for the permission" in cli.fails(*mallory, "schema", "list")
        assert "is not trusted" in cli.fails("-X", "security.protocol=SSL", "schema", "list")
        assert "it does not speak http there" in cli.fails("schema", "list")
    with Broker(properties=QUICK) as plain:
        assert "does not speak TLS" in Cli(plain.bootstrap).fails(*alice, "schema", "list")


def test_a_password_for_kafka_is_said_not_to_go_over_http_where_it_was_wanted() -> None:
    secured = QUICK | {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
    }
    sasl = ("-X", "security.protocol=SASL_PLAINTEXT", *PLAIN)
    with Broker(properties=secured) as broker:
        with_password, without = (f"{host}:{port}" for host, port in broker.addresses)
        assert "(SASL) do not go over HTTP" in Cli(with_password).fails(*sasl, "schema", "list")
        assert Cli(without).json(*sasl, "schema", "list") == []
    with Broker(properties=GUARDED) as broker:
        refused = Cli(broker.bootstrap)
        assert "(40301); the name and password of Kafka (SASL)" in refused.fails(*sasl, "schema", "list")
        assert "(40301); ask for the permission" in refused.fails("schema", "list")


def test_a_listener_without_the_http_door_is_named() -> None:
    with Broker(properties=QUICK | {"ottla.doors": "kafka"}) as broker:
        assert "the HTTP door (ottla.doors)" in Cli(broker.bootstrap).fails("schema", "list")
