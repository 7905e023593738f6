"""CreateAcls, key 30, versions 0-3. Decided by the controller, which this broker asks.

Answers once this broker acts by the new rules.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import ClusterAuthorizationFailed, KafkaError, SecurityDisabled
from ottla.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.server.context import Context, Disconnect
from ottla.server.controller import ask_controller, seen_here


async def create_acls(request: CreateAclsRequest, ctx: Context) -> CreateAclsResponse:
    for each in request.creations:
        if not all((each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)):
            raise Disconnect("CreateAcls with a word that is UNKNOWN")
    try:
        if not ctx.allows_on_cluster(Operation.ALTER):
            raise ClusterAuthorizationFailed
        if ctx.node.authorizer is None:
            raise SecurityDisabled("No Authorizer is configured.")
        response: CreateAclsResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        refused = AclCreationResult(error_code=error.code, error_message=str(error))
        return CreateAclsResponse(results=[refused] * len(request.creations))
    await seen_here(ctx)
    return response
