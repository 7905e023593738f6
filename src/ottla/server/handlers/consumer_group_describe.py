"""ConsumerGroupDescribe, key 69, versions 0-1: the state and the members of consumer groups (KIP-848)."""

from __future__ import annotations

import asyncio

from ottla.core.acl import Operation
from ottla.core.outcome import Outcome
from ottla.protocol.errors import InvalidGroupId, KafkaError
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from ottla.server import authorized_operations
from ottla.server.context import Context
from ottla.server.group_authorization import check_described, check_group


async def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, ctx: Context
) -> ConsumerGroupDescribeResponse:
    groups = await asyncio.gather(*(_describe(group_id, ctx) for group_id in request.group_ids))
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = authorized_operations.on_group(ctx, group.group_id)
    return ConsumerGroupDescribeResponse(groups=list(groups))


async def _describe(group_id: str, ctx: Context) -> DescribedGroup:
    described: DescribedGroup
    try:
        check_group(ctx, Operation.DESCRIBE, group_id)
        if not group_id:
            raise InvalidGroupId
        described = await ctx.node.groups.call(
            group_id, lambda machine, now, ticket: Outcome(reply=machine.describe_consumer_group(group_id))
        )
        check_described(
            ctx,
            (
                topic.topic_name
                for member in described.members
                for assignment in (member.assignment, member.target_assignment)
                for topic in assignment.topic_partitions
            ),
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error))
    return described
