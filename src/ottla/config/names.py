"""Property names that are not settings of ours: families passed through, and names long gone."""

from __future__ import annotations

from ottla.config.settings import ConfigError

_PASSED_THROUGH = ("listener.name.", "config.providers.", "rsm.config.", "rlmm.config.")
"""Prefixes whose rest is free: overrides for one listener, and the properties of plug-ins."""

_REMOVED = {
    "advertised.host.name": "use advertised.listeners",
    "advertised.port": "use advertised.listeners",
    "auto.include.jmx.reporter": "use metric.reporters",
    "broker.id.generation.enable": "set node.id",
    "control.plane.listener.name": "use controller.listener.names",
    "delegation.token.master.key": "use delegation.token.secret.key",
    "host.name": "use listeners",
    "inter.broker.protocol.version": "the cluster's metadata.version feature replaces it",
    "leader.imbalance.per.broker.percentage": "every imbalance is corrected",
    "log.message.downconversion.enable": "old fetch versions are always served",
    "log.message.format.version": "records are always stored in the newest format",
    "log.message.timestamp.difference.max.ms": "use log.message.timestamp.before.max.ms and "
    "log.message.timestamp.after.max.ms",
    "offsets.commit.required.acks": "commits always wait for all in-sync replicas",
    "port": "use listeners",
    "reserved.broker.max.id": "any node.id from 0 is allowed",
}

_REMOVED_FAMILIES = {
    "zookeeper.": "there is no ZooKeeper since Kafka 4.0",
    "password.encoder.": "there is no ZooKeeper since Kafka 4.0",
}


def is_passed_through(name: str) -> bool:
    """True for a name whose meaning depends on a listener or a plug-in."""
    return name.startswith(_PASSED_THROUGH)


def refuse_removed(name: str) -> None:
    """Raise ConfigError for a property that Apache Kafka 4 no longer has, saying what to do."""
    advice = _REMOVED.get(name)
    for prefix, reason in _REMOVED_FAMILIES.items():
        if name.startswith(prefix):
            advice = reason
    if advice is not None:
        raise ConfigError(f"property {name} no longer exists: {advice}")
