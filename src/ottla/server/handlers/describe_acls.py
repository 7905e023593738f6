"""DescribeAcls, key 29, versions 0-3. Answered from this broker's image."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.metadata.acl_filter import filter_of
from ottla.protocol.errors import ClusterAuthorizationFailed, KafkaError, SecurityDisabled
from ottla.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ottla.server.context import Context, Disconnect


async def describe_acls(request: DescribeAclsRequest, ctx: Context) -> DescribeAclsResponse:
    words = (
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    )
    if not all(words):
        raise Disconnect("DescribeAcls with a word that is UNKNOWN")
    try:
        if not ctx.allows_on_cluster(Operation.DESCRIBE):
            raise ClusterAuthorizationFailed
        if ctx.node.authorizer is None:
            raise SecurityDisabled("No Authorizer is configured on the broker")
    except KafkaError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=str(error))
    return DescribeAclsResponse(resources=_resources(request, ctx))


def _resources(request: DescribeAclsRequest, ctx: Context) -> list[DescribeAclsResource]:
    wanted = filter_of(request)
    found: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for rule in ctx.node.image.acls.values():
        if wanted.matches(rule):
            key = rule.resource_type, rule.resource_name, rule.pattern_type
            resource = found.get(key)
            if resource is None:
                resource = found[key] = DescribeAclsResource(
                    resource_type=rule.resource_type,
                    resource_name=rule.resource_name,
                    pattern_type=rule.pattern_type,
                )
            resource.acls.append(
                AclDescription(
                    principal=rule.principal,
                    host=rule.host,
                    operation=rule.operation,
                    permission_type=rule.permission_type,
                )
            )
    return list(found.values())
