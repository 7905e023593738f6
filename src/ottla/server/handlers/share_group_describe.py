"""ShareGroupDescribe, key 77, version 1: the state and the members of share groups (KIP-932)."""

from __future__ import annotations

import asyncio

from ottla.core.acl import Operation
from ottla.groups.share import admin
from ottla.protocol.errors import InvalidGroupId, KafkaError
from ottla.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from ottla.server import authorized_operations
from ottla.server.context import Context
from ottla.server.group_authorization import check_described, check_group
from ottla.server.share_groups import check_share_groups


async def share_group_describe(
    request: ShareGroupDescribeRequest, ctx: Context
) -> ShareGroupDescribeResponse:
    groups = await asyncio.gather(*(_describe(group_id, ctx) for group_id in request.group_ids))
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = authorized_operations.on_group(ctx, group.group_id)
    return ShareGroupDescribeResponse(groups=list(groups))


async def _describe(group_id: str, ctx: Context) -> DescribedGroup:
    group: DescribedGroup
    try:
        check_share_groups(ctx)
        check_group(ctx, Operation.DESCRIBE, group_id)
        if not group_id:
            raise InvalidGroupId
        group = await ctx.node.groups.call(
            group_id, lambda machine, now, ticket: admin.describe(machine, group_id)
        )
        check_described(
            ctx,
            (topic.topic_name for member in group.members for topic in member.assignment.topic_partitions),
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error))
    return group
