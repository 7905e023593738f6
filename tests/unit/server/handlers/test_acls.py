"""CreateAcls, DescribeAcls and DeleteAcls on a broker."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from ottla.core.principal import parse_principal
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.server.context import Disconnect
from ottla.server.handlers.create_acls import create_acls
from ottla.server.handlers.delete_acls import delete_acls
from ottla.server.handlers.describe_acls import describe_acls

CLUSTER_AUTHORIZATION_FAILED = 31
INVALID_REQUEST = 42
SECURITY_DISABLED = 54

ON_CLUSTER = ResourceType.CLUSTER, CLUSTER_NAME
ANYTHING: dict[str, Any] = {
    "resource_type_filter": ResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": PatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}


def creation(**given: Any) -> AclCreation:
    values: dict[str, Any] = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:bob",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }
    return AclCreation(**(values | given))


def create(node: Any, *creations: AclCreation, version: int = 3) -> list[int]:
    response = node.call(create_acls, CreateAclsRequest(creations=list(creations)), version)
    return [each.error_code for each in response.results]


def describe(node: Any, version: int = 3, **given: Any) -> Any:
    return node.call(describe_acls, DescribeAclsRequest(**(ANYTHING | given)), version)


def delete(node: Any, *filters: dict[str, Any], version: int = 3) -> Any:
    asked = [DeleteAclsFilter(**(ANYTHING | each)) for each in filters]
    return node.call(delete_acls, DeleteAclsRequest(filters=asked), version).filter_results


@pytest.fixture
def guarded(cluster: Any) -> Any:
    """A broker with an authorizer, which whoever asks may administer."""
    cluster.authorize((Operation.ALTER, *ON_CLUSTER), (Operation.DESCRIBE, *ON_CLUSTER))
    return cluster


def test_rules_are_created_described_by_resource_and_deleted(guarded: Any) -> None:
    assert create(
        guarded,
        creation(),
        creation(operation=Operation.WRITE, host="10.0.0.1"),
        creation(resource_pattern_type=PatternType.PREFIXED, permission_type=Permission.DENY),
        creation(resource_type=ResourceType.GROUP),
    ) == [0, 0, 0, 0]
    response = describe(guarded)
    assert (response.error_code, response.error_message) == (0, "")
    literal, prefixed, group = response.resources
    assert (literal.resource_type, literal.resource_name, literal.pattern_type) == (2, "orders", 3)
    assert [(each.operation, each.host) for each in literal.acls] == [(3, "*"), (4, "10.0.0.1")]
    assert (prefixed.pattern_type, prefixed.acls[0].permission_type) == (4, Permission.DENY)
    assert group.resource_type == ResourceType.GROUP

    (removed,) = delete(guarded, {"resource_type_filter": ResourceType.TOPIC})
    assert len(removed.matching_acls) == 3
    assert [each.resource_type for each in describe(guarded).resources] == [ResourceType.GROUP]


def test_a_filter_is_applied_to_what_is_described(guarded: Any) -> None:
    create(guarded, creation(), creation(resource_name="ord", resource_pattern_type=PatternType.PREFIXED))
    create(guarded, creation(resource_name="payments"))
    asked = {"resource_name_filter": "orders", "pattern_type_filter": PatternType.MATCH}
    assert {each.resource_name for each in describe(guarded, **asked).resources} == {"orders", "ord"}
    assert describe(guarded, principal_filter="User:alice").resources == []
    assert describe(guarded, resource_type_filter=99).resources == []


def test_the_first_version_knows_names_only(guarded: Any) -> None:
    create(guarded, creation(), version=0)
    create(guarded, creation(resource_pattern_type=PatternType.PREFIXED))
    (found,) = describe(guarded, version=0, pattern_type_filter=PatternType.LITERAL).resources
    assert found.pattern_type == PatternType.LITERAL
    (removed,) = delete(guarded, {"pattern_type_filter": PatternType.LITERAL}, version=0)
    assert [each.pattern_type for each in removed.matching_acls] == [PatternType.LITERAL]
    assert [each.pattern_type for each in describe(guarded).resources] == [PatternType.PREFIXED]


def test_one_bad_rule_does_not_keep_the_others_from_it(guarded: Any) -> None:
    assert create(guarded, creation(principal="bob"), creation()) == [INVALID_REQUEST, 0]
    assert len(describe(guarded).resources) == 1


def test_without_an_authorizer_there_are_no_rules(cluster: Any) -> None:
    assert create(cluster, creation(), creation()) == [SECURITY_DISABLED] * 2
    response = describe(cluster)
    assert response.error_code == SECURITY_DISABLED
    assert response.error_message == "No Authorizer is configured on the broker"
    (refused,) = delete(cluster, {})
    assert (refused.error_code, refused.error_message) == (SECURITY_DISABLED, "No Authorizer is configured.")
    assert not cluster.image.acls


def test_rules_are_changed_with_alter_and_shown_with_describe_on_the_cluster(cluster: Any) -> None:
    cluster.authorize((Operation.DESCRIBE, *ON_CLUSTER))
    assert create(cluster, creation(), creation()) == [CLUSTER_AUTHORIZATION_FAILED] * 2
    assert [each.error_code for each in delete(cluster, {}, {})] == [CLUSTER_AUTHORIZATION_FAILED] * 2
    assert describe(cluster).error_code == 0
    cluster.authorize((Operation.ALTER, *ON_CLUSTER))
    assert create(cluster, creation()) == [0]
    assert describe(cluster).error_code == 0  # ALTER implies it
    cluster.authorize((Operation.CLUSTER_ACTION, *ON_CLUSTER), (Operation.ALL, ResourceType.TOPIC, "*"))
    assert describe(cluster).error_code == CLUSTER_AUTHORIZATION_FAILED
    assert describe(cluster).resources == []
    assert [each.error_code for each in delete(cluster, {})] == [CLUSTER_AUTHORIZATION_FAILED]
    cluster.connection.principal = parse_principal("User:root")
    assert [len(each.matching_acls) for each in delete(cluster, {})] == [1]


def test_a_word_that_is_unknown_costs_the_connection(guarded: Any) -> None:
    for name in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        with pytest.raises(Disconnect):
            create(guarded, creation(), creation(**{name: 0}))
    for name in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        with pytest.raises(Disconnect):
            delete(guarded, {}, {name: 0})
        with pytest.raises(Disconnect):
            describe(guarded, **{name: 0})
    assert not guarded.image.acls


def test_nothing_asked_is_nothing_done(guarded: Any) -> None:
    assert create(guarded) == []
    assert delete(guarded) == []
