from __future__ import annotations

from typing import Any

import pytest

from ottla.core.acl import Operation, PatternType, Permission, ResourceType
from ottla.metadata import framing
from ottla.metadata.image import Image
from ottla.metadata.snapshot import records
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

INVALID_REQUEST = 42
POLICY_VIOLATION = 44

CREATION: dict[str, Any] = {
    "resource_type": ResourceType.TOPIC,
    "resource_name": "orders",
    "resource_pattern_type": PatternType.LITERAL,
    "principal": "User:alice",
    "host": "*",
    "operation": Operation.READ,
    "permission_type": Permission.ALLOW,
}
EVERYTHING: dict[str, Any] = {
    "resource_type_filter": ResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": PatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}


def create(cluster: Any, *creations: dict[str, Any]) -> list[int]:
    asked = [AclCreation(**(CREATION | each)) for each in creations]
    return [each.error_code for each in cluster.do(CreateAclsRequest(creations=asked)).results]


def delete(cluster: Any, *filters: dict[str, Any]) -> list[Any]:
    asked = [DeleteAclsFilter(**(EVERYTHING | each)) for each in filters]
    results: list[Any] = cluster.do(DeleteAclsRequest(filters=asked)).filter_results
    return results


def names(result: Any) -> list[str]:
    return sorted(each.resource_name for each in result.matching_acls)


def test_a_rule_is_written_with_an_id_of_its_own(cluster: Any) -> None:
    assert create(cluster, {}, {"operation": Operation.WRITE}) == [0, 0]
    first, second = cluster.image.acls.values()
    assert first.id != second.id
    assert (first.resource_type, first.resource_name, first.pattern_type) == (2, "orders", 3)
    assert (first.principal, first.host, first.operation, first.permission_type) == ("User:alice", "*", 3, 3)


def test_the_same_rule_created_twice_is_one_rule(cluster: Any) -> None:
    assert create(cluster, {}, {}) == [0, 0]
    assert create(cluster, {}) == [0]
    assert cluster.last == []
    assert len(cluster.image.acls) == 1
    assert create(cluster, {"host": "10.0.0.1"}, {}) == [0, 0]
    assert len(cluster.image.acls) == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"principal": "alice"}, "Could not parse principal from `alice`"),
        ({"principal": ""}, "Could not parse principal"),
        (
            {"resource_type": ResourceType.CLUSTER},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_pattern_type": PatternType.ANY}, "Invalid patternType ANY"),
        ({"resource_pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"resource_pattern_type": 99}, "Invalid patternType UNKNOWN"),
        ({"resource_type": ResourceType.ANY}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"operation": Operation.ANY}, "Invalid operation ANY"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission_type": Permission.ANY}, "Invalid permissionType ANY"),
        ({"permission_type": -1}, "Invalid permissionType UNKNOWN"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_and_the_others_are_not(
    cluster: Any, given: dict[str, Any], says: str
) -> None:
    asked = [AclCreation(**(CREATION | each)) for each in ({}, given, {"resource_name": "payments"})]
    good, bad, other = cluster.do(CreateAclsRequest(creations=asked)).results
    assert (good.error_code, bad.error_code, other.error_code) == (0, INVALID_REQUEST, 0)
    assert says in bad.error_message
    assert sorted(each.resource_name for each in cluster.image.acls.values()) == ["orders", "payments"]


def test_a_request_for_too_many_rules_is_refused_whole(cluster: Any) -> None:
    codes = create(
        cluster, *({"resource_name": f"t{number}"} for number in range(10_001)), {"principal": "x"}
    )
    assert set(codes[:-1]) == {POLICY_VIOLATION}
    assert codes[-1] == INVALID_REQUEST
    assert not cluster.image.acls
    assert set(create(cluster, *({"resource_name": f"t{number}"} for number in range(10_000)))) == {0}


def test_a_filter_that_matches_too_many_rules_removes_none_and_others_do(cluster: Any) -> None:
    create(cluster, *({"resource_name": f"t{number}"} for number in range(10_000)))
    create(cluster, {}, {"resource_name": "payments"})
    all_of_them, one = delete(cluster, {}, {"resource_name_filter": "orders"})
    assert (all_of_them.error_code, names(all_of_them)) == (POLICY_VIOLATION, [])
    assert (one.error_code, names(one)) == (0, ["orders"])
    assert len(cluster.image.acls) == 10_001


def test_removing_one_of_three_rules_keeps_two(cluster: Any) -> None:
    create(cluster, {}, {"operation": Operation.WRITE}, {"permission_type": Permission.DENY, "host": "h"})
    (removed,) = delete(
        cluster, {"operation": Operation.READ, "permission_type": Permission.ALLOW, "host_filter": "*"}
    )
    assert names(removed) == ["orders"]
    assert removed.error_message is None
    left = {(each.operation, each.permission_type) for each in cluster.image.acls.values()}
    assert left == {(Operation.WRITE, Permission.ALLOW), (Operation.READ, Permission.DENY)}


MANY = [
    {"resource_name": "orders"},
    {"resource_name": "ord", "resource_pattern_type": PatternType.PREFIXED},
    {"resource_name": "orders", "resource_pattern_type": PatternType.PREFIXED},
    {"resource_name": "*"},
    {"resource_name": "*", "resource_pattern_type": PatternType.PREFIXED},
    {"resource_name": "payments", "principal": "User:bob"},
    {"resource_name": "orders", "resource_type": ResourceType.GROUP, "host": "10.0.0.1"},
]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, range(7)),
        ({"resource_type_filter": ResourceType.GROUP}, [6]),
        ({"resource_name_filter": "orders"}, [0, 2, 6]),
        ({"resource_name_filter": "orders", "pattern_type_filter": PatternType.LITERAL}, [0, 6]),
        ({"resource_name_filter": "orders", "pattern_type_filter": PatternType.PREFIXED}, [2]),
        ({"resource_name_filter": "orders", "pattern_type_filter": PatternType.MATCH}, [0, 1, 2, 3, 6]),
        ({"resource_name_filter": "order", "pattern_type_filter": PatternType.MATCH}, [1, 3]),
        ({"resource_name_filter": "*x", "pattern_type_filter": PatternType.MATCH}, [3, 4]),
        ({"pattern_type_filter": PatternType.MATCH}, range(7)),
        ({"pattern_type_filter": PatternType.PREFIXED}, [1, 2, 4]),
        ({"resource_name_filter": "*"}, [3, 4]),
        ({"resource_name_filter": "*", "pattern_type_filter": PatternType.LITERAL}, [3]),
        ({"resource_name_filter": ""}, []),
        ({"principal_filter": "User:bob"}, [5]),
        ({"host_filter": "*", "resource_name_filter": "orders"}, [0, 2]),
        ({"operation": Operation.WRITE}, []),
        ({"permission_type": Permission.ALLOW, "operation": Operation.READ}, range(7)),
        ({"permission_type": Permission.DENY}, []),
    ],
)
def test_a_filter_matches_as_in_kafka(cluster: Any, given: dict[str, Any], expected: Any) -> None:
    create(cluster, *MANY)
    (result,) = delete(cluster, given)
    assert result.error_code == 0
    assert names(result) == sorted(MANY[number]["resource_name"] for number in expected)
    assert len(cluster.image.acls) == 7 - len(expected)


def test_a_rule_that_two_filters_match_is_named_by_both_and_removed_once(cluster: Any) -> None:
    create(cluster, {}, {"resource_name": "payments"})
    first, second = delete(cluster, {}, {"resource_name_filter": "orders"})
    assert (names(first), names(second)) == (["orders", "payments"], ["orders"])
    assert len(cluster.last) == 2
    assert not cluster.image.acls


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"resource_type_filter": 99}, "Unknown patternFilter."),
        ({"pattern_type_filter": 99}, "Unknown patternFilter."),
        ({"operation": 99}, "Unknown entryFilter."),
        ({"permission_type": -5}, "Unknown entryFilter."),
    ],
)
def test_a_filter_with_words_of_the_future_removes_nothing(
    cluster: Any, given: dict[str, Any], says: str
) -> None:
    create(cluster, {})
    (result,) = delete(cluster, given)
    assert (result.error_code, result.error_message) == (INVALID_REQUEST, says)
    assert len(cluster.image.acls) == 1


def test_rules_and_their_ids_are_in_the_snapshot(cluster: Any) -> None:
    create(cluster, *MANY)
    again = Image()
    for record in records(cluster.image):
        again.apply(framing.decode(framing.encode(record, cluster.image.metadata_version)), 0)
    assert again.acls == cluster.image.acls == cluster.committed.acls
    assert len(again.acls) == 7
