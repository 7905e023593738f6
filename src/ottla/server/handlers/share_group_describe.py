"""ShareGroupDescribe, key 77, version 1: the state and the members of share groups (KIP-932)."""

from __future__ import annotations

import asyncio

from ottla.groups.share import admin
from ottla.protocol.errors import InvalidGroupId, KafkaError
from ottla.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from ottla.server.context import Context
from ottla.server.share_groups import check_share_groups


async def share_group_describe(
    request: ShareGroupDescribeRequest, ctx: Context
) -> ShareGroupDescribeResponse:
    groups = await asyncio.gather(*(_describe(group_id, ctx) for group_id in request.group_ids))
    return ShareGroupDescribeResponse(groups=list(groups))


async def _describe(group_id: str, ctx: Context) -> DescribedGroup:
    group: DescribedGroup
    try:
        check_share_groups(ctx)
        if not group_id:
            raise InvalidGroupId
        group = await ctx.node.groups.call(
            group_id, lambda machine, now, ticket: admin.describe(machine, group_id)
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error))
    return group
