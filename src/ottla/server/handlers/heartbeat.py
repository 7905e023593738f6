"""Heartbeat, key 12, versions 0-4: a member of a classic group is alive, and hears whether to rejoin."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import CoordinatorLoadInProgress, KafkaError
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.server.caller import caller_of
from ottla.server.context import Context
from ottla.server.group_authorization import check_group


async def heartbeat(request: HeartbeatRequest, ctx: Context) -> HeartbeatResponse:
    caller = caller_of(ctx)
    response: HeartbeatResponse
    try:
        check_group(ctx, Operation.READ, request.group_id)
        response = await ctx.node.groups.call(
            request.group_id, lambda machine, now, ticket: machine.heartbeat(request, caller, now)
        )
    except CoordinatorLoadInProgress:
        return HeartbeatResponse()  # we do not know the member yet, and it need not worry
    except KafkaError as error:
        return HeartbeatResponse(error_code=error.code)
    return response
