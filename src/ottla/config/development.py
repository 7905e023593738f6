"""What `ottla serve` assumes where nothing is given; Apache Kafka's defaults ask for a cluster of machines.

A node listens on this machine only and keeps its data in ./data. Alone it has one replica of the internal
topics, so that groups and transactions work. Several nodes on this machine, each broker and controller, have
as many as there are nodes, up to three, and of other topics too; and whoever is gone is missed within a
second, which over a network would be rash. Clusters of several machines are as Kafka has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REPLICATED: Final = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
FLOORS: Final = ("transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr")
# A group's first member waits this long for others, since three seconds are long on a laptop.
QUICK_GROUPS: Final = {"group.initial.rebalance.delay.ms": "100"}
QUICK_FAILOVER: Final = {
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "200",
}


def development_defaults(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The properties that `given` leaves open."""
    given = given or {}
    defaults = {"process.roles": "broker,controller", "listeners": "PLAINTEXT://127.0.0.1:9092"}
    if "broker.id" not in given:
        defaults["node.id"] = "1"
    if "log.dir" not in given:
        defaults["log.dirs"] = "data"
    defaults |= _for_clusters(given)
    return {name: value for name, value in defaults.items() if name not in given}


def _for_clusters(given: Mapping[str, str]) -> dict[str, str]:
    peers = _peers(given)
    roles = given.get("process.roles", "broker,controller")
    if len(peers) <= 1 and "controller" in roles:
        return dict.fromkeys(REPLICATED + FLOORS, "1") | QUICK_GROUPS
    if not peers or not all(_is_here(peer) for peer in peers):
        return {}
    defaults = QUICK_GROUPS | QUICK_FAILOVER
    if "broker" in roles and "controller" in roles:
        replicas = min(3, len(peers))
        defaults |= dict.fromkeys((*REPLICATED, "default.replication.factor"), str(replicas))
        defaults |= dict.fromkeys(FLOORS, str(max(1, replicas - 1)))
    return defaults


def _peers(given: Mapping[str, str]) -> list[str]:
    """The controllers that the properties name."""
    names = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
    return max(
        ([each.strip() for each in given.get(name, "").split(",") if each.strip()] for name in names), key=len
    )


def _is_here(peer: str) -> bool:
    host = peer.rpartition("@")[2].rpartition(":")[0].strip("[]").lower()
    return host in ("localhost", "::1") or host.startswith("127.")
