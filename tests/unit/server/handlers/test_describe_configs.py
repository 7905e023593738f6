from __future__ import annotations

import logging
from typing import Any

import pytest

from ottla.protocol.errors import InvalidRequest, InvalidTopic, UnknownTopicOrPartition
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from ottla.protocol.stored import metadata as stored
from ottla.server.handlers.describe_configs import describe_configs

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
FROM_TOPIC, FROM_BROKER, FROM_CLUSTER, FROM_FILE, DEFAULT, FROM_LOGGER, FROM_METRICS, FROM_GROUP = range(1, 9)


def describe(
    node: Any, kind: int, name: str, *keys: str, version: int = 4, **fields: Any
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    response = node.call(describe_configs, DescribeConfigsRequest(resources=[resource], **fields), version)
    (result,) = response.results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result  # type: ignore[no-any-return]


def config(node: Any, kind: int, name: str, key: str, **fields: Any) -> DescribeConfigsResourceResult:
    result = describe(node, kind, name, key, **fields)
    assert result.error_code == 0
    (found,) = result.configs
    assert found.name == key
    return found


def set_config(node: Any, kind: int, resource: str, name: str, value: str) -> None:
    node.apply(stored.ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value))


def test_a_topic_shows_what_is_its_own_and_what_it_has_from_elsewhere(make_node: Any) -> None:
    node = make_node(log_retention_bytes="12345")
    node.register()
    node.create("a", configs={"retention.ms": "60000"})
    own = config(node, TOPIC, "a", "retention.ms")
    assert (own.value, own.config_source, own.read_only, own.is_sensitive) == (
        "60000",
        FROM_TOPIC,
        False,
        False,
    )
    inherited = config(node, TOPIC, "a", "retention.bytes")
    assert (inherited.value, inherited.config_source) == ("12345", FROM_FILE)
    default = config(node, TOPIC, "a", "segment.bytes")
    assert (default.value, default.config_source) == ("1073741824", DEFAULT)


def test_a_topic_has_all_of_kafkas_topic_configs(node: Any) -> None:
    node.create("a")
    names = {each.name for each in describe(node, TOPIC, "a").configs}
    assert {"cleanup.policy", "min.insync.replicas", "remote.storage.enable"} <= names
    assert len(names) == 33


def test_synonyms_and_documentation_come_to_those_who_ask(node: Any) -> None:
    node.create("a", configs={"retention.bytes": "60000"})
    plain = config(node, TOPIC, "a", "retention.bytes")
    assert (plain.synonyms, plain.documentation) == ([], None)
    full = config(node, TOPIC, "a", "retention.bytes", include_synonyms=True, include_documentation=True)
    assert [(s.name, s.value, s.source) for s in full.synonyms] == [
        ("retention.bytes", "60000", FROM_TOPIC),
        ("log.retention.bytes", "-1", DEFAULT),
    ]
    assert full.documentation


def test_missing_topics_are_told_from_illegal_names(node: Any) -> None:
    assert describe(node, TOPIC, "nope").error_code == UnknownTopicOrPartition.code
    illegal = describe(node, TOPIC, "not a name")
    assert illegal.error_code == InvalidTopic.code
    assert illegal.error_message is not None and "Topic name is invalid" in illegal.error_message


def test_a_broker_shows_which_layer_a_value_comes_from(make_node: Any) -> None:
    node = make_node(num_io_threads="4")
    node.register()
    set_config(node, BROKER, "", "log.cleaner.threads", "2")
    set_config(node, BROKER, "1", "background.threads", "12")
    assert config(node, BROKER, "1", "num.io.threads").config_source == FROM_FILE
    assert config(node, BROKER, "1", "log.cleaner.threads").config_source == FROM_CLUSTER
    threads = config(node, BROKER, "1", "background.threads", include_synonyms=True)
    assert (threads.value, threads.config_source, threads.config_type) == ("12", FROM_BROKER, 3)
    assert [(s.value, s.source) for s in threads.synonyms] == [("12", FROM_BROKER), ("10", DEFAULT)]
    assert config(node, BROKER, "1", "node.id").read_only


def test_the_empty_broker_name_is_what_was_set_for_the_cluster(node: Any) -> None:
    assert describe(node, BROKER, "").configs == []
    set_config(node, BROKER, "", "log.cleaner.threads", "2")
    (only,) = describe(node, BROKER, "").configs
    assert (only.name, only.value, only.config_source) == ("log.cleaner.threads", "2", FROM_CLUSTER)


def test_a_key_nobody_knows_is_left_out_and_no_keys_mean_all(node: Any) -> None:
    assert [c.name for c in describe(node, BROKER, "1", "num.io.threads", "nope").configs] == [
        "num.io.threads"
    ]
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=[])
    response = node.call(describe_configs, DescribeConfigsRequest(resources=[resource]))
    assert len(response.results[0].configs) > 300


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (BROKER, "7", "Unexpected broker id, expected 1 or empty string, but received 7"),
        (BROKER, "x", "Broker id must be an integer, but it is: x"),
        (BROKER_LOGGER, "", "Broker id must not be empty"),
        (BROKER_LOGGER, "2", "Unexpected broker id, expected 1 but received 2"),
        (CLIENT_METRICS, "", "Client metrics subscription name must not be empty"),
        (GROUP, "", "Group name must not be empty"),
    ],
)
def test_resources_that_are_not_ours_are_refused_in_kafkas_words(
    node: Any, kind: int, name: str, message: str
) -> None:
    result = describe(node, kind, name)
    assert (result.error_code, result.error_message, result.configs) == (InvalidRequest.code, message, [])


def test_an_unknown_kind_of_resource_does_not_spoil_the_others(node: Any) -> None:
    node.create("a")
    resources = [
        DescribeConfigsResource(resource_type=77, resource_name="x", configuration_keys=None),
        DescribeConfigsResource(resource_type=TOPIC, resource_name="a", configuration_keys=["retention.ms"]),
    ]
    bad, good = node.call(describe_configs, DescribeConfigsRequest(resources=resources)).results
    assert bad.error_code == InvalidRequest.code
    assert (good.error_code, len(good.configs)) == (0, 1)


def test_many_resources_are_described_in_order(node: Any) -> None:
    names = [f"t{number}" for number in range(120)]
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=["retention.ms"])
        for name in names
    ]
    response = node.call(describe_configs, DescribeConfigsRequest(resources=resources))
    assert [result.resource_name for result in response.results] == names


def test_loggers_show_the_level_they_go_by(node: Any) -> None:
    logger = logging.getLogger("ottla.test.describe_configs")
    logger.setLevel(logging.WARNING)
    found = config(node, BROKER_LOGGER, "1", logger.name)
    assert (found.value, found.config_source, found.read_only) == ("WARN", FROM_LOGGER, False)
    assert "root" in {each.name for each in describe(node, BROKER_LOGGER, "1").configs}


def test_groups_and_metrics_subscriptions_show_defaults_until_they_are_set(node: Any) -> None:
    timeout = config(node, GROUP, "g", "consumer.session.timeout.ms")
    assert (timeout.value, timeout.config_source) == ("45000", DEFAULT)
    set_config(node, GROUP, "g", "consumer.session.timeout.ms", "50000")
    timeout = config(node, GROUP, "g", "consumer.session.timeout.ms")
    assert (timeout.value, timeout.config_source) == ("50000", FROM_GROUP)
    interval = config(node, CLIENT_METRICS, "s", "interval.ms")
    assert (interval.value, interval.config_source) == ("300000", DEFAULT)
    set_config(node, CLIENT_METRICS, "s", "interval.ms", "1000")
    assert config(node, CLIENT_METRICS, "s", "interval.ms").config_source == FROM_METRICS


@pytest.mark.parametrize("version", range(5))
def test_every_version_can_be_answered(node: Any, version: int) -> None:
    node.create("a", configs={"retention.ms": "60000"})
    own = config(node, TOPIC, "a", "retention.ms", version=version)
    default = config(node, TOPIC, "a", "segment.bytes", version=version)
    if version == 0:
        assert (own.is_default, default.is_default) == (False, True)
    else:
        assert (own.config_source, default.config_source) == (FROM_TOPIC, DEFAULT)
    assert own.config_type == (5 if version >= 3 else 0)
