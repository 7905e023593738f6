"""Listeners: where a node listens, what it tells clients, and which doors are whose.

`listeners`, `advertised.listeners`, `listener.security.protocol.map`, `inter.broker.listener.name`,
`controller.listener.names` and `process.roles` only make sense together. They are parsed here
into objects that fit, or refused with one line that says what does not.

Departing from Apache Kafka: a node that is both broker and controller needs no controller
listener as long as it is alone, and `advertised.listeners` may be left out for a listener on
every address, since clients are told the address they dialled. Such a node need not say either which
listener brokers use among themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, Self

from ottla.config.areas.own import DOORS
from ottla.config.available import check_available
from ottla.config.broker import BrokerSettings, broker_settings
from ottla.config.listener_security import authenticates, check_security, uses_sasl
from ottla.config.listener_settings import listener_settings
from ottla.config.roles import check_roles, is_alone
from ottla.config.settings import ConfigError

# In the order of their numbers on the wire and in the metadata log.
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_LISTENER = re.compile(
    r"(?P<name>[A-Za-z0-9_-]+)://(?P<host>\[[0-9a-fA-F:.%a-z]*\]|[^:\[\]/]*):(?P<port>[0-9]+)"
)
_LOOPBACK = re.compile(r"127(\.[0-9]{1,3}){3}")
_ANY_ADDRESS = ("", "0.0.0.0", "::")
_DEFAULT_INTER_BROKER = "PLAINTEXT"
KAFKA = "kafka"


class SocketAddress(NamedTuple):
    """A named place to listen on or to connect to."""

    name: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"

    @property
    def is_loopback(self) -> bool:
        """True when only this machine can reach it."""
        return self.host.lower() in ("localhost", "::1") or _LOOPBACK.fullmatch(self.host) is not None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class Listeners(NamedTuple):
    """Every listener of a node, sorted by who it is for."""

    clients: tuple[SocketAddress, ...]
    controllers: tuple[SocketAddress, ...]
    advertised: Mapping[str, SocketAddress]
    inter_broker: str
    # Of every name in listener.security.protocol.map: other nodes may have listeners that this one has not.
    protocols: Mapping[str, str]

    @classmethod
    def parse(cls, settings: BrokerSettings) -> Self:
        """The listeners that settings describe. Raises ConfigError when they do not fit together."""
        protocols = _protocols(settings)
        listeners = _addresses("listeners", settings.listeners, protocols)
        _check_distinct(listeners)
        controller_names = {name.upper() for name in settings.controller_listener_names}
        controllers = tuple(each for each in listeners if each.name in controller_names)
        clients = tuple(each for each in listeners if each.name not in controller_names)
        check_roles(settings, clients, controllers, protocols)
        _check_doors(settings, clients)
        advertised = _advertised(settings, listeners, protocols)
        _check_reachable(settings, listeners, advertised)
        if not is_alone(settings):
            # All nodes have to say the same of where a node is, by the name that certificates have.
            advertised = {each.name: each for each in clients} | advertised
        inter_broker = _inter_broker(settings, clients)
        return cls(clients, controllers, advertised, inter_broker, protocols)

    def check_exposure(self, settings: BrokerSettings, properties: Mapping[str, str]) -> None:
        """Refuse to be open to the network without authentication unless that was asked for."""
        if settings.ottla_allow_insecure_listeners:
            return
        for each in self.clients + self.controllers:
            if not each.is_loopback and not authenticates(settings, properties, each.name, each.protocol):
                where = each.host if each.host not in _ANY_ADDRESS else "every address"
                raise ConfigError(
                    f"listener {each} opens port {each.port} on {where} to anyone, without authentication: "
                    "listen on 127.0.0.1, use SASL_SSL, or say --insecure if that is what you want"
                )


def offered_doors(settings: BrokerSettings, address: SocketAddress) -> frozenset[str]:
    """The languages that a listener speaks (`ottla.doors`).

    Of all of them only Kafka's knows SASL, so where that is asked for there is no other door to come in by.
    """
    if uses_sasl(address.protocol):
        return frozenset({KAFKA})
    if not settings.ottla_doors:
        return frozenset(DOORS if address.is_loopback else (KAFKA,))
    offered = set()
    for entry in settings.ottla_doors:
        listener, _, door = entry.rpartition(":")
        if not listener or listener.upper() == address.name:
            offered.add(door.lower())
    return frozenset(offered)


def _check_doors(settings: BrokerSettings, clients: tuple[SocketAddress, ...]) -> None:
    names = {each.name for each in clients}
    with_sasl = {each.name for each in clients if uses_sasl(each.protocol)}
    for entry in settings.ottla_doors:
        listener, _, door = entry.rpartition(":")
        if listener.upper() in with_sasl and door.lower() != KAFKA:
            raise ConfigError(f"ottla.doors has {entry}, but a listener with SASL speaks Kafka alone")
        if listener and listener.upper() not in names:
            raise ConfigError(
                f"ottla.doors has {entry}, but there is no listener {listener} for clients: "
                f"there is {', '.join(sorted(names)) or 'none'}"
            )


def check_static(static: Mapping[str, str]) -> BrokerSettings:
    """The settings of a property file, listeners and all. Raises ConfigError with one clear line."""
    settings = broker_settings(static)
    if "inter.broker.listener.name" in static and "security.inter.broker.protocol" in static:
        raise ConfigError(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
        )
    listeners = Listeners.parse(settings)
    for each in listeners.clients + listeners.controllers:
        check_security(settings, static, each.name, each.protocol)
    listeners.check_exposure(settings, static)
    if not is_alone(settings):
        _check_among_brokers(settings, static, listeners)
    check_available(settings)
    return settings


def _check_among_brokers(settings: BrokerSettings, static: Mapping[str, str], listeners: Listeners) -> None:
    """What brokers speak among themselves, they have to take."""
    name = listeners.inter_broker
    if not listeners.clients or not uses_sasl(listeners.protocols[name]):
        return
    own = listener_settings(settings, static, name)
    mechanism = own.sasl_mechanism_inter_broker_protocol
    if mechanism not in own.sasl_enabled_mechanisms:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol: {mechanism} is not in sasl.enabled.mechanisms of "
            f"listener {name}, which brokers use among themselves"
        )


def _protocols(settings: BrokerSettings) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for entry in settings.listener_security_protocol_map.split(","):
        if not entry.strip():
            continue
        name, colon, protocol = (part.strip() for part in entry.partition(":"))
        if not colon or not name:
            raise ConfigError(
                f"Error parsing configuration property 'listener.security.protocol.map': {entry.strip()} "
                "is not in the form NAME:PROTOCOL"
            )
        if protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"Invalid security protocol `{protocol}` defined in listener.security.protocol.map"
            )
        protocols[name.upper()] = protocol.upper()
    # As in Kafka, controller listeners are PLAINTEXT where nothing says otherwise and no listener is secured.
    secured = any(each.upper().startswith(("SSL:", "SASL_")) for each in settings.listeners)
    if (
        settings.listener_security_protocol_map == BrokerSettings().listener_security_protocol_map
        and not secured
    ):
        for name in settings.controller_listener_names:
            protocols.setdefault(name.upper(), "PLAINTEXT")
    return protocols


def parse_address(prop: str, text: str) -> SocketAddress:
    """NAME://host:port as an address; `prop` is the property it was found in. Raises ConfigError."""
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise ConfigError(f"{prop}: unable to parse {text}, it should look like PLAINTEXT://host:9092")
    port = int(match["port"])
    if port > 65_535:
        raise ConfigError(f"{prop}: {text} has no such port, the highest is 65535")
    return SocketAddress(match["name"].upper(), match["host"].strip("[]"), port)


def _addresses(prop: str, texts: tuple[str, ...], protocols: Mapping[str, str]) -> tuple[SocketAddress, ...]:
    addresses = []
    for text in texts:
        address = parse_address(prop, text)
        if address.name not in protocols:
            raise ConfigError(
                f"{prop}: no security protocol defined for listener {address.name}, "
                "name one in listener.security.protocol.map"
            )
        addresses.append(address._replace(protocol=protocols[address.name]))
    return tuple(addresses)


def _check_distinct(listeners: tuple[SocketAddress, ...]) -> None:
    for position, one in enumerate(listeners):
        for other in listeners[:position]:
            if one.name == other.name:
                raise ConfigError(
                    f"listeners: each listener must have a different name, {one.name} is there twice"
                )
            # Kafka's exception: the same port, once for IPv4 and once for IPv6.
            same_family = (":" in one.host) == (":" in other.host)
            if one.port == other.port != 0 and (same_family or "" in (one.host, other.host)):
                raise ConfigError(f"listeners: {other} and {one} are on the same port")


def _advertised(
    settings: BrokerSettings, listeners: tuple[SocketAddress, ...], protocols: Mapping[str, str]
) -> dict[str, SocketAddress]:
    advertised: dict[str, SocketAddress] = {}
    names = [each.name for each in listeners]
    for each in _addresses("advertised.listeners", settings.advertised_listeners or (), protocols):
        if each.name not in names:
            raise ConfigError(
                f"advertised.listeners: {each.name} has no listener, those there are {', '.join(names)}"
            )
        if each.name in advertised:
            raise ConfigError(f"advertised.listeners: {each.name} is there twice")
        if each.host in _ANY_ADDRESS:
            raise ConfigError(
                f"advertised.listeners: clients cannot connect to {each.host or 'an empty host'}, "
                "name an address they can reach"
            )
        advertised[each.name] = each
    return advertised


def _check_reachable(
    settings: BrokerSettings,
    listeners: tuple[SocketAddress, ...],
    advertised: Mapping[str, SocketAddress],
) -> None:
    """Other nodes are told where to connect to, and that cannot be every address."""
    if is_alone(settings):
        return
    for each in listeners:
        if each.host in _ANY_ADDRESS and each.name not in advertised:
            raise ConfigError(
                f"advertised.listeners: other nodes cannot connect to {each.host or 'an empty host'}, "
                f"name an address of {each.name} that they can reach"
            )


def _inter_broker(settings: BrokerSettings, clients: tuple[SocketAddress, ...]) -> str:
    names = [each.name for each in clients]
    if settings.inter_broker_listener_name is not None:
        wanted = settings.inter_broker_listener_name.upper()
        if names and wanted not in names:
            raise ConfigError(
                f"inter.broker.listener.name: there is no listener named {wanted}, "
                f"those for brokers and clients are {', '.join(names)}"
            )
        return wanted
    for each in clients:
        if each.protocol == settings.security_inter_broker_protocol:
            return each.name
    if clients and settings.security_inter_broker_protocol == _DEFAULT_INTER_BROKER and is_alone(settings):
        return clients[0].name  # there is nobody to talk to
    if clients:
        raise ConfigError(
            f"security.inter.broker.protocol: no listener speaks {settings.security_inter_broker_protocol}, "
            "set inter.broker.listener.name to one that brokers should use"
        )
    return settings.security_inter_broker_protocol
