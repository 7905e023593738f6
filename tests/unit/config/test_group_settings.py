"""The settings of groups and of client metrics subscriptions."""

from __future__ import annotations

import pytest

from ottla.config.broker import BrokerSettings, broker_settings
from ottla.config.client_metrics import check_client_metrics_configs
from ottla.config.group import GroupSettings, check_group_configs, group_settings
from ottla.config.settings import ConfigError, InvalidChange, declared


def test_a_group_without_overrides_on_a_default_broker_has_kafkas_defaults() -> None:
    assert group_settings({}, BrokerSettings()) == GroupSettings()
    assert len(declared(GroupSettings)) == 17


def test_a_group_takes_the_brokers_settings_and_overrides_them() -> None:
    broker = broker_settings({"group.consumer.session.timeout.ms": "50000"})

    assert group_settings({}, broker).consumer_session_timeout_ms == 50_000
    assert (
        group_settings({"consumer.session.timeout.ms": "46000"}, broker).consumer_session_timeout_ms == 46_000
    )


def test_an_override_is_brought_within_limits_that_moved() -> None:
    broker = broker_settings({"group.streams.max.standby.replicas": "1"})

    assert group_settings({"streams.num.standby.replicas": "2"}, broker).streams_num_standby_replicas == 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("no.such", "1", "Unknown group config name: no.such"),
        (
            "consumer.session.timeout.ms",
            "5",
            "consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            "consumer.session.timeout.ms",
            "99999999",
            "less than or equal to group.consumer.max.session.timeout.ms",
        ),
        ("streams.num.standby.replicas", "5", "less than or equal to group.streams.max.standby.replicas"),
        ("share.delivery.count.limit", "11", "less than or equal to group.share.max.delivery.count.limit"),
        ("share.delivery.count.limit", "1", "Value must be at least 2"),
        ("share.isolation.level", "x", "String must be one of: read_committed, read_uncommitted"),
        ("share.auto.offset.reset", "EARLIEST", "'by_duration:<PnDTnHnMn.nS>'"),
        ("share.auto.offset.reset", "by_duration:-PT1H", "'by_duration:<PnDTnHnMn.nS>'"),
        ("share.auto.offset.reset", "by_duration:", "'by_duration:<PnDTnHnMn.nS>'"),
    ],
)
def test_a_bad_override_is_refused_with_kafkas_words(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_group_configs({name: value})

    assert message in str(refused.value)


def test_a_session_outlasts_a_heartbeat() -> None:
    broker = broker_settings({"group.share.max.heartbeat.interval.ms": "50000"})

    with pytest.raises(ConfigError, match=r"share.session.timeout.ms must be greater than share.heartbeat"):
        check_group_configs({"share.heartbeat.interval.ms": "45000"}, broker)


@pytest.mark.parametrize("value", ["latest", "earliest", "by_duration:PT1H", "by_duration:P1DT2H3M4.5S"])
def test_where_a_share_group_may_start(value: str) -> None:
    check_group_configs({"share.auto.offset.reset": value})


def test_a_subscription_says_which_clients_push_what() -> None:
    subscription = check_client_metrics_configs(
        {"metrics": "org.apache.kafka.producer.,x", "interval.ms": "1000", "match": "client_id=a.*"}
    )

    assert subscription.metrics == ("org.apache.kafka.producer.", "x")
    assert subscription.interval_ms == 1_000


@pytest.mark.parametrize(
    ("name", "value", "kind", "message"),
    [
        ("no.such", "1", InvalidChange, "Unknown client metrics configuration: no.such"),
        ("interval.ms", "5", InvalidChange, "interval must be between 100 and 3600000"),
        ("interval.ms", "abc", ConfigError, "Not a number of type INT"),
        ("match", "foo=bar", ConfigError, "Illegal client matching pattern: foo=bar"),
        ("match", "client_id", ConfigError, "Illegal client matching pattern: client_id"),
        ("match", "client_id=[", ConfigError, "Illegal client matching pattern: client_id=["),
    ],
)
def test_a_bad_subscription_is_refused(name: str, value: str, kind: type[ConfigError], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_client_metrics_configs({name: value})

    assert type(refused.value) is kind
    assert message in str(refused.value)
