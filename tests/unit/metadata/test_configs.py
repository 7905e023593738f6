from __future__ import annotations

from typing import Any

import pytest

from ottla.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.alter_configs import AlterConfigsRequest
from ottla.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.protocol.stored.metadata import ClearElrRecord, ConfigRecord

SET, DELETE, APPEND, SUBTRACT = range(4)
UNKNOWN_TOPIC_OR_PARTITION = 3
UNSUPPORTED_VERSION = 35
INVALID_CONFIG = 40
INVALID_REQUEST = 42
BROKER_ID_NOT_REGISTERED = 102


def alter(
    cluster: Any,
    *changes: tuple[str, int, str | None],
    kind: int = TOPIC_RESOURCE,
    name: str = "orders",
    **given: Any,
) -> Any:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    return cluster.do(IncrementalAlterConfigsRequest(resources=[resource], **given)).responses[0]


def replace(cluster: Any, kind: int = TOPIC_RESOURCE, name: str = "orders", **configs: str | None) -> Any:
    resource = alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            alter_configs.AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    return cluster.do(AlterConfigsRequest(resources=[resource])).responses[0]


@pytest.fixture
def orders(cluster: Any) -> Any:
    cluster.create("orders", (1, 2, 3))
    return cluster


def overrides(cluster: Any) -> dict[str, str]:
    found: dict[str, str] = cluster.image.config(TOPIC_RESOURCE, "orders")
    return found


def test_configs_are_set_and_deleted_one_by_one(orders: Any) -> None:
    answer = alter(orders, ("retention.ms", SET, "5"), ("segment.ms", SET, "9"))
    assert (answer.error_code, answer.error_message, answer.resource_name) == (0, None, "orders")
    assert overrides(orders) == {"retention.ms": "5", "segment.ms": "9"}

    alter(orders, ("retention.ms", DELETE, None))
    assert overrides(orders) == {"segment.ms": "9"}
    assert orders.last == [
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None)
    ]


def test_lists_are_appended_to_and_subtracted_from(orders: Any) -> None:
    alter(orders, ("cleanup.policy", APPEND, "compact"))
    assert overrides(orders) == {"cleanup.policy": "delete,compact"}
    alter(orders, ("cleanup.policy", SUBTRACT, "delete"))
    assert overrides(orders) == {"cleanup.policy": "compact"}
    assert alter(orders, ("retention.ms", APPEND, "5")).error_code == INVALID_CONFIG


def test_setting_what_is_set_writes_nothing_for_a_topic(orders: Any) -> None:
    alter(orders, ("retention.ms", SET, "5"))
    alter(orders, ("retention.ms", SET, "5"))
    assert orders.last == []


def test_a_brokers_configs_are_written_even_unchanged_so_that_it_reads_them_again(orders: Any) -> None:
    for _ in range(2):
        answer = alter(orders, ("log.cleaner.threads", SET, "2"), kind=BROKER_RESOURCE, name="1")
        assert answer.error_code == 0, answer.error_message
        assert len(orders.last) == 1


def test_what_brokers_share_is_checked_as_it_will_be_and_can_be_altered_back(orders: Any) -> None:
    def share(threads: str | None) -> int:
        change = ("log.cleaner.threads", DELETE if threads is None else SET, threads)
        code: int = alter(orders, change, kind=BROKER_RESOURCE, name="").error_code
        return code

    assert share("2") == 0
    assert share("200") == INVALID_REQUEST  # more than the buffer has room for
    assert share(None) == 0
    assert "log.cleaner.threads" not in orders.image.config(BROKER_RESOURCE, "")


def test_replacing_drops_what_is_not_named(orders: Any) -> None:
    replace(orders, retention_ms="5", segment_ms="9")
    assert replace(orders, segment_ms="9").error_code == 0
    assert overrides(orders) == {"segment.ms": "9"}
    assert [record.value for record in orders.last] == [None]


def test_validating_only_writes_nothing(orders: Any) -> None:
    assert alter(orders, ("retention.ms", SET, "5"), validate_only=True).error_code == 0
    assert orders.last == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("no.such", SET, "1"), INVALID_CONFIG),
        (("retention.ms", SET, "soon"), INVALID_CONFIG),
        (("retention.ms", SET, None), INVALID_REQUEST),
        (("retention.ms", 9, "1"), INVALID_REQUEST),
    ],
)
def test_nonsense_is_refused(orders: Any, change: Any, error: int) -> None:
    answer = alter(orders, change)
    assert answer.error_code == error
    assert answer.error_message
    assert orders.last == []


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC_RESOURCE, "missing", UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER_RESOURCE, "9", BROKER_ID_NOT_REGISTERED),
        (BROKER_RESOURCE, "nine", INVALID_REQUEST),
        (3, "what", UNSUPPORTED_VERSION),
    ],
)
def test_only_what_exists_can_be_configured(orders: Any, kind: int, name: str, error: int) -> None:
    assert alter(orders, kind=kind, name=name).error_code == error
    assert replace(orders, kind=kind, name=name).error_code == error


def test_a_resource_given_twice_is_refused(orders: Any) -> None:
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=2, resource_name="orders")
    (answer,) = orders.do(IncrementalAlterConfigsRequest(resources=[resource, resource])).responses
    assert answer.error_code == INVALID_REQUEST


def test_min_isr_is_the_clusters_while_eligible_replicas_are_tracked(orders: Any) -> None:
    of_broker = alter(orders, ("min.insync.replicas", SET, "2"), kind=BROKER_RESOURCE, name="1")
    assert of_broker.error_code == INVALID_CONFIG
    removed = alter(orders, ("min.insync.replicas", DELETE, None), kind=BROKER_RESOURCE, name="")
    assert removed.error_code == INVALID_CONFIG


def test_a_new_min_isr_clears_who_was_eligible_by_the_old_one(orders: Any) -> None:
    alter(orders, ("min.insync.replicas", SET, "2"))
    assert [type(record) for record in orders.last] == [ConfigRecord, ClearElrRecord]
    orders.crash(1)
    orders.crash(2)
    assert orders.state("orders").elr == (2,)
    epoch = orders.state("orders").partition_epoch

    alter(orders, ("min.insync.replicas", SET, "1"), kind=BROKER_RESOURCE, name="")

    assert orders.last[-1] == ClearElrRecord(topic_name="")
    assert orders.state("orders").elr == ()
    assert orders.state("orders").partition_epoch == epoch + 1
