"""The settings of one group, over those its broker gives to groups of that kind.

A value outside what the broker allows is refused when it is set; when the broker's limits moved
since, it is brought within them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.config.broker import BrokerSettings
from ottla.config.checks import offset_reset
from ottla.config.settings import ConfigError, Setting, declared, setting, settings


@settings
class GroupSettings:
    """How one consumer, share or streams group is run."""

    consumer_session_timeout_ms: int = setting(
        45_000,
        at_least=1,
        synonyms=("group.consumer.session.timeout.ms",),
        about="A consumer group member is removed after this long without a heartbeat.",
    )
    consumer_heartbeat_interval_ms: int = setting(
        5_000,
        at_least=1,
        synonyms=("group.consumer.heartbeat.interval.ms",),
        about="How often members of the consumer group send a heartbeat.",
    )
    consumer_assignment_interval_ms: int = setting(
        1_000,
        at_least=0,
        synonyms=("group.consumer.assignment.interval.ms",),
        about="The least time between two assignments of the consumer group.",
    )
    share_session_timeout_ms: int = setting(
        45_000,
        at_least=1,
        synonyms=("group.share.session.timeout.ms",),
        about="A share group member is removed after this long without a heartbeat.",
    )
    share_heartbeat_interval_ms: int = setting(
        5_000,
        at_least=1,
        synonyms=("group.share.heartbeat.interval.ms",),
        about="How often members of the share group send a heartbeat.",
    )
    share_assignment_interval_ms: int = setting(
        1_000,
        at_least=0,
        synonyms=("group.share.assignment.interval.ms",),
        about="The least time between two assignments of the share group.",
    )
    share_record_lock_duration_ms: int = setting(
        30_000,
        at_least=1_000,
        synonyms=("group.share.record.lock.duration.ms",),
        about="How long a consumer has a record to itself.",
    )
    share_delivery_count_limit: int = setting(
        5,
        at_least=2,
        synonyms=("group.share.delivery.count.limit",),
        about="How often a record is delivered before it is given up.",
    )
    share_partition_max_record_locks: int = setting(
        2_000,
        at_least=100,
        synonyms=("group.share.partition.max.record.locks",),
        about="Records of one partition that may be locked at once.",
    )
    share_auto_offset_reset: str = setting(
        "latest",
        check=offset_reset,
        about="Where the share group starts on a new partition: latest, earliest, or by_duration:PT1H.",
    )
    share_isolation_level: str = setting(
        "read_uncommitted",
        choices=("read_committed", "read_uncommitted"),
        about="Whether the share group sees records of transactions that are open or aborted.",
    )
    share_renew_acknowledge_enable: bool = setting(
        True, about="Let members of the share group extend the lock of a record."
    )
    streams_session_timeout_ms: int = setting(
        45_000,
        at_least=1,
        synonyms=("group.streams.session.timeout.ms",),
        about="A streams group member is removed after this long without a heartbeat.",
    )
    streams_heartbeat_interval_ms: int = setting(
        5_000,
        at_least=1,
        synonyms=("group.streams.heartbeat.interval.ms",),
        about="How often members of the streams group send a heartbeat.",
    )
    streams_assignment_interval_ms: int = setting(
        1_000,
        at_least=0,
        synonyms=("group.streams.assignment.interval.ms",),
        about="The least time between two assignments of the streams group.",
    )
    streams_initial_rebalance_delay_ms: int = setting(
        3_000,
        at_least=0,
        synonyms=("group.streams.initial.rebalance.delay.ms",),
        about="How long the new streams group waits for more members before its first assignment.",
    )
    streams_num_standby_replicas: int = setting(
        0,
        at_least=0,
        synonyms=("group.streams.num.standby.replicas",),
        about="Standby copies of each task of the streams group.",
    )


def _bounds(each: Setting) -> tuple[str | None, str | None]:
    """The broker's properties that limit a group's property: group.share.min.…, group.share.max.…"""
    known = declared(BrokerSettings)
    protocol, _, item = each.name.partition(".")
    least, most = f"group.{protocol}.min.{item}", f"group.{protocol}.max.{item}"
    if each.name == "streams.num.standby.replicas":
        most = "group.streams.max.standby.replicas"
    return (least if least in known else None), (most if most in known else None)


_BOUNDED = {each.name: _bounds(each) for each in declared(GroupSettings).values()}


def _broker_value(broker: BrokerSettings, name: str) -> Any:
    return getattr(broker, name.replace(".", "_"))


def group_settings(overrides: Mapping[str, str], broker: BrokerSettings) -> GroupSettings:
    """The settings of a group: its overrides, within the broker's limits, over the broker's settings."""
    values = _values(overrides, broker)
    for name, (least, most) in _BOUNDED.items():
        attribute = name.replace(".", "_")
        if least is not None:
            values[attribute] = max(values[attribute], _broker_value(broker, least))
        if most is not None:
            values[attribute] = min(values[attribute], _broker_value(broker, most))
    return GroupSettings(**values)


def check_group_configs(overrides: Mapping[str, str], broker: BrokerSettings | None = None) -> None:
    """Raise ConfigError unless a group may have these overrides, with Apache Kafka's messages."""
    for name in overrides:
        if name not in declared(GroupSettings):
            raise ConfigError(f"Unknown group config name: {name}")
    broker = BrokerSettings() if broker is None else broker
    values = _values(overrides, broker)
    for name, (least, most) in _BOUNDED.items():
        value = values.get(name.replace(".", "_"))
        if least is not None and value < _broker_value(broker, least):
            raise ConfigError(f"{name} must be greater than or equal to {least}")
        if most is not None and value > _broker_value(broker, most):
            raise ConfigError(f"{name} must be less than or equal to {most}")
    for protocol in ("consumer", "share", "streams"):
        if values[f"{protocol}_session_timeout_ms"] <= values[f"{protocol}_heartbeat_interval_ms"]:
            raise ConfigError(
                f"{protocol}.session.timeout.ms must be greater than {protocol}.heartbeat.interval.ms"
            )


def _values(overrides: Mapping[str, str], broker: BrokerSettings) -> dict[str, Any]:
    known = declared(GroupSettings)
    values = {
        each.attribute: _broker_value(broker, each.synonyms[0]) for each in known.values() if each.synonyms
    }
    for name, text in overrides.items():
        each = known.get(name)
        if each is not None:
            values[each.attribute] = each.parse(text)
    return values
