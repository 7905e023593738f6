"""DeleteAcls, key 31, versions 0-3. Decided by the controller, which this broker asks.

Answers once this broker no longer acts by the rules that are gone.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import ClusterAuthorizationFailed, KafkaError, SecurityDisabled
from ottla.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from ottla.server.context import Context, Disconnect
from ottla.server.controller import ask_controller, seen_here


async def delete_acls(request: DeleteAclsRequest, ctx: Context) -> DeleteAclsResponse:
    for each in request.filters:
        words = each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type
        if not all(words):
            raise Disconnect("DeleteAcls with a word that is UNKNOWN")
    try:
        if not ctx.allows_on_cluster(Operation.ALTER):
            raise ClusterAuthorizationFailed
        if ctx.node.authorizer is None:
            raise SecurityDisabled("No Authorizer is configured.")
        response: DeleteAclsResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        refused = DeleteAclsFilterResult(error_code=error.code, error_message=str(error))
        return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
    await seen_here(ctx)
    return response
