"""What AlterConfigs and IncrementalAlterConfigs make of overrides, and what they refuse."""

from __future__ import annotations

import pytest

from ottla.config.alter import (
    Change,
    Operation,
    alter_broker,
    alter_client_metrics,
    alter_group,
    alter_topic,
    differences,
    replace_broker,
    replace_client_metrics,
    replace_group,
    replace_topic,
)
from ottla.config.broker import BrokerSettings, development_defaults
from ottla.config.describe import Layers
from ottla.config.settings import ConfigError, InvalidChange

SET, DELETE, APPEND, SUBTRACT = Operation.SET, Operation.DELETE, Operation.APPEND, Operation.SUBTRACT
BROKER = BrokerSettings()
LAYERS = Layers(development_defaults(), {"min.insync.replicas": "1"}, {})
THROTTLED = "leader.replication.throttled.replicas"


def test_set_and_delete_change_one_override_each() -> None:
    current = {"retention.ms": "5", "segment.ms": "6"}

    altered = alter_topic(
        current, [Change("retention.ms", SET, "7"), Change("segment.ms", DELETE, None)], BROKER
    )

    assert altered == {"retention.ms": "7"}
    assert current == {"retention.ms": "5", "segment.ms": "6"}


def test_deleting_what_is_not_set_changes_nothing() -> None:
    assert alter_topic({}, [Change("retention.ms", DELETE, None)], BROKER) == {}


@pytest.mark.parametrize(
    ("current", "operation", "value", "expected"),
    [
        ({THROTTLED: "0:1"}, APPEND, "1:2,0:1", "0:1,1:2"),
        ({}, APPEND, "1:2", "1:2"),
        ({THROTTLED: "0:1,1:2"}, SUBTRACT, "0:1,9:9", "1:2"),
        ({THROTTLED: "0:1"}, SUBTRACT, "0:1", ""),
        ({}, SUBTRACT, "0:1", ""),
    ],
)
def test_lists_grow_and_shrink(
    current: dict[str, str], operation: Operation, value: str, expected: str
) -> None:
    assert alter_topic(current, [Change(THROTTLED, operation, value)], BROKER) == {THROTTLED: expected}


def test_a_list_that_was_not_set_grows_from_its_default() -> None:
    altered = alter_topic({}, [Change("cleanup.policy", APPEND, "compact")], BROKER)

    assert altered == {"cleanup.policy": "delete,compact"}


def test_only_lists_grow() -> None:
    with pytest.raises(ConfigError) as refused:
        alter_topic({}, [Change("retention.ms", APPEND, "5")], BROKER)

    assert str(refused.value) == "Can't APPEND to key retention.ms because its type is not LIST."
    assert not isinstance(refused.value, InvalidChange)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], "Error due to duplicate config keys"),
        (
            [("retention.ms", SET, None), ("segment.ms", SET, None)],
            "not supported for : retention.ms, segment.ms",
        ),
        ([("retention.ms", 9, "1")], "Unknown operations type 9"),
    ],
)
def test_a_malformed_change_is_an_invalid_request(
    changes: list[tuple[str, int, str | None]], message: str
) -> None:
    with pytest.raises(InvalidChange) as refused:
        alter_topic({}, [Change(*each) for each in changes], BROKER)

    assert message in str(refused.value)


def test_the_outcome_is_checked_as_a_whole() -> None:
    with pytest.raises(ConfigError, match="conflict topic config setting"):
        alter_topic({"min.compaction.lag.ms": "10"}, [Change("max.compaction.lag.ms", SET, "5")], BROKER)


def test_an_unknown_topic_property_is_an_invalid_config() -> None:
    with pytest.raises(ConfigError, match=r"^Unknown topic config name: no.such$") as refused:
        alter_topic({}, [Change("no.such", SET, "1")], BROKER)

    assert not isinstance(refused.value, InvalidChange)


def test_a_value_too_long_for_the_log_is_refused() -> None:
    with pytest.raises(ConfigError, match="exceeds the maximum value size of 32767 bytes"):
        alter_topic({}, [Change(THROTTLED, SET, ",".join(f"{n}:1" for n in range(6000)))], BROKER)


def test_alter_configs_replaces_everything() -> None:
    assert replace_topic({"retention.ms": "5"}, [("segment.ms", "6")], BROKER) == {"segment.ms": "6"}
    assert replace_group([("consumer.session.timeout.ms", "46000")], BROKER)
    assert replace_client_metrics([("interval.ms", "1000")]) == {"interval.ms": "1000"}
    with pytest.raises(InvalidChange, match=r"Null value not supported for : segment.ms"):
        replace_topic({}, [("segment.ms", None)], BROKER)


def test_groups_and_subscriptions_are_altered_likewise() -> None:
    assert alter_group({}, [Change("share.delivery.count.limit", SET, "3")], BROKER)
    assert alter_client_metrics({"metrics": "a"}, [Change("metrics", APPEND, "b")]) == {"metrics": "a,b"}
    with pytest.raises(ConfigError, match="Unknown group config name"):
        alter_group({}, [Change("no.such", SET, "3")], BROKER)


def test_differences_are_what_has_to_be_recorded() -> None:
    assert differences({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "d": "4"}) == {
        "b": "9",
        "d": "4",
        "c": None,
    }


def test_a_broker_property_is_altered_for_a_broker_or_for_all() -> None:
    changes = [Change("log.retention.ms", SET, "60000")]

    assert alter_broker(changes, LAYERS, per_broker=True) == {"log.retention.ms": "60000"}
    assert alter_broker(changes, LAYERS, per_broker=False) == {
        "min.insync.replicas": "1",
        "log.retention.ms": "60000",
    }


@pytest.mark.parametrize(
    ("name", "value", "per_broker", "message"),
    [
        ("node.id", "5", True, "Cannot update these configs dynamically: [node.id]"),
        ("log.retention.hours", "5", False, "Cannot update these configs dynamically: [log.retention.hours]"),
        (
            "cordoned.log.dirs",
            "*",
            False,
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[cordoned.log.dirs]",
        ),
        (
            "listener.name.x.ssl.keystore.location",
            "/k",
            False,
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[listener.name.x.ssl.keystore.location]",
        ),
        (
            "ssl.keystore.location",
            "/k",
            True,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.location]",
        ),
        (
            "listener.name.plaintext.plain.sasl.jaas.config",
            "x required;",
            True,
            "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT), restart",
        ),
        (
            "listener.name.plaintext.ssl.client.auth",
            "none",
            True,
            "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT), restart",
        ),
        (
            "listener.name.plaintext.any.super.users",
            "User:eve",
            False,
            "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT), restart",
        ),
        (
            "listener.security.protocol.map",
            "PLAINTEXT:SSL",
            True,
            "Security protocol cannot be updated for existing listener ListenerName(PLAINTEXT)",
        ),
        ("num.io.threads", "abc", True, "Not a number of type INT"),
        ("log.retention.ms", "0", True, "log.retention.ms must be unlimited (-1)"),
        ("listeners", "NOWHERE://:1", True, "no security protocol defined for listener NOWHERE"),
    ],
)
def test_a_change_no_broker_can_make_is_an_invalid_request(
    name: str, value: str, per_broker: bool, message: str
) -> None:
    with pytest.raises(InvalidChange) as refused:
        alter_broker([Change(name, SET, value)], LAYERS, per_broker=per_broker)

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "per_broker"),
    [
        ("listener.name.x.ssl.keystore.location", "/k", True),
        ("listener.name.x.max.connections", "5", False),
        ("listener.name.plaintext.ssl.keystore.location", "/k", True),
        ("listener.name.plaintext.max.connections", "5", False),
        ("leader.replication.throttled.rate", "5", False),
        ("property.of.a.plug.in", "5", False),
        ("log.cleanup.policy", "", False),
    ],
)
def test_what_kafka_lets_change_may_change(name: str, value: str, per_broker: bool) -> None:
    assert alter_broker([Change(name, SET, value)], LAYERS, per_broker=per_broker)[name] == value


def test_threads_double_or_halve_at_most() -> None:
    def alter(count: int) -> dict[str, str]:
        return alter_broker([Change("num.io.threads", SET, str(count))], LAYERS, per_broker=True)

    assert alter(16) and alter(4)
    with pytest.raises(InvalidChange, match="should not be greater than double the current value 8"):
        alter(17)
    with pytest.raises(InvalidChange, match="should be at least half the current value 8"):
        alter(3)


def test_min_insync_replicas_is_the_clusters_while_elr_is_on() -> None:
    change = [Change("min.insync.replicas", SET, "2")]
    removal = [Change("min.insync.replicas", DELETE, None)]

    with pytest.raises(ConfigError, match=r"Broker-level min.insync.replicas cannot be altered"):
        alter_broker(change, LAYERS, per_broker=True, elr_enabled=True)
    with pytest.raises(ConfigError, match=r"Cluster-level min.insync.replicas cannot be removed"):
        alter_broker(removal, LAYERS, per_broker=False, elr_enabled=True)
    assert alter_broker(change, LAYERS, per_broker=False, elr_enabled=True) == {"min.insync.replicas": "2"}
    assert alter_broker(change, LAYERS, per_broker=True) == {"min.insync.replicas": "2"}


def test_replacing_a_brokers_properties_is_checked_the_same() -> None:
    assert replace_broker([("num.io.threads", "9")], LAYERS, per_broker=True) == {"num.io.threads": "9"}
    with pytest.raises(InvalidChange, match="Cannot update these configs dynamically"):
        replace_broker([("node.id", "9")], LAYERS, per_broker=True)
    with pytest.raises(ConfigError, match="cannot be removed while ELR is enabled"):
        replace_broker([("num.io.threads", "9")], LAYERS, per_broker=False, elr_enabled=True)
