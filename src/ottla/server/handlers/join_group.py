"""JoinGroup, key 11, versions 0-9: become, or remain, a member of a classic group.

The answer comes when the group's next generation is complete, which may take as long as its slowest member.
"""

from __future__ import annotations

from typing import Final

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.server.caller import caller_of
from ottla.server.context import Context
from ottla.server.group_authorization import check_group

NO_PROTOCOL_SINCE: Final = 7  # the version from which an answer may say that there is no protocol


async def join_group(request: JoinGroupRequest, ctx: Context) -> JoinGroupResponse:
    caller = caller_of(ctx)
    response: JoinGroupResponse
    try:
        check_group(ctx, Operation.READ, request.group_id)
        response = await ctx.node.groups.call(
            request.group_id,
            lambda machine, now, ticket: machine.join_group(request, caller, now, ticket),
        )
    except KafkaError as error:
        response = JoinGroupResponse(error_code=error.code, protocol_name=None)
    if response.protocol_name is None and ctx.version < NO_PROTOCOL_SINCE:
        response.protocol_name = ""
    return response
