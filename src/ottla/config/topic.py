"""The settings of a topic.

A topic starts from its broker's settings (`synonyms` names the property there) and overrides some.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.config.broker import BrokerSettings
from ottla.config.checks import gzip_level, throttled_replicas
from ottla.config.settings import (
    LONG_MAX,
    ConfigError,
    GiB,
    Kind,
    MiB,
    Setting,
    declared,
    setting,
    settings,
)


@settings
class TopicSettings:
    """How one topic is kept. `TopicSettings()` has Apache Kafka's defaults."""

    segment_bytes: int = setting(
        1 * GiB, at_least=1 * MiB, synonyms=("log.segment.bytes",), about="Roll a segment at this size."
    )
    segment_ms: int = setting(
        604_800_000,
        kind=Kind.LONG,
        at_least=1,
        synonyms=("log.roll.ms",),
        about="Roll a segment at this age.",
    )
    segment_jitter_ms: int = setting(
        0,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.roll.jitter.ms",),
        about="Spread the rolling by up to this much.",
    )
    segment_index_bytes: int = setting(
        10 * MiB,
        at_least=4,
        synonyms=("log.index.size.max.bytes",),
        about="The largest offset or time index; a full one rolls the segment.",
    )
    index_interval_bytes: int = setting(
        4096,
        at_least=0,
        synonyms=("log.index.interval.bytes",),
        about="Add an index entry every so many bytes.",
    )
    retention_ms: int = setting(
        604_800_000,
        kind=Kind.LONG,
        at_least=-1,
        synonyms=("log.retention.ms",),
        about="Keep records this long; -1 for ever.",
    )
    retention_bytes: int = setting(
        -1,
        kind=Kind.LONG,
        synonyms=("log.retention.bytes",),
        about="Keep at most this much of a partition; -1 for no limit.",
    )
    max_message_bytes: int = setting(
        1_048_588,
        at_least=0,
        synonyms=("message.max.bytes",),
        about="The largest record batch accepted, as it arrives.",
    )
    message_timestamp_type: str = setting(
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        synonyms=("log.message.timestamp.type",),
        about="Whose time a record carries: CreateTime, the producer's, or LogAppendTime, the broker's.",
    )
    message_timestamp_before_max_ms: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.message.timestamp.before.max.ms",),
        about="Refuse a record whose timestamp is older than the broker's clock by more than this.",
    )
    message_timestamp_after_max_ms: int = setting(
        3_600_000,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.message.timestamp.after.max.ms",),
        about="Refuse a record whose timestamp is ahead of the broker's clock by more than this.",
    )
    compression_type: str = setting(
        "producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        synonyms=("compression.type",),
        about="How batches are stored: producer keeps what arrives, any other value recompresses.",
    )
    compression_gzip_level: int = setting(
        -1,
        check=gzip_level,
        synonyms=("compression.gzip.level",),
        about="The gzip level used when the broker compresses; -1 is the library's own.",
    )
    compression_lz4_level: int = setting(
        9,
        at_least=1,
        at_most=17,
        synonyms=("compression.lz4.level",),
        about="The lz4 level used when the broker compresses.",
    )
    compression_zstd_level: int = setting(
        3,
        at_least=-131_072,
        at_most=22,
        synonyms=("compression.zstd.level",),
        about="The zstd level used when the broker compresses.",
    )
    cleanup_policy: frozenset[str] = setting(
        frozenset({"delete"}),
        choices=("compact", "delete"),
        synonyms=("log.cleanup.policy",),
        about="What happens to old segments: delete, compact, both, or nothing.",
    )
    min_insync_replicas: int = setting(
        1,
        at_least=1,
        synonyms=("min.insync.replicas",),
        about="Replicas that must have a write before it is acknowledged with acks=all.",
    )
    unclean_leader_election_enable: bool = setting(
        False,
        synonyms=("unclean.leader.election.enable",),
        about="Elect a leader that was not in sync rather than none, and lose what it lacks.",
    )
    file_delete_delay_ms: int = setting(
        60_000,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.segment.delete.delay.ms",),
        about="How long a deleted file stays on disk.",
    )
    flush_messages: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=1,
        synonyms=("log.flush.interval.messages",),
        about="Flush a partition after this many records.",
    )
    flush_ms: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.flush.interval.ms",),
        about="Flush a partition after this long.",
    )
    preallocate: bool = setting(
        False, synonyms=("log.preallocate",), about="Reserve the whole segment on disk when it is created."
    )
    delete_retention_ms: int = setting(
        86_400_000,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.cleaner.delete.retention.ms",),
        about="How long the deletion of a key stays visible in a compacted topic.",
    )
    min_cleanable_dirty_ratio: float = setting(
        0.5,
        at_least=0,
        at_most=1,
        synonyms=("log.cleaner.min.cleanable.ratio",),
        about="Compact a log once this share of it is dirty.",
    )
    min_compaction_lag_ms: int = setting(
        0,
        kind=Kind.LONG,
        at_least=0,
        synonyms=("log.cleaner.min.compaction.lag.ms",),
        about="Never compact a record younger than this.",
    )
    max_compaction_lag_ms: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=1,
        synonyms=("log.cleaner.max.compaction.lag.ms",),
        about="Compact a record no later than this.",
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        (),
        check=lambda value: throttled_replicas("leader.replication.throttled.replicas", value),
        about="Replicas, as partition:broker, that leaders send slowly; * for all.",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        (),
        check=lambda value: throttled_replicas("follower.replication.throttled.replicas", value),
        about="Replicas, as partition:broker, that followers fetch slowly; * for all.",
    )
    remote_storage_enable: bool = setting(False, about="Move older segments to the remote store.")
    remote_log_copy_disable: bool = setting(
        False, about="Copy nothing more to the remote store, but keep reading what is there."
    )
    remote_log_delete_on_disable: bool = setting(
        False, about="Delete what is in the remote store when remote.storage.enable is switched off."
    )
    local_retention_ms: int = setting(
        -2,
        kind=Kind.LONG,
        at_least=-2,
        synonyms=("log.local.retention.ms",),
        about="Keep a tiered partition's records locally this long; -2 for retention.ms.",
    )
    local_retention_bytes: int = setting(
        -2,
        kind=Kind.LONG,
        at_least=-2,
        synonyms=("log.local.retention.bytes",),
        about="Keep at most this much of a tiered partition locally; -2 for retention.bytes.",
    )
    internal_segment_bytes: int | None = setting(
        None, internal=True, about="A segment size for tests, without a lower limit."
    )


_INHERITED = {
    each.attribute: each.synonyms[0].replace(".", "_")
    for each in declared(TopicSettings).values()
    if each.synonyms
} | {
    # These can be given in several units; the broker's settings say which one wins.
    "retention_ms": "retention_ms",
    "segment_ms": "roll_ms",
    "segment_jitter_ms": "roll_jitter_ms",
    "flush_ms": "flush_ms",
}


def topic_settings(overrides: Mapping[str, str], broker: BrokerSettings) -> TopicSettings:
    """The settings of a topic: its overrides over its broker's settings.

    Overrides were checked when they were set. A name this version does not know is left out: a
    topic made by a newer one has to stay readable.
    """
    values: dict[str, Any] = {mine: getattr(broker, its) for mine, its in _INHERITED.items()}
    values["cleanup_policy"] = frozenset(broker.log_cleanup_policy)
    known = declared(TopicSettings)
    for name, text in overrides.items():
        each = known.get(name)
        if each is not None:
            values[each.attribute] = each.parse(text)
    if values.get("internal_segment_bytes") is not None:
        values["segment_bytes"] = values["internal_segment_bytes"]
    return TopicSettings(**values)


def topic_setting(name: str) -> Setting:
    """The declaration of a topic property. Raises ConfigError for an unknown one."""
    each = declared(TopicSettings).get(name)
    if each is None:
        raise ConfigError(f"Unknown topic config name: {name}")
    return each


def check_topic_config(name: str, value: str) -> None:
    """Raise ConfigError unless this property may have this value, whatever the others are."""
    topic_setting(name).parse(value)


def check_topic_configs(
    overrides: Mapping[str, str],
    broker: BrokerSettings | None = None,
    previous: Mapping[str, str] | None = None,
) -> TopicSettings:
    """Check all overrides of a topic together; `previous` are those it had before.

    Raises ConfigError with the message Apache Kafka gives with INVALID_CONFIG.
    """
    for name in overrides:
        topic_setting(name)
    broker = BrokerSettings() if broker is None else broker
    topic = topic_settings(overrides, broker)
    least, most = topic.min_compaction_lag_ms, topic.max_compaction_lag_ms
    if least > most:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )
    if topic.remote_storage_enable:
        _check_remote(topic, broker)
    elif (previous or {}).get("remote.storage.enable", "false").strip().lower() == "true":
        _check_remote_off(topic)
    return topic


def _check_remote(topic: TopicSettings, broker: BrokerSettings) -> None:
    if not broker.remote_log_storage_system_enable:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    if "compact" in topic.cleanup_policy:
        raise ConfigError(
            "Remote log storage only supports topics with cleanup.policy=delete "
            "or cleanup.policy being an empty list."
        )
    for unit, total, local in (
        ("bytes", topic.retention_bytes, topic.local_retention_bytes),
        ("ms", topic.retention_ms, topic.local_retention_ms),
    ):
        if total > -1 and local != -2:
            refused = f"Invalid value {local} for configuration local.retention.{unit}"
            if local == -1:
                raise ConfigError(
                    f"{refused}: Value must not be -1 as retention.{unit} value is set as {total}."
                )
            if local > total:
                raise ConfigError(
                    f"{refused}: Value must not be more than retention.{unit} property value: {total}"
                )
        if topic.remote_log_copy_disable and local not in (-2, total):
            raise ConfigError(
                f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and "
                f"`retention.{unit}` must be set to the identical value because there will be no more logs "
                "copied to the remote storage."
            )


def _check_remote_off(topic: TopicSettings) -> None:
    if not topic.remote_log_delete_on_disable:
        raise ConfigError(
            "It is invalid to disable remote storage without deleting remote data. If you want to keep the "
            "remote data and turn to read only, please set "
            "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote "
            "storage and delete all remote data, please set "
            "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
        )
