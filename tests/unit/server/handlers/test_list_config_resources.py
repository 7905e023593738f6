from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import UnsupportedVersion
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from ottla.protocol.stored import metadata as stored
from ottla.server.handlers.list_config_resources import list_config_resources

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def listed(node: Any, *types: int, version: int = 1) -> list[tuple[int, str]]:
    response = node.call(
        list_config_resources, ListConfigResourcesRequest(resource_types=list(types)), version
    )
    assert response.error_code == 0
    return [(resource.resource_type, resource.resource_name) for resource in response.config_resources]


@pytest.fixture
def full(node: Any) -> Any:
    node.register(2, fenced=True)
    node.create("a")
    for kind, name in ((GROUP, "g"), (CLIENT_METRICS, "s"), (TOPIC, "a"), (BROKER, "")):
        node.apply(stored.ConfigRecord(resource_type=kind, resource_name=name, name="x", value="1"))
    return node


def test_no_types_mean_all_of_them(full: Any) -> None:
    assert listed(full) == [
        (GROUP, "g"),
        (CLIENT_METRICS, "s"),
        (BROKER_LOGGER, "1"),
        (BROKER_LOGGER, "2"),
        (BROKER, "1"),
        (BROKER, "2"),
        (TOPIC, "a"),
    ]


def test_only_the_types_that_are_asked_for_are_listed(full: Any) -> None:
    assert listed(full, TOPIC, GROUP, TOPIC) == [(GROUP, "g"), (TOPIC, "a")]


def test_version_0_lists_subscriptions_for_metrics(full: Any) -> None:
    assert listed(full, version=0) == [(CLIENT_METRICS, "s")]


def test_a_type_nobody_knows_is_refused(full: Any) -> None:
    response = full.call(list_config_resources, ListConfigResourcesRequest(resource_types=[TOPIC, 99]))
    assert (response.error_code, response.config_resources) == (UnsupportedVersion.code, [])
