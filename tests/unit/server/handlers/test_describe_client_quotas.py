"""DescribeClientQuotas on a broker."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.protocol.stored import metadata as stored
from ottla.server.handlers.describe_client_quotas import describe_client_quotas

CLUSTER_AUTHORIZATION_FAILED = 31
UNSUPPORTED_VERSION = 35
INVALID_REQUEST = 42

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
Entity = tuple[tuple[str, str | None], ...]

ALICE: Entity = (("user", "alice"),)
ANY_USER: Entity = (("user", None),)
ALICE_OF_APP: Entity = (("client-id", "app"), ("user", "alice"))
APP: Entity = (("client-id", "app"),)
ADDRESS: Entity = (("ip", "10.0.0.1"),)
ALL = {ALICE, ANY_USER, ALICE_OF_APP, APP, ADDRESS}


@pytest.fixture
def limited(node: Any) -> Any:
    for entity in sorted(ALL, key=str):
        named = [stored.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        node.apply(stored.ClientQuotaRecord(entity=named, key="producer_byte_rate", value=1000.5))
    return node


def ask(node: Any, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    asked = [ComponentData(entity_type=kind, match_type=how, match=what) for kind, how, what in components]
    return node.call(describe_client_quotas, DescribeClientQuotasRequest(components=asked, strict=strict))


def entities(response: Any) -> set[Entity]:
    assert response.error_code == 0
    return {tuple((each.entity_type, each.entity_name) for each in one.entity) for one in response.entries}


@pytest.mark.parametrize(
    ("components", "loosely", "strictly"),
    [
        ([], ALL, set()),
        ([("user", EXACT, "alice")], {ALICE, ALICE_OF_APP}, {ALICE}),
        ([("user", DEFAULT, None)], {ANY_USER}, {ANY_USER}),
        ([("user", SPECIFIED, None)], {ALICE, ANY_USER, ALICE_OF_APP}, {ALICE, ANY_USER}),
        ([("user", SPECIFIED, None), ("client-id", EXACT, "app")], {ALICE_OF_APP}, {ALICE_OF_APP}),
        ([("client-id", SPECIFIED, None)], {APP, ALICE_OF_APP}, {APP}),
        ([("ip", SPECIFIED, None)], {ADDRESS}, {ADDRESS}),
        ([("user", EXACT, "bob")], set(), set()),
        ([("client-id", DEFAULT, None)], set(), set()),
    ],
)
def test_a_filter_matches_as_in_kafka(limited: Any, components: Any, loosely: Any, strictly: Any) -> None:
    assert entities(ask(limited, *components)) == loosely
    assert entities(ask(limited, *components, strict=True)) == strictly


def test_what_is_set_is_told(limited: Any) -> None:
    (entry,) = ask(limited, ("ip", EXACT, "10.0.0.1")).entries
    assert [(each.key, each.value) for each in entry.values] == [("producer_byte_rate", 1000.5)]


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("", EXACT, "x")], INVALID_REQUEST),
        ([("dog", EXACT, "x")], UNSUPPORTED_VERSION),
        ([("user", 3, None)], INVALID_REQUEST),
        ([("user", EXACT, None)], INVALID_REQUEST),
        ([("user", DEFAULT, "x")], INVALID_REQUEST),
        ([("user", SPECIFIED, "x")], INVALID_REQUEST),
        ([("user", DEFAULT, None), ("user", EXACT, "x")], INVALID_REQUEST),
        ([("user", SPECIFIED, None), ("ip", SPECIFIED, None)], INVALID_REQUEST),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(limited: Any, components: Any, error: int) -> None:
    response = ask(limited, *components)
    assert (response.error_code, response.entries) == (error, None)
    assert response.error_message


def test_quotas_are_shown_with_describe_configs_on_the_cluster(limited: Any) -> None:
    limited.authorize((Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME))
    response = ask(limited)
    assert (response.error_code, response.entries) == (CLUSTER_AUTHORIZATION_FAILED, None)
    limited.authorize((Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME))
    assert entities(ask(limited)) == ALL
