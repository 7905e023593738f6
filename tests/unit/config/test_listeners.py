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
                "process_roles": "broker",
                "controller_listener_names": "CONTROLLER",
                "controller_quorum_voters": "1@h:1",
            },
            "node.id 1 is among the voters, but process.roles has only the broker role",
        ),
        (
            {
                "process_roles": "broker",
                "controller_listener_names": "CTL",
                "controller_quorum_bootstrap_servers": "h:1",
                "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT",
            },
            "no security protocol defined for listener CTL",
        ),
        (
            {
                "process_roles": "controller",
                "controller_listener_names": "CONTROLLER",
                "listeners": "CONTROLLER://h:1",
            },
            "by which the nodes of the cluster find each other",
        ),
        ({"controller_quorum_voters": "1@h:1,1@h:2"}, "1 is there twice"),
        ({"controller_quorum_voters": "1@h:1,2@h:2"}, "name a listener for the other nodes to come to"),
        ({"controller_quorum_bootstrap_servers": "h:1,h:2"}, "name a listener for the other nodes"),
        (
            {
                "listeners": "PLAINTEXT://0.0.0.0:1,CONTROLLER://h:2",
                "controller_listener_names": "CONTROLLER",
                "controller_quorum_voters": "1@h:2,2@h:3",
            },
            "other nodes cannot connect to 0.0.0.0, name an address of PLAINTEXT",
        ),
        (
            {
                "listeners": "SASL_SSL://h:1,CONTROLLER://h:2",
                "controller_listener_names": "CONTROLLER",
            },
            "no security protocol defined for listener CONTROLLER",
        ),
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


CLUSTER = {"controller_quorum_voters": "1@h:2,2@h:3,3@h:4", "controller_listener_names": "CONTROLLER"}


def test_a_node_of_a_cluster_listens_for_clients_and_for_controllers() -> None:
    found = parse(**CLUSTER, listeners="PLAINTEXT://h:1,CONTROLLER://h:2")

    assert [each.name for each in found.clients] == ["PLAINTEXT"]
    assert [each.name for each in found.controllers] == ["CONTROLLER"]
    assert found.inter_broker == "PLAINTEXT"


def test_where_a_node_of_a_cluster_is_follows_from_its_listeners() -> None:
    given = {
        "listeners": "PLAINTEXT://kafka1:9092,CONTROLLER://kafka1:9093",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    several = {"controller.quorum.voters": "1@kafka1:9093,2@kafka2:9093,3@kafka3:9093"}
    found = Listeners.parse(broker_settings({**given, **several, "node.id": "1"})).advertised
    assert [str(each) for each in found.values()] == ["PLAINTEXT://kafka1:9092"]
    # Alone it is where the client has dialled.
    assert Listeners.parse(broker_settings({**given, "node.id": "1"})).advertised == {}


def test_brokers_and_controllers_may_be_apart() -> None:
    broker = parse(**{**CLUSTER, "node_id": "4", "process_roles": "broker"})
    assert (len(broker.clients), broker.controllers) == (1, ())
    assert broker.protocols["CONTROLLER"] == "PLAINTEXT"

    controller = parse(**CLUSTER, process_roles="controller", listeners="CONTROLLER://h:2")
    assert (controller.clients, len(controller.controllers)) == ((), 1)


def test_what_brokers_speak_among_themselves_is_said_once_and_is_taken_by_all() -> None:
    given = {
        **{name.replace("_", "."): value for name, value in CLUSTER.items()},
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": "SASL_PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    with pytest.raises(
        ConfigError, match=r"GSSAPI is not in sasl.enabled.mechanisms of listener SASL_PLAINTEXT"
    ):
        check_static(given)
    assert check_static({**given, "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"})
    with pytest.raises(ConfigError, match=r"Only one of inter.broker.listener.name"):
        check_static({**given, "security.inter.broker.protocol": "SASL_PLAINTEXT"})
