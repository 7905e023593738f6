"""The judge of access rules: which were made, which were told, and which the broker has afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from tools.interop.judges.evidence import Report, asked, expect
from tools.interop.stage import SECONDS, Stage

ANY, ALL, READ, WRITE, DESCRIBE = 1, 2, 3, 4, 8
TOPIC, GROUP, TRANSACTIONAL_ID = 2, 3, 5
MATCH, LITERAL, PREFIXED = 2, 3, 4
DENY, ALLOW = 2, 3
HOST = "10.1.2.3"

# A rule, or a filter of them, as the protocol has it: resource type, resource name, pattern type, principal,
# host, operation, permission.
Rule = tuple[Any, ...]
rule_in_request = attrgetter(
    "resource_type",
    "resource_name",
    "resource_pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)
filter_in_request = attrgetter(
    "resource_type_filter",
    "resource_name_filter",
    "pattern_type_filter",
    "principal_filter",
    "host_filter",
    "operation",
    "permission_type",
)
pattern = attrgetter("resource_type", "resource_name", "pattern_type")
entry = attrgetter("principal", "host", "operation", "permission_type")
rule_at_stage = attrgetter(
    "restype_int",
    "name",
    "resource_pattern_type_int",
    "principal",
    "host",
    "operation_int",
    "permission_type_int",
)


class Rules(NamedTuple):
    """What a program makes, and the filters it asks and deletes by."""

    made: set[Rule]
    matching: set[Rule]
    deleted: set[Rule]
    asked_by: set[Rule]
    deleted_by: set[Rule]


def rules(name: str) -> Rules:
    topic, user = f"{name}-new", f"User:{name}"
    read = (TOPIC, topic, LITERAL, user, "*", READ, ALLOW)
    denied = (TOPIC, topic, LITERAL, user, HOST, WRITE, DENY)
    prefixed = (TOPIC, name, PREFIXED, user, "*", DESCRIBE, ALLOW)
    group = (GROUP, name, LITERAL, user, "*", READ, ALLOW)
    transactional = (TRANSACTIONAL_ID, name, LITERAL, user, HOST, ALL, ALLOW)
    return Rules(
        made={read, denied, prefixed, group, transactional},
        matching={read, denied, prefixed},
        deleted={denied, group},
        asked_by={(TOPIC, topic, MATCH, None, None, ANY, ANY)},
        deleted_by={
            (TOPIC, topic, MATCH, None, None, ANY, DENY),
            (GROUP, name, LITERAL, None, None, ANY, ANY),
        },
    )


def saw_acls(stage: Stage, report: Report) -> list[str]:
    wanted, user = rules(stage.name), f"User:{stage.name}"
    left = wanted.made - wanted.deleted
    problems = asked(stage, "create_acls", "describe_acls", "delete_acls")
    problems += same("rules as asked for", created(stage), wanted.made)
    problems += same("rules that were listed", reported(report, "listed"), wanted.made)
    problems += same("rules that match", reported(report, "matching"), wanted.matching)
    problems += same("rules that were deleted", reported(report, "deleted"), wanted.deleted)
    problems += same("rules that were left", reported(report, "left"), left)
    asked_by = [filter_in_request(said.request) for said in stage.traffic.of("describe_acls")]
    if not any(user in found for found in asked_by):
        problems.append("nobody asked for the rules of the principal")
    problems += same("filters by name", wanted.asked_by.intersection(asked_by), wanted.asked_by)
    problems += same("filters of the deletion", deleted_by(stage), wanted.deleted_by)
    problems += same("rules in answers", set(described(stage)), wanted.made)
    problems += same("deleted rules in answers", deleted(stage), wanted.deleted)
    return problems + same("rules at the broker", held(stage, user), left)


def same(what: str, found: Iterable[Rule], wanted: set[Rule]) -> list[str]:
    """Rules have no order; sorted they are easier to compare by eye."""
    return expect(what, sorted(found, key=str), sorted(wanted, key=str))


def reported(report: Report, part: str) -> list[Rule]:
    return [tuple(rule) for rule in report[part]]


def created(stage: Stage) -> set[Rule]:
    return {
        rule_in_request(rule) for said in stage.traffic.of("create_acls") for rule in said.request.creations
    }


def described(stage: Stage) -> Iterator[Rule]:
    for said in stage.traffic.of("describe_acls"):
        for resource in said.response.resources:
            yield from (pattern(resource) + entry(rule) for rule in resource.acls)


def deleted_by(stage: Stage) -> set[Rule]:
    return {
        filter_in_request(one) for said in stage.traffic.of("delete_acls") for one in said.request.filters
    }


def deleted(stage: Stage) -> set[Rule]:
    return {
        pattern(rule) + entry(rule)
        for said in stage.traffic.of("delete_acls")
        for result in said.response.filter_results
        for rule in result.matching_acls
    }


def held(stage: Stage, user: str) -> list[Rule]:
    """What the broker tells the stage of this principal's rules."""
    of_user = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        user,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    return [rule_at_stage(rule) for rule in stage.admin.describe_acls(of_user).result(SECONDS)]
