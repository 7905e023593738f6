"""The settings of a broker: every property of Apache Kafka 4.3, and our own `ottla.` ones.

The declarations are in `ottla.config.areas`. Here they come together, with the checks between
properties, and with the properties that can be given in several units.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.config.areas.groups import GroupCoordinatorSettings
from ottla.config.areas.log import LogSettings
from ottla.config.areas.network import NetworkSettings
from ottla.config.areas.node import NodeSettings
from ottla.config.areas.own import OwnSettings
from ottla.config.areas.quorum import QuorumSettings
from ottla.config.areas.quotas import QuotaSettings
from ottla.config.areas.remote import RemoteLogSettings
from ottla.config.areas.replication import ReplicationSettings
from ottla.config.areas.sasl import SaslSettings
from ottla.config.areas.security import SecuritySettings
from ottla.config.areas.share_groups import ShareGroupSettings
from ottla.config.areas.transactions import TransactionSettings
from ottla.config.development import development_defaults as development_defaults
from ottla.config.names import is_passed_through, refuse_removed
from ottla.config.settings import LONG_MAX, ConfigError, MiB, declared, load, settings
from ottla.core.principal import Principal, parse_principal

AREAS = (
    NodeSettings,
    NetworkSettings,
    LogSettings,
    ReplicationSettings,
    GroupCoordinatorSettings,
    ShareGroupSettings,
    TransactionSettings,
    QuorumSettings,
    QuotaSettings,
    RemoteLogSettings,
    SecuritySettings,
    SaslSettings,
    OwnSettings,
)


@settings
class BrokerSettings(
    OwnSettings,
    SaslSettings,
    SecuritySettings,
    RemoteLogSettings,
    QuotaSettings,
    QuorumSettings,
    TransactionSettings,
    ShareGroupSettings,
    GroupCoordinatorSettings,
    ReplicationSettings,
    LogSettings,
    NetworkSettings,
    NodeSettings,
):
    """Everything a node is told; `log.segment.bytes` is `log_segment_bytes`."""

    @property
    def data_dirs(self) -> tuple[str, ...]:
        """Where the logs are: log.dirs, or log.dir without it."""
        return self.log_dir if self.log_dirs is None else self.log_dirs

    @property
    def metadata_dir(self) -> str:
        """Where the metadata log is: metadata.log.dir, or the first data directory."""
        return self.metadata_log_dir or self.data_dirs[0]

    @property
    def super_principals(self) -> tuple[Principal, ...]:
        """Whom no access rule stops. Raises ValueError for what is no principal."""
        return tuple(parse_principal(each.strip()) for each in self.super_users.split(";") if each.strip())

    @property
    def retention_ms(self) -> int:
        """How long records are kept; -1 for ever."""
        value = self.log_retention_ms
        if value is None and self.log_retention_minutes is not None:
            value = self.log_retention_minutes * 60_000
        if value is None:
            value = self.log_retention_hours * 3_600_000
        return -1 if value < 0 else value

    @property
    def roll_ms(self) -> int:
        """The age at which a segment rolls."""
        return self.log_roll_hours * 3_600_000 if self.log_roll_ms is None else self.log_roll_ms

    @property
    def roll_jitter_ms(self) -> int:
        """By how much the rolling is spread."""
        hours = self.log_roll_jitter_hours
        return hours * 3_600_000 if self.log_roll_jitter_ms is None else self.log_roll_jitter_ms

    @property
    def flush_ms(self) -> int:
        """How long a partition may go without a flush."""
        scheduled = self.log_flush_scheduler_interval_ms
        return scheduled if self.log_flush_interval_ms is None else self.log_flush_interval_ms


def broker_settings(static: Mapping[str, str]) -> BrokerSettings:
    """The settings of a property file. Raises ConfigError for what no broker could run with."""
    named: dict[str, str] = {}
    for name, value in static.items():
        if name in declared(BrokerSettings):
            named[name] = value
        elif not is_passed_through(name):
            refuse_removed(name)
            named[name] = value
    if "node.id" not in named and "broker.id" in named:
        named["node.id"] = named["broker.id"]
    broker = load(BrokerSettings, named)
    if "broker.id" in named and broker.broker_id != broker.node_id:
        raise ConfigError("You must set `node.id` to the same value as `broker.id`.")
    check_together(broker)
    return broker


def effective(
    static: Mapping[str, str],
    dynamic_default: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
) -> BrokerSettings:
    """The settings in force: the file, what was altered for the cluster, and for this broker.

    Altered properties were checked when they were altered. What cannot be used all the same
    (written by another version, or at odds with a file that changed) is left out, as Apache Kafka
    does: a node that refuses to start could not be altered back.
    """
    for layers in ((dynamic_default, dynamic_broker), (dynamic_default, {})):
        try:
            return overlaid(static, *layers)
        except ConfigError:
            continue
    return overlaid(static, {}, {})


def overlaid(
    static: Mapping[str, str],
    dynamic_default: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
) -> BrokerSettings:
    """As `effective`, but raises ConfigError when the layers contradict each other."""
    known = declared(BrokerSettings)
    named = dict(static)
    for layer in (dynamic_default, dynamic_broker):
        for name, value in layer.items():
            each = known.get(name)
            if each is None or each.live == "no":
                continue
            try:
                each.parse(value)
            except ConfigError:
                continue
            named[name] = value
    return broker_settings(named)


def check_together(broker: BrokerSettings) -> None:
    """The checks that need more than one property, with Apache Kafka's messages."""
    _check_log(broker)
    _check_network_and_replication(broker)
    for protocol in ("consumer", "share", "streams"):
        _check_group_bounds(broker, protocol)
    if "classic" not in broker.group_coordinator_rebalance_protocols:
        raise ConfigError("Disabling the 'classic' protocol is not supported.")
    if not 0 <= broker.offsets_topic_compression_codec <= 4:
        raise ConfigError(f"Unknown compression type id: {broker.offsets_topic_compression_codec}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _check_log(broker: BrokerSettings) -> None:
    _require(broker.roll_ms >= 1, "log.roll.ms must be greater than or equal to 1")
    _require(broker.roll_jitter_ms >= 0, "log.roll.jitter.ms must be greater than or equal to 0")
    _require(
        broker.retention_ms != 0,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    )
    _require(
        broker.log_cleaner_threads == 0
        or broker.log_cleaner_dedupe_buffer_size // broker.log_cleaner_threads > MiB,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )
    if broker.cordoned_log_dirs not in ((), ("*",)):
        _require(
            "*" not in broker.cordoned_log_dirs,
            "When cordoned.log.dirs is set to *, it must not contain other values",
        )
        missing = [each for each in broker.cordoned_log_dirs if each not in broker.data_dirs]
        _require(
            not missing,
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
            f"Missing entries : {', '.join(missing)}",
        )


def _check_network_and_replication(broker: BrokerSettings) -> None:
    _require(
        broker.replica_fetch_wait_max_ms <= broker.replica_socket_timeout_ms,
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms "
        "to prevent unnecessary socket timeouts",
    )
    _require(
        broker.replica_fetch_wait_max_ms <= broker.replica_lag_time_max_ms,
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms "
        "to prevent frequent changes in ISR",
    )
    _require(
        broker.queued_max_request_bytes <= 0
        or broker.queued_max_request_bytes >= broker.socket_request_max_bytes,
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    overrides = connections_per_ip_overrides(broker)
    _require(
        broker.max_connections_per_ip != 0 or bool(overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    idle = broker.connections_max_idle_ms
    delay = broker.connection_failed_authentication_delay_ms
    _require(
        idle < 0 or delay < idle,
        f"connection.failed.authentication.delay.ms={delay} should always be less than "
        f"connections.max.idle.ms={idle} to prevent failed authentication responses from timing out",
    )


def _check_group_bounds(broker: BrokerSettings, protocol: str) -> None:
    def value(name: str) -> int:
        return int(getattr(broker, name.replace(".", "_")))

    bounded = ["session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"]
    if protocol == "share":
        bounded += ["delivery.count.limit", "record.lock.duration.ms", "partition.max.record.locks"]
    for item in bounded:
        chosen, least, most = (f"group.{protocol}.{bound}{item}" for bound in ("", "min.", "max."))
        _require(value(most) >= value(least), f"{most} must be greater than or equal to {least}")
        _require(value(chosen) >= value(least), f"{chosen} must be greater than or equal to {least}")
        _require(value(chosen) <= value(most), f"{chosen} must be less than or equal to {most}")
    heartbeat, session = (
        f"group.{protocol}.{item}" for item in ("heartbeat.interval.ms", "session.timeout.ms")
    )
    _require(value(heartbeat) < value(session), f"{heartbeat} must be less than {session}")
    if protocol == "streams":
        _require(
            broker.group_streams_num_standby_replicas <= broker.group_streams_max_standby_replicas,
            "group.streams.num.standby.replicas must be less than or equal to "
            "group.streams.max.standby.replicas",
        )


def connections_per_ip_overrides(broker: BrokerSettings) -> dict[str, int]:
    """max.connections.per.ip.overrides, parsed: address to limit."""
    overrides: dict[str, int] = {}
    for entry in broker.max_connections_per_ip_overrides.split(","):
        if not entry.strip():
            continue
        host, colon, count = entry.strip().rpartition(":")
        if not colon or not host or not count.isascii() or not count.isdigit() or int(count) > LONG_MAX:
            raise ConfigError(
                "Error parsing configuration property 'max.connections.per.ip.overrides': "
                f"{entry.strip()} is not in the form host:count"
            )
        overrides[host] = int(count)
    return overrides
