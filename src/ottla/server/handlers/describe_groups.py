"""DescribeGroups, key 15, versions 0-6: the state and the members of classic groups."""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.core.acl import Operation
from ottla.core.outcome import Outcome
from ottla.protocol.errors import GroupIdNotFound, KafkaError
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.server import authorized_operations
from ottla.server.context import Context
from ottla.server.group_authorization import check_group

NOT_FOUND_SINCE: Final = 6  # before, a group that does not exist is only dead
DEAD: Final = "Dead"


async def describe_groups(request: DescribeGroupsRequest, ctx: Context) -> DescribeGroupsResponse:
    groups = await asyncio.gather(*(_describe(group_id, ctx) for group_id in request.groups))
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = authorized_operations.on_group(ctx, group.group_id)
    return DescribeGroupsResponse(groups=list(groups))


async def _describe(group_id: str, ctx: Context) -> DescribedGroup:
    described: DescribedGroup
    try:
        check_group(ctx, Operation.DESCRIBE, group_id)
        described = await ctx.node.groups.call(
            group_id, lambda machine, now, ticket: Outcome(reply=machine.describe_group(group_id))
        )
    except GroupIdNotFound as error:
        described = DescribedGroup(group_id=group_id, group_state=DEAD)
        if ctx.version >= NOT_FOUND_SINCE:
            described.error_code, described.error_message = error.code, str(error)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    return described
