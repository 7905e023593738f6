"""The settings of a topic: what it inherits, what it may override, and what is refused."""

from __future__ import annotations

import pytest

from ottla.config.broker import BrokerSettings, broker_settings
from ottla.config.settings import ConfigError, declared
from ottla.config.topic import TopicSettings, check_topic_config, check_topic_configs, topic_settings

TIERED = broker_settings({"remote.log.storage.system.enable": "true"})


def test_a_topic_without_overrides_on_a_default_broker_has_kafkas_defaults() -> None:
    assert topic_settings({}, BrokerSettings()) == TopicSettings()


def test_all_topic_properties_of_kafka_are_there() -> None:
    assert len([name for name, each in declared(TopicSettings).items() if not each.internal]) == 33


def test_a_topic_takes_the_brokers_settings() -> None:
    broker = broker_settings(
        {
            "log.segment.bytes": "2097152",
            "log.cleanup.policy": "compact,delete",
            "message.max.bytes": "99",
            "log.flush.scheduler.interval.ms": "77",
            "log.cleaner.min.cleanable.ratio": "0.25",
        }
    )

    topic = topic_settings({}, broker)

    assert topic.segment_bytes == 2_097_152
    assert topic.cleanup_policy == {"compact", "delete"}
    assert topic.max_message_bytes == 99
    assert topic.flush_ms == 77
    assert topic.min_cleanable_dirty_ratio == 0.25


def test_an_override_beats_the_broker() -> None:
    broker = broker_settings({"log.retention.ms": "10", "log.cleanup.policy": "delete"})

    topic = topic_settings({"retention.ms": "20", "cleanup.policy": "compact"}, broker)

    assert (topic.retention_ms, topic.cleanup_policy) == (20, {"compact"})


def test_an_override_of_a_newer_version_is_left_out() -> None:
    assert topic_settings({"from.the.future": "1"}, BrokerSettings()) == TopicSettings()


def test_tests_can_have_tiny_segments() -> None:
    assert check_topic_configs({"internal.segment.bytes": "512"}).segment_bytes == 512


def test_an_empty_cleanup_policy_keeps_everything() -> None:
    assert check_topic_configs({"cleanup.policy": ""}).cleanup_policy == frozenset()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "segment.bytes",
            "1000",
            "Invalid value 1000 for configuration segment.bytes: Value must be at least 1048576",
        ),
        ("segment.bytes", "2147483648", "Not a number of type INT"),
        ("retention.ms", "-2", "Value must be at least -1"),
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("cleanup.policy", "Delete", "String must be one of: compact, delete"),
        ("cleanup.policy", "delete,", "Configuration 'cleanup.policy' values must not be empty."),
        ("compression.type", "bz2", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "10", "Value must be between 1 and 9 or equal to -1"),
        ("compression.lz4.level", "18", "Value must be no more than 17"),
        ("compression.zstd.level", "-200000", "Value must be at least -131072"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("message.timestamp.type", "x", "String must be one of: CreateTime, LogAppendTime"),
        ("min.insync.replicas", "0", "Value must be at least 1"),
        ("preallocate", "maybe", "Expected value to be either true or false"),
        ("leader.replication.throttled.replicas", "0-1", "Invalid value [0-1] for configuration leader."),
        ("follower.replication.throttled.replicas", "*,0:1", "must be the literal '*' or a list of replicas"),
        ("message.format.version", "2.8", "Unknown topic config name: message.format.version"),
    ],
)
def test_a_bad_override_is_refused_with_kafkas_words(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as one:
        check_topic_config(name, value)
    with pytest.raises(ConfigError) as all_together:
        check_topic_configs({name: value})

    assert message in str(one.value)
    assert str(all_together.value) == str(one.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,1:2"),
        ("leader.replication.throttled.replicas", ""),
        ("compression.gzip.level", "-1"),
        ("retention.bytes", "-5"),
        ("preallocate", " TRUE "),
    ],
)
def test_what_kafka_takes_is_taken(name: str, value: str) -> None:
    check_topic_config(name, value)


def test_compaction_cannot_be_late_before_it_may_start() -> None:
    with pytest.raises(ConfigError, match=r"min.compaction.lag.ms \(10\) > max.compaction.lag.ms \(5\)"):
        check_topic_configs({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


def test_the_brokers_lag_counts_in_that_check() -> None:
    broker = broker_settings({"log.cleaner.max.compaction.lag.ms": "5"})

    with pytest.raises(ConfigError, match="conflict topic config setting"):
        check_topic_configs({"min.compaction.lag.ms": "10"}, broker)


def test_tiered_storage_needs_a_broker_that_has_it() -> None:
    with pytest.raises(ConfigError, match="Tiered Storage functionality is disabled in the broker"):
        check_topic_configs({"remote.storage.enable": "true"})
    assert check_topic_configs({"remote.storage.enable": "true"}, TIERED).remote_storage_enable


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"cleanup.policy": "compact"}, "only supports topics with cleanup.policy=delete"),
        ({"local.retention.ms": "-1"}, "Value must not be -1 as retention.ms value is set as 604800000."),
        ({"local.retention.ms": "700000000"}, "Value must not be more than retention.ms property value"),
        (
            {"retention.bytes": "100", "local.retention.bytes": "200"},
            "Invalid value 200 for configuration local",
        ),
        (
            {"remote.log.copy.disable": "true", "local.retention.bytes": "5"},
            "must be set to the identical value",
        ),
    ],
)
def test_a_tiered_topic_that_makes_no_sense_is_refused(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_topic_configs({"remote.storage.enable": "true", **overrides}, TIERED)

    assert message in str(refused.value)


def test_tiered_storage_is_not_switched_off_with_data_left_behind() -> None:
    before = {"remote.storage.enable": "true"}
    deleting = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}

    with pytest.raises(ConfigError, match="without deleting remote data"):
        check_topic_configs({"remote.storage.enable": "false"}, TIERED, before)
    check_topic_configs(deleting, TIERED, before)
    check_topic_configs({"remote.storage.enable": "false"}, TIERED, {})
