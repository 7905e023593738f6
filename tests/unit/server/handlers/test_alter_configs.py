"""AlterConfigs and IncrementalAlterConfigs, whose rules are mostly the same."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ottla.protocol.errors import InvalidConfig, InvalidRequest, NotController, UnknownTopicOrPartition
from ottla.protocol.messages import alter_configs as replacing
from ottla.protocol.messages import incremental_alter_configs as incremental
from ottla.server.handlers.alter_configs import alter_configs
from ottla.server.handlers.incremental_alter_configs import incremental_alter_configs

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

Results = list[tuple[int, str | None]]


def replace(
    node: Any, *resources: tuple[int, str, Mapping[str, str | None]], validate_only: bool = False
) -> Results:
    request = replacing.AlterConfigsRequest(
        resources=[
            replacing.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[replacing.AlterableConfig(name=key, value=value) for key, value in configs.items()],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    response = node.call(alter_configs, request)
    assert [(r.resource_type, r.resource_name) for r in response.responses] == [r[:2] for r in resources]
    return [(r.error_code, r.error_message) for r in response.responses]


def alter(
    node: Any, *resources: tuple[int, str, Sequence[tuple[str, int, str | None]]], validate_only: bool = False
) -> Results:
    request = incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in configs
                ],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    response = node.call(incremental_alter_configs, request)
    assert [(r.resource_type, r.resource_name) for r in response.responses] == [r[:2] for r in resources]
    return [(r.error_code, r.error_message) for r in response.responses]


def test_altering_sets_deletes_appends_and_subtracts(cluster: Any) -> None:
    cluster.create("a", configs={"retention.ms": "5"})
    changes = [
        ("retention.ms", DELETE, None),
        ("segment.ms", SET, "7"),
        ("cleanup.policy", APPEND, "compact"),
    ]
    assert alter(cluster, (TOPIC, "a", changes)) == [(0, None)]
    assert cluster.image.config(TOPIC, "a") == {"segment.ms": "7", "cleanup.policy": "delete,compact"}
    assert alter(cluster, (TOPIC, "a", [("cleanup.policy", SUBTRACT, "delete")])) == [(0, None)]
    assert cluster.image.config(TOPIC, "a")["cleanup.policy"] == "compact"


def test_replacing_forgets_what_is_not_named(cluster: Any) -> None:
    cluster.create("a", configs={"retention.ms": "5", "segment.ms": "7"})
    assert replace(cluster, (TOPIC, "a", {"retention.ms": "6"})) == [(0, None)]
    assert cluster.image.config(TOPIC, "a") == {"retention.ms": "6"}


def test_validating_changes_nothing(cluster: Any) -> None:
    cluster.create("a")
    assert alter(cluster, (TOPIC, "a", [("retention.ms", SET, "6")]), validate_only=True) == [(0, None)]
    assert replace(cluster, (TOPIC, "a", {"retention.ms": "6"}), validate_only=True) == [(0, None)]
    assert cluster.image.config(TOPIC, "a") == {}


def test_resources_stand_and_fall_by_themselves(cluster: Any) -> None:
    cluster.create("a")
    good = (TOPIC, "a", [("retention.ms", SET, "6")])
    unknown = (TOPIC, "nope", [("retention.ms", SET, "6")])
    elsewhere = (BROKER, "2", [("num.io.threads", SET, "8")])
    codes = [code for code, _ in alter(cluster, elsewhere, good, unknown)]
    assert codes == [InvalidRequest.code, 0, UnknownTopicOrPartition.code]
    assert cluster.image.config(TOPIC, "a") == {"retention.ms": "6"}


def test_a_value_that_makes_no_sense_is_refused(cluster: Any) -> None:
    cluster.create("a")
    for key, value in (("retention.ms", "soon"), ("nope", "1"), ("segment.bytes", "1000")):
        ((code, _),) = alter(cluster, (TOPIC, "a", [(key, SET, value)]))
        assert code == InvalidConfig.code
        ((code, _),) = replace(cluster, (TOPIC, "a", {key: value}))
        assert code == InvalidConfig.code


@pytest.mark.parametrize(
    ("kind", "name", "changes", "message"),
    [
        (BROKER, "1", [("num.io.threads", SET, None)], "Null value not supported for : num.io.threads"),
        (BROKER, "2", [("num.io.threads", SET, "8")], "Unexpected broker id, expected 1, but received 2"),
        (BROKER, "x", [("num.io.threads", SET, "8")], "Node id must be an integer, but it is: x"),
        (BROKER, "1", [("node.id", SET, "8")], "Cannot update these configs dynamically: [node.id]"),
        (
            BROKER,
            "1",
            [("num.io.threads", SET, "x")],
            "Invalid value x for configuration num.io.threads: Not a number of type INT",
        ),
        (BROKER, "1", [("num.io.threads", 9, "8")], "Unknown operations type 9"),
        (77, "1", [("num.io.threads", SET, "8")], "Unknown resource type 77"),
        (CLIENT_METRICS, "", [("interval.ms", SET, "1000")], "Subscription name can't be empty"),
        (GROUP, "", [("consumer.session.timeout.ms", SET, "1")], "Default group resources are not allowed."),
        (
            TOPIC,
            "a",
            [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
            "Error due to duplicate config keys",
        ),
        (BROKER_LOGGER, "2", [("root", SET, "INFO")], "Unexpected node id. Expected 1, but received 2"),
        (BROKER_LOGGER, "", [("root", SET, "INFO")], "Node id must be an integer, but it is: "),
        (
            BROKER_LOGGER,
            "1",
            [("root", APPEND, "INFO")],
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            BROKER_LOGGER,
            "1",
            [("root", DELETE, None)],
            "Removing the log level of the root logger is not allowed",
        ),
    ],
)
def test_requests_that_make_no_sense_are_refused_in_kafkas_words(
    cluster: Any, kind: int, name: str, changes: list[tuple[str, int, str | None]], message: str
) -> None:
    cluster.create("a")
    assert alter(cluster, (kind, name, changes)) == [(InvalidRequest.code, message)]


@pytest.mark.parametrize(
    ("kind", "name", "configs", "message"),
    [
        (TOPIC, "a", {"retention.ms": None}, "Null value not supported for : retention.ms"),
        (BROKER_LOGGER, "1", {"root": "INFO"}, "Unknown resource type 8"),
        (BROKER, "2", {"num.io.threads": "8"}, "Unexpected broker id, expected 1, but received 2"),
        (BROKER, "1", {"node.id": "8"}, "Cannot update these configs dynamically: [node.id]"),
    ],
)
def test_replacements_that_make_no_sense_are_refused_in_kafkas_words(
    cluster: Any, kind: int, name: str, configs: dict[str, str | None], message: str
) -> None:
    cluster.create("a")
    assert replace(cluster, (kind, name, configs)) == [(InvalidRequest.code, message)]


def test_a_resource_may_be_named_once(cluster: Any) -> None:
    cluster.create("a")
    once = (InvalidRequest.code, "Each resource must appear at most once.")
    twice = (TOPIC, "a", [("retention.ms", SET, "6")])
    assert alter(cluster, twice, twice) == [once, once]
    assert replace(cluster, (TOPIC, "a", {}), (TOPIC, "a", {})) == [once, once]
    assert cluster.image.config(TOPIC, "a") == {}


def test_a_broker_is_altered_for_itself_and_for_the_cluster(cluster: Any) -> None:
    assert alter(cluster, (BROKER, "1", [("num.io.threads", SET, "4")])) == [(0, None)]
    assert alter(cluster, (BROKER, "", [("log.cleaner.threads", SET, "2")])) == [(0, None)]
    assert cluster.image.config(BROKER, "1") == {"num.io.threads": "4"}
    assert cluster.image.config(BROKER, "") == {"log.cleaner.threads": "2"}


def test_a_broker_does_not_take_ten_times_the_threads(cluster: Any) -> None:
    ((code, message),) = alter(cluster, (BROKER, "1", [("num.io.threads", SET, "80")]))
    assert code == InvalidRequest.code
    assert message is not None and "value should not be greater than double the current value 8" in message


def test_min_insync_replicas_is_not_a_single_brokers(cluster: Any) -> None:
    message = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    assert alter(cluster, (BROKER, "1", [("min.insync.replicas", SET, "1")])) == [
        (InvalidConfig.code, message)
    ]


def test_every_resource_hears_that_no_controller_was_found(node: Any) -> None:
    class NoLeader:
        is_active = True

        async def submit(self, request: Any, version: int, caller: Any = None) -> Any:
            raise NotController("no controller is active")

    node.quorum = NoLeader()
    outcome = (NotController.code, "no controller is active")
    assert alter(node, (TOPIC, "a", []), (TOPIC, "b", [])) == [outcome, outcome]
    assert replace(node, (TOPIC, "a", {})) == [outcome]


# --- loggers: nothing of this reaches a controller ----------------------------------------------


@pytest.fixture
def logger() -> logging.Logger:
    logger = logging.getLogger("ottla.test.alter_configs")
    logger.setLevel(logging.NOTSET)
    return logger


def test_the_level_of_a_logger_is_set_and_taken_back(node: Any, logger: logging.Logger) -> None:
    assert alter(node, (BROKER_LOGGER, "1", [(logger.name, SET, "WARN")])) == [(0, None)]
    assert logger.level == logging.WARNING
    assert alter(node, (BROKER_LOGGER, "1", [(logger.name, SET, "TRACE")])) == [(0, None)]
    assert logger.isEnabledFor(logging.DEBUG)
    assert alter(node, (BROKER_LOGGER, "1", [(logger.name, DELETE, None)])) == [(0, None)]
    assert logger.level == logging.NOTSET


def test_levels_are_only_checked_when_validating(node: Any, logger: logging.Logger) -> None:
    assert alter(node, (BROKER_LOGGER, "1", [(logger.name, SET, "FATAL")]), validate_only=True) == [(0, None)]
    assert logger.level == logging.NOTSET


def test_one_bad_level_leaves_the_others_as_they_were(node: Any, logger: logging.Logger) -> None:
    changes = [(logger.name, SET, "ERROR"), ("root", SET, "LOUD")]
    assert alter(node, (BROKER_LOGGER, "1", changes)) == [
        (
            InvalidConfig.code,
            "Cannot set the log level of root to LOUD as it is not a supported log level. "
            "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        )
    ]
    assert logger.level == logging.NOTSET


def test_a_logger_has_to_be_there(node: Any) -> None:
    assert alter(node, (BROKER_LOGGER, "1", [("ottla.test.nobody", SET, "INFO")])) == [
        (InvalidConfig.code, "Logger ottla.test.nobody does not exist!")
    ]
