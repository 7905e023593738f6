"""Access rules of a cluster: which there are, adding and removing some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.core.acl import Operation, PatternType, Permission, ResourceType
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from ottla.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


class Rule(NamedTuple):
    """Who may, or may not, do what with which resources, from where. Numbers may be newer than our words."""

    resource_type: int
    name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


class RuleFilter(NamedTuple):
    """Which rules are meant; without anything, all."""

    resource_type: int = ResourceType.ANY
    name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission: int = Permission.ANY


async def list_acls(cluster: Cluster, wanted: RuleFilter | None = None) -> list[Rule]:
    """The rules that a filter means, by resource."""
    wanted = wanted or RuleFilter()
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )

    async def once() -> list[Rule]:
        response = await cluster.ask(request, DescribeAclsResponse)
        check(response.error_code, "the access rules", response.error_message)
        return sorted(
            Rule(
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                each.principal,
                each.host,
                each.operation,
                each.permission_type,
            )
            for resource in response.resources
            for each in resource.acls
        )

    return await cluster.persist(once)


async def create_acls(cluster: Cluster, rules: Sequence[Rule]) -> None:
    """Add rules; one that is there already stays. Raises what the first that is refused is refused for."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=rule.resource_type,
                resource_name=rule.name,
                resource_pattern_type=rule.pattern_type,
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for rule in rules
        ]
    )

    async def once() -> None:
        response = await cluster.ask(request, CreateAclsResponse)
        for rule, result in zip(rules, response.results, strict=True):
            check(result.error_code, f"the rule for {rule.principal}", result.error_message)

    await cluster.persist(once)


async def delete_acls(cluster: Cluster, filters: Sequence[RuleFilter]) -> list[Rule]:
    """Remove the rules that any of these means; answers which they were."""
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=each.resource_type,
                resource_name_filter=each.name,
                pattern_type_filter=each.pattern_type,
                principal_filter=each.principal,
                host_filter=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in filters
        ]
    )

    async def once() -> list[Rule]:
        response = await cluster.ask(request, DeleteAclsResponse)
        removed = set()
        for result in response.filter_results:
            check(result.error_code, "the access rules", result.error_message)
            for each in result.matching_acls:
                check(each.error_code, f"the rule for {each.principal}", each.error_message)
                removed.add(
                    Rule(
                        each.resource_type,
                        each.resource_name,
                        each.pattern_type,
                        each.principal,
                        each.host,
                        each.operation,
                        each.permission_type,
                    )
                )
        return sorted(removed)

    return await cluster.persist(once)
