"""DeleteGroups, key 42, versions 0-2: delete groups without members, with their positions."""

from __future__ import annotations

import asyncio

from ottla.core.acl import Operation
from ottla.groups.share.admin import delete_states
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ottla.server.context import Context
from ottla.server.group_authorization import check_group


async def delete_groups(request: DeleteGroupsRequest, ctx: Context) -> DeleteGroupsResponse:
    group_ids = dict.fromkeys(request.groups_names)  # one answer for each, even if named twice
    results = await asyncio.gather(*(_delete(group_id, ctx) for group_id in group_ids))
    return DeleteGroupsResponse(results=list(results))


async def _delete(group_id: str, ctx: Context) -> DeletableGroupResult:
    try:
        check_group(ctx, Operation.DELETE, group_id)
        states = await ctx.node.groups.call(
            group_id, lambda machine, now, ticket: delete_states(machine, group_id)
        )
        if states:
            await ctx.node.shares.delete_states(group_id, states)
        await ctx.node.groups.call(group_id, lambda machine, now, ticket: machine.delete_group(group_id))
    except KafkaError as error:
        return DeletableGroupResult(group_id=group_id, error_code=error.code)
    return DeletableGroupResult(group_id=group_id)
