"""What AlterConfigs and IncrementalAlterConfigs mean: from the overrides there are to the new ones.

Nothing changes here; each function returns the overrides a resource would have, or raises
ConfigError (INVALID_CONFIG) or its subclass InvalidChange (INVALID_REQUEST), with the message
Apache Kafka gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.config.broker import BrokerSettings, overlaid
from ottla.config.client_metrics import ClientMetricsSettings, check_client_metrics_configs
from ottla.config.describe import Layers, broker_setting, listener_property
from ottla.config.group import GroupSettings, check_group_configs
from ottla.config.listener_settings import overrides
from ottla.config.listeners import Listeners
from ottla.config.settings import ConfigError, InvalidChange, Kind, Setting, declared
from ottla.config.topic import TopicSettings, check_topic_configs

LONGEST_VALUE = 32_767
"""A value is a string on the wire and in the metadata log, whose length is 16 bits in old versions."""


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One entry of IncrementalAlterConfigs, as it arrived."""

    name: str
    operation: int
    value: str | None


def alter_topic(
    current: Mapping[str, str], changes: Sequence[Change], broker: BrokerSettings
) -> dict[str, str]:
    """The overrides of a topic after these changes."""
    altered = _apply(current, changes, declared(TopicSettings))
    check_topic_configs(altered, broker, current)
    return altered


def replace_topic(
    current: Mapping[str, str], configs: Sequence[tuple[str, str | None]], broker: BrokerSettings
) -> dict[str, str]:
    """The overrides of a topic once these have replaced all it had."""
    replaced = _replacement(configs)
    check_topic_configs(replaced, broker, current)
    return replaced


def alter_group(
    current: Mapping[str, str], changes: Sequence[Change], broker: BrokerSettings
) -> dict[str, str]:
    """The overrides of a group after these changes."""
    altered = _apply(current, changes, declared(GroupSettings))
    check_group_configs(altered, broker)
    return altered


def replace_group(configs: Sequence[tuple[str, str | None]], broker: BrokerSettings) -> dict[str, str]:
    """The overrides of a group once these have replaced all it had."""
    replaced = _replacement(configs)
    check_group_configs(replaced, broker)
    return replaced


def alter_client_metrics(current: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """A client metrics subscription after these changes."""
    altered = _apply(current, changes, declared(ClientMetricsSettings))
    check_client_metrics_configs(altered)
    return altered


def replace_client_metrics(configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """A client metrics subscription once these have replaced all it had."""
    replaced = _replacement(configs)
    check_client_metrics_configs(replaced)
    return replaced


def alter_broker(
    changes: Sequence[Change], layers: Layers, *, per_broker: bool, elr_enabled: bool = False
) -> dict[str, str]:
    """What is altered for this broker (or, not per broker, for the cluster) after these changes."""
    current = layers.dynamic_broker if per_broker else layers.dynamic_default
    altered = _apply(current, changes, declared(BrokerSettings))
    _check_eligible_replicas(current, altered, per_broker, elr_enabled)
    _check_broker(altered, layers, per_broker)
    return altered


def replace_broker(
    configs: Sequence[tuple[str, str | None]],
    layers: Layers,
    *,
    per_broker: bool,
    elr_enabled: bool = False,
) -> dict[str, str]:
    """What is altered for this broker, or for the cluster, once these have replaced all of it."""
    current = layers.dynamic_broker if per_broker else layers.dynamic_default
    replaced = _replacement(configs)
    _check_eligible_replicas(current, replaced, per_broker, elr_enabled)
    _check_broker(replaced, layers, per_broker)
    return replaced


def differences(current: Mapping[str, str], altered: Mapping[str, str]) -> dict[str, str | None]:
    """What has to be recorded to get from one set of overrides to another; None to delete."""
    changed: dict[str, str | None] = {
        name: value for name, value in altered.items() if current.get(name) != value
    }
    changed.update((name, None) for name in current if name not in altered)
    return changed


def _apply(
    current: Mapping[str, str], changes: Sequence[Change], known: Mapping[str, Setting]
) -> dict[str, str]:
    _check_form((change.name for change in changes), len(changes))
    missing = [c.name for c in changes if c.value is None and c.operation != Operation.DELETE]
    if missing:
        raise InvalidChange(f"Null value not supported for : {', '.join(missing)}")
    altered = dict(current)
    for change in changes:
        match change.operation:
            case Operation.SET:
                altered[change.name] = change.value or ""
            case Operation.DELETE:
                altered.pop(change.name, None)
            case Operation.APPEND | Operation.SUBTRACT:
                altered[change.name] = _change_list(change, altered.get(change.name), known)
            case _:
                raise InvalidChange(f"Unknown operations type {change.operation}")
    _check_lengths(altered)
    return altered


def _change_list(change: Change, current: str | None, known: Mapping[str, Setting]) -> str:
    each = known.get(change.name)
    if each is None or each.kind is not Kind.LIST:
        operation = Operation(change.operation).name
        raise ConfigError(f"Can't {operation} to key {change.name} because its type is not LIST.")
    text = each.default_text if current is None else current
    parts = [part for part in (text or "").split(",") if part]
    operands = (change.value or "").split(",")
    if change.operation == Operation.SUBTRACT:
        return ",".join(part for part in parts if part not in operands)
    parts += [operand for operand in dict.fromkeys(operands) if operand and operand not in parts]
    return ",".join(parts)


def _replacement(configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    _check_form((name for name, _ in configs), len(configs))
    missing = [name for name, value in configs if value is None]
    if missing:
        raise InvalidChange(f"Null value not supported for : {', '.join(missing)}")
    replaced = {name: value or "" for name, value in configs}
    _check_lengths(replaced)
    return replaced


def _check_form(names: Iterable[str], count: int) -> None:
    if len(set(names)) != count:
        raise InvalidChange("Error due to duplicate config keys")


def _check_lengths(configs: Mapping[str, str]) -> None:
    for value in configs.values():
        if len(value.encode("utf-8", "surrogatepass")) > LONGEST_VALUE:
            raise ConfigError(
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{LONGEST_VALUE} bytes."
            )


def _check_eligible_replicas(
    current: Mapping[str, str], altered: Mapping[str, str], per_broker: bool, elr_enabled: bool
) -> None:
    """With eligible leader replicas, min.insync.replicas is the cluster's, and always there."""
    name = "min.insync.replicas"
    if not elr_enabled or current.get(name) == altered.get(name):
        return
    if per_broker:
        raise ConfigError("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    if name not in altered:
        raise ConfigError("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")


def _check_broker(altered: Mapping[str, str], layers: Layers, per_broker: bool) -> None:
    """The checks on a broker's own properties. Apache Kafka answers all with INVALID_REQUEST."""
    _check_may_change(altered, per_broker)
    for name, value in altered.items():
        each = broker_setting(name)
        if each is not None:
            try:
                each.parse(value)
            except ConfigError as error:
                raise InvalidChange(str(error)) from None
    if per_broker:
        after = layers._replace(dynamic_broker=altered)
    else:
        after = layers._replace(dynamic_default=altered)
    try:
        new = overlaid(*after)
        listeners = Listeners.parse(new)
    except ConfigError as error:
        raise InvalidChange(str(error)) from None
    old = layers.settings()
    _check_listeners(Listeners.parse(old), layers, listeners, after)
    _check_threads(old, new)


def _check_listeners(old: Listeners, before: Layers, new: Listeners, after: Layers) -> None:
    """How a listener asks who its clients are is not altered while it listens, and nobody is to think so."""
    protocols = {each.name: each.protocol for each in new.clients + new.controllers}
    for each in old.clients + old.controllers:
        if each.name not in protocols:
            continue
        if _fixed_on_listener(before, each.name) != _fixed_on_listener(after, each.name):
            raise InvalidChange(
                f"Configs cannot be updated dynamically for existing listener ListenerName({each.name}), "
                "restart broker or create a new listener for update"
            )
        if protocols[each.name] != each.protocol:
            raise InvalidChange(
                f"Security protocol cannot be updated for existing listener ListenerName({each.name})"
            )


def _fixed_on_listener(layers: Layers, name: str) -> dict[str, str]:
    properties = {**layers.static, **layers.dynamic_default, **layers.dynamic_broker}
    return {
        full: properties[full]
        for base, full in overrides(properties, name)
        if base not in _WITH_LISTENER_ONLY and base not in _PER_LISTENER_ANYWHERE
    }


def _check_may_change(names: Iterable[str], per_broker: bool) -> None:
    fixed, without_listener, only_per_broker = [], [], []
    for name in sorted(names):
        each = declared(BrokerSettings).get(name)
        if each is None:
            base = declared(BrokerSettings).get(listener_property(name))
            if base is not None and base.name not in _PER_LISTENER_ANYWHERE:
                only_per_broker.append(name)
            # Any other name may be one that a plug-in knows; Apache Kafka stores it too.
        elif each.live == "no":
            fixed.append(name)
        elif name in _WITH_LISTENER_ONLY:
            without_listener.append(name)
        elif each.live == "broker":
            only_per_broker.append(name)
    if fixed:
        raise InvalidChange(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    if without_listener:
        raise InvalidChange(
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"[{', '.join(without_listener)}]"
        )
    if only_per_broker and not per_broker:
        raise InvalidChange(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(only_per_broker)}]"
        )


_PER_LISTENER_ANYWHERE = ("max.connections", "max.connection.creation.rate", "num.network.threads")
"""Properties of one listener that may be altered for the whole cluster."""

_WITH_LISTENER_ONLY = (
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
"""Keys and certificates, which can be altered for one listener but not for all of a broker."""

_THREADS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)


def _check_threads(old: BrokerSettings, new: BrokerSettings) -> None:
    """Thread counts may at most double or halve at a time, which stops a slip of a digit."""
    for name in _THREADS:
        before, after = (getattr(each, name.replace(".", "_")) for each in (old, new))
        if after == before:
            continue
        failed = f"Dynamic thread count update validation failed for {name}={after}"
        if after < before // 2:
            raise InvalidChange(f"{failed}, value should be at least half the current value {before}")
        if after > before * 2:
            raise InvalidChange(
                f"{failed}, value should not be greater than double the current value {before}"
            )
