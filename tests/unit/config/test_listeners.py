"""Listeners: parsed into addresses that fit together, or refused with one line."""

from __future__ import annotations

import pytest

from ottla.config.broker import broker_settings, development_defaults
from ottla.config.listeners import Listeners, SocketAddress, check_static
from ottla.config.settings import ConfigError


def parse(**given: str) -> Listeners:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return Listeners.parse(broker_settings({**development_defaults(named), **named}))


def test_a_node_alone_needs_no_controller_listener() -> None:
    listeners = parse()

    assert listeners.clients == (SocketAddress("PLAINTEXT", "127.0.0.1", 9092),)
    assert listeners.controllers == ()
    assert listeners.advertised == {}
    assert listeners.inter_broker == "PLAINTEXT"


def test_the_file_that_comes_with_kafka_is_understood() -> None:
    listeners = parse(
        process_roles="broker,controller",
        controller_quorum_bootstrap_servers="localhost:9093",
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        inter_broker_listener_name="PLAINTEXT",
        advertised_listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        controller_listener_names="CONTROLLER",
        listener_security_protocol_map="CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
    )

    assert listeners.clients == (SocketAddress("PLAINTEXT", "", 9092),)
    assert listeners.controllers == (SocketAddress("CONTROLLER", "", 9093),)
    assert listeners.advertised["PLAINTEXT"] == SocketAddress("PLAINTEXT", "localhost", 9092)


def test_names_are_upper_case_whatever_the_file_says() -> None:
    listeners = parse(
        listeners="plaintext://[::1]:0,inner://h:1",
        listener_security_protocol_map="Inner:plaintext,Plaintext:PLAINTEXT",
    )

    assert [str(each) for each in listeners.clients] == ["PLAINTEXT://[::1]:0", "INNER://h:1"]


def test_the_same_port_may_serve_both_address_families() -> None:
    listeners = parse(
        listeners="A://127.0.0.1:9092,B://[::1]:9092",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        inter_broker_listener_name="b",
    )

    assert listeners.inter_broker == "B"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"listeners": "PLAINTEXT:9092"}, "unable to parse PLAINTEXT:9092"),
        ({"listeners": "PLAINTEXT://h:99999"}, "the highest is 65535"),
        ({"listeners": "FOO://h:1"}, "no security protocol defined for listener FOO"),
        ({"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2"}, "PLAINTEXT is there twice"),
        ({"listener_security_protocol_map": "PLAINTEXT:TLS"}, "Invalid security protocol `TLS`"),
        ({"listener_security_protocol_map": "PLAINTEXT"}, "not in the form NAME:PROTOCOL"),
        ({"advertised_listeners": "SSL://h:1"}, "SSL has no listener, those there are PLAINTEXT"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "clients cannot connect to 0.0.0.0"),
        ({"advertised_listeners": "PLAINTEXT://:1"}, "clients cannot connect to an empty host"),
        ({"inter_broker_listener_name": "X"}, "there is no listener named X"),
        ({"security_inter_broker_protocol": "SSL"}, "no listener speaks SSL"),
        ({"controller_listener_names": "CONTROLLER"}, "there is no listener named CONTROLLER"),
        ({"controller_listener_names": "PLAINTEXT"}, "so clients have none"),
        ({"controller_quorum_voters": "2@h:1"}, "node.id 1 is not among the voters"),
        ({"process_roles": "broker"}, "needs controller.quorum.bootstrap.servers"),
        (
            {"process_roles": "broker", "controller_quorum_bootstrap_servers": "h:1"},
            "needs controller.listener.names",
        ),
        ({"process_roles": "controller"}, "PLAINTEXT is not in controller.listener.names"),
        (
            {
                "listeners": "A://h:1,B://h:1",
                "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT",
            },
            "A://h:1 and B://h:1 are on the same port",
        ),
    ],
)
def test_half_configured_listeners_are_refused_in_one_line(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(**given)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_loopback_is_open_to_this_machine_only(host: str) -> None:
    assert check_static({"listeners": f"PLAINTEXT://{host}:9092"})


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]", "10.0.0.1", "127.example.org"])
def test_an_open_listener_without_authentication_has_to_be_asked_for(host: str) -> None:
    given = {"listeners": f"PLAINTEXT://{host}:9092"}

    with pytest.raises(ConfigError, match="--insecure"):
        check_static(given)
    assert check_static({**given, "ottla.allow.insecure.listeners": "true"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"authorizer.class.name": "io.example.Authorizer"}, "io.example.Authorizer would refuse nothing"),
        ({"super.users": "alice"}, "'alice' is no principal"),
        ({"create.topic.policy.class.name": "org.example.Names"}, "org.example.Names would refuse nothing"),
        ({"alter.config.policy.class.name": "org.example.Names"}, "org.example.Names would refuse nothing"),
        ({"remote.log.storage.system.enable": "true"}, "there is no tiered storage yet"),
        (
            {"controller.quorum.voters": "1@a:1,2@b:1,3@c:1", "node.id": "1"},
            "clusters of several nodes are not available yet",
        ),
        ({"controller.quorum.bootstrap.servers": "a:1,b:1"}, "clusters of several nodes"),
        (
            {
                "process.roles": "broker",
                "controller.quorum.bootstrap.servers": "a:1",
                "controller.listener.names": "CONTROLLER",
            },
            "process.roles=broker: a node that is not both is not available yet",
        ),
    ],
)
def test_what_is_not_there_yet_is_refused_and_not_left_out_in_silence(
    given: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        check_static({"listeners": "PLAINTEXT://127.0.0.1:9092", **given})

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_doors_belong_to_listeners_that_there_are() -> None:
    assert parse(ottla_doors="kafka,plaintext:text").clients
    with pytest.raises(ConfigError, match="there is no listener INSIDE for clients: there is PLAINTEXT"):
        parse(ottla_doors="kafka,INSIDE:text")
