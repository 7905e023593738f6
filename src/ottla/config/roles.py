"""Who a node is in its cluster: broker, controller or both, and how it finds the others.

`process.roles`, `controller.listener.names`, `controller.quorum.voters` and
`controller.quorum.bootstrap.servers` have to fit together and to the listeners. The rules are Apache Kafka's,
except that a node which is both and alone needs none of the last three.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.config.broker import BrokerSettings
from ottla.config.settings import ConfigError

if TYPE_CHECKING:
    from ottla.config.listeners import SocketAddress


def voter_ids(settings: BrokerSettings) -> list[int]:
    return [int(voter.partition("@")[0]) for voter in settings.controller_quorum_voters]


def is_alone(settings: BrokerSettings) -> bool:
    """Whether these are the settings of a cluster of one: nobody else is named in them."""
    return (
        "controller" in settings.process_roles
        and len(settings.controller_quorum_voters) <= 1
        and len(settings.controller_quorum_bootstrap_servers) <= 1
    )


def check_roles(
    settings: BrokerSettings,
    clients: tuple[SocketAddress, ...],
    controllers: tuple[SocketAddress, ...],
    protocols: Mapping[str, str],
) -> None:
    """Raises ConfigError with one line that says what does not fit."""
    voters = voter_ids(settings)
    for number in voters:
        if voters.count(number) > 1:
            raise ConfigError(f"controller.quorum.voters: {number} is there twice")
    if "controller" in settings.process_roles:
        _check_controller(settings, controllers, voters)
    if "broker" in settings.process_roles and not clients:
        raise ConfigError("listeners: every listener is in controller.listener.names, so clients have none")
    if settings.process_roles == ("broker",):
        _check_only_broker(settings, controllers, voters, protocols)
    if settings.process_roles == ("controller",):
        _check_only_controller(settings, clients)


def _check_controller(
    settings: BrokerSettings, controllers: tuple[SocketAddress, ...], voters: list[int]
) -> None:
    found = {each.name for each in controllers}
    missing = [name for name in settings.controller_listener_names if name.upper() not in found]
    if missing:
        raise ConfigError(f"controller.listener.names: there is no listener named {', '.join(missing)}")
    if voters and settings.node_id not in voters:
        raise ConfigError(
            f"controller.quorum.voters: node.id {settings.node_id} is not among the voters, "
            "but process.roles has the controller role"
        )
    if not controllers and not is_alone(settings):
        raise ConfigError(
            "controller.listener.names: name a listener for the other nodes to come to, such as CONTROLLER "
            "with listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
        )


def _check_only_broker(
    settings: BrokerSettings,
    controllers: tuple[SocketAddress, ...],
    voters: list[int],
    protocols: Mapping[str, str],
) -> None:
    if controllers:
        raise ConfigError(
            f"listeners: {controllers[0].name} is in controller.listener.names, "
            "but process.roles has only the broker role"
        )
    if not settings.controller_quorum_bootstrap_servers and not voters:
        raise ConfigError(
            "process.roles=broker needs controller.quorum.bootstrap.servers to find the controllers"
        )
    if settings.node_id in voters:
        raise ConfigError(
            f"controller.quorum.voters: node.id {settings.node_id} is among the voters, "
            "but process.roles has only the broker role"
        )
    if not settings.controller_listener_names:
        raise ConfigError("process.roles=broker needs controller.listener.names to reach the controllers")
    for name in settings.controller_listener_names:
        if name.upper() not in protocols:
            raise ConfigError(
                f"controller.listener.names: no security protocol defined for listener {name}, "
                "name one in listener.security.protocol.map"
            )


def _check_only_controller(settings: BrokerSettings, clients: tuple[SocketAddress, ...]) -> None:
    if clients:
        raise ConfigError(
            f"listeners: {clients[0].name} is not in controller.listener.names, "
            "but process.roles has only the controller role"
        )
    if not settings.controller_quorum_bootstrap_servers and not settings.controller_quorum_voters:
        raise ConfigError(
            "process.roles=controller needs controller.quorum.bootstrap.servers or controller.quorum.voters, "
            "by which the nodes of the cluster find each other"
        )
