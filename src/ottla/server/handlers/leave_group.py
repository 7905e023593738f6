"""LeaveGroup, key 13, versions 0-5: members of a classic group leave, or are made to leave.

Up to version 2 a request is about one member, whose error is that of the response.
"""

from __future__ import annotations

from typing import Final

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError, UnknownMemberId
from ottla.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.server.caller import caller_of
from ottla.server.context import Context
from ottla.server.group_authorization import check_group

SEVERAL_SINCE: Final = 3


async def leave_group(request: LeaveGroupRequest, ctx: Context) -> LeaveGroupResponse:
    caller = caller_of(ctx)
    if ctx.version < SEVERAL_SINCE:
        request.members = [MemberIdentity(member_id=request.member_id)]
    response: LeaveGroupResponse
    try:
        check_group(ctx, Operation.READ, request.group_id)
        response = await ctx.node.groups.call(
            request.group_id, lambda machine, now, ticket: machine.leave_group(request, caller, now)
        )
    except UnknownMemberId as error:
        response = LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    error_code=error.code,
                )
                for member in request.members
            ]
        )
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
    if ctx.version < SEVERAL_SINCE:
        return LeaveGroupResponse(error_code=response.members[0].error_code)
    return response
