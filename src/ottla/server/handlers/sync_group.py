"""SyncGroup, key 14, versions 0-5: the leader of a classic group hands in assignments, all fetch theirs."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.server.caller import caller_of
from ottla.server.context import Context
from ottla.server.group_authorization import check_group


async def sync_group(request: SyncGroupRequest, ctx: Context) -> SyncGroupResponse:
    caller = caller_of(ctx)
    response: SyncGroupResponse
    try:
        check_group(ctx, Operation.READ, request.group_id)
        response = await ctx.node.groups.call(
            request.group_id,
            lambda machine, now, ticket: machine.sync_group(request, caller, now, ticket),
        )
    except KafkaError as error:
        return SyncGroupResponse(error_code=error.code)
    return response
