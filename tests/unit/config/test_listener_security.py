"""What listeners with TLS or SASL may be told, each on its own, and what they are refused for."""

from __future__ import annotations

from hashlib import sha256

import pytest

from ottla.config.broker import BrokerSettings, broker_settings
from ottla.config.describe import Layers, describe_broker
from ottla.config.listener_security import check_security, client_auth
from ottla.config.listener_settings import listener_settings
from ottla.config.listeners import Listeners, check_static, offered_doors
from ottla.config.sasl import Sasl, sasl_of
from ottla.config.settings import ConfigError

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
USERS = {"alice": sha256(b"secret").digest()}


def sasl(properties: dict[str, str]) -> Sasl:
    settings = broker_settings(properties)
    return sasl_of(listener_settings(settings, properties, "OUTER"), properties, "OUTER")


def test_a_listener_has_settings_of_its_own() -> None:
    properties = {
        "listener.name.outer.ssl.client.auth": "required",
        "listener.name.outer.max.connections": "5",
        "ssl.client.auth": "requested",
    }
    settings = broker_settings(properties)

    outer = listener_settings(settings, properties, "OUTER")
    inner = listener_settings(settings, properties, "INNER")

    assert (outer.ssl_client_auth, outer.max_connections) == ("required", 5)
    assert inner is settings


def test_certificates_of_clients_are_asked_for_beside_sasl_only_if_that_listener_says_so() -> None:
    for properties, expected in (
        ({"ssl.client.auth": "required"}, "none"),
        ({"listener.name.outer.ssl.client.auth": "required"}, "required"),
    ):
        settings = listener_settings(broker_settings(properties), properties, "OUTER")
        assert client_auth(settings, properties, "OUTER", "SASL_SSL") == expected
        assert client_auth(settings, properties, "OUTER", "SSL") == "required"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("listener.name.outer.ssl.client.auth", "perhaps", "must be one of: required, requested, none"),
        ("listener.name.outer.ssl.client.aut", "required", "did you mean ssl.client.auth?"),
        ("listener.name.outer.plain.sasl.jaas.confg", JAAS, "unknown property plain.sasl.jaas.confg"),
        ("listener.name.outer.principal.builder.class", "org.x.Builder", "what org.x.Builder does"),
        ("listener.name.outer.ssl.engine.factory.class", "org.x.Engines", "what org.x.Engines does"),
    ],
)
def test_an_override_that_cannot_be_kept_is_refused(name: str, value: str, message: str) -> None:
    properties = {name: value}
    with pytest.raises(ConfigError) as refused:
        check_security(broker_settings(properties), properties, "OUTER", "SSL")

    assert message in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.jaas.config",
        "listener.name.outer.sasl.jaas.config",
        "listener.name.outer.plain.sasl.jaas.config",
    ],
)
def test_the_users_of_plain_are_named_for_the_broker_a_listener_or_a_mechanism(name: str) -> None:
    assert sasl({"sasl.enabled.mechanisms": "PLAIN", name: JAAS}).plain_users == USERS


def test_the_narrowest_setting_of_a_mechanism_counts() -> None:
    found = sasl(
        {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "sasl.jaas.config": "x.Other required;",
            "listener.name.outer.plain.sasl.jaas.config": JAAS,
            "connections.max.reauth.ms": "1000",
            "listener.name.outer.scram-sha-256.connections.max.reauth.ms": "2000",
            "listener.name.inner.scram-sha-512.connections.max.reauth.ms": "3000",
        }
    )

    assert found.plain_users == USERS
    assert found.session_ms == {"PLAIN": 1000, "SCRAM-SHA-256": 2000, "SCRAM-SHA-512": 1000}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "whose default mechanism GSSAPI is not available yet: set sasl.enabled.mechanisms"),
        ({"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER"}, "OAUTHBEARER is not available yet: set"),
        ({"sasl.enabled.mechanisms": "plain"}, "there is no mechanism plain"),
        ({"sasl.enabled.mechanisms": ""}, "name one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "PLAIN needs its users"),
        ({"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": "x.Y required;"}, "PlainLoginModule in it"),
        ({"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": "secret"}, "control flag"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": JAAS.replace("user_alice", "username")},
            "nobody could log in",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.jaas.config": JAAS,
                "listener.name.outer.plain.sasl.server.callback.handler.class": "org.x.Y",
            },
            "what org.x.Y does",
        ),
    ],
)
def test_sasl_that_nobody_could_use_is_refused_at_the_start(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        sasl(given)

    assert message in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


SECURED = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.security.protocol.map": "A:SSL,B:SASL_PLAINTEXT,C:SASL_SSL",
}


@pytest.mark.parametrize("listener", ["B", "C"])
def test_a_listener_that_authenticates_may_be_open_to_the_network(listener: str) -> None:
    assert check_static({"listeners": f"{listener}://0.0.0.0:9092", **SECURED})


def test_certificates_authenticate_when_they_are_required() -> None:
    given = {"listeners": "A://0.0.0.0:9092", **SECURED}

    for auth in ("none", "requested"):
        with pytest.raises(ConfigError, match="without authentication"):
            check_static({**given, "ssl.client.auth": auth})
    assert check_static({**given, "ssl.client.auth": "required"})
    assert check_static({**given, "listener.name.a.ssl.client.auth": "required"})


def test_a_listener_with_sasl_speaks_kafka_alone() -> None:
    settings = broker_settings(
        {"listeners": "B://127.0.0.1:1,A://127.0.0.1:2", "process.roles": "broker,controller", **SECURED}
    )
    with_sasl, with_tls = Listeners.parse(settings).clients

    assert offered_doors(settings, with_sasl) == {"kafka"}
    assert offered_doors(settings, with_tls) == {"kafka", "grpc", "http", "text"}
    with pytest.raises(ConfigError, match="a listener with SASL speaks Kafka alone"):
        check_static({"listeners": "B://127.0.0.1:1", "ottla.doors": "B:http", **SECURED})


def test_passwords_are_neither_described_nor_printed() -> None:
    secret = "k1ss"
    static = {
        "sasl.jaas.config": secret,
        "listener.name.b.plain.sasl.jaas.config": secret,
        "ssl.key.password": secret,
        "listener.name.a.ssl.keystore.key": secret,
    }
    entries = [each for each in describe_broker(Layers(static, {}, {})) if each.name in static]

    assert len(entries) == len(static)
    assert all(each.is_sensitive and each.value is None for each in entries)
    assert secret not in repr(entries)
    assert secret not in repr(BrokerSettings(sasl_jaas_config=secret, ssl_key_password=secret))
