"""ShareGroupHeartbeat, key 76, version 1: join, stay in or leave a share group (KIP-932).

Departs from Kafka when the first member joins: its partitions have to be initialized before they can be
assigned. Kafka answers without any, and the member hears of them with its next heartbeat, five seconds later.
This waits for the initialization, which is short, and answers with the assignment. Later, a member that has
to wait for partitions is asked to come back after a second, as in consumer groups.
"""

from __future__ import annotations

import asyncio

from ottla.core.acl import Operation
from ottla.core.caller import Caller
from ottla.groups.share.heartbeat import Heard, heartbeat
from ottla.protocol.errors import InvalidRequest, KafkaError
from ottla.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from ottla.server.caller import caller_of
from ottla.server.context import Context
from ottla.server.group_authorization import check_group, check_subscription
from ottla.server.share_groups import LONGEST_MEMBER_ID, check_share_groups


async def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, ctx: Context
) -> ShareGroupHeartbeatResponse:
    caller = caller_of(ctx)
    try:
        check_share_groups(ctx)
        check_group(ctx, Operation.READ, request.group_id)
        if not 0 < len(request.member_id) <= LONGEST_MEMBER_ID:
            raise InvalidRequest("Invalid member id in the request.")
        check_subscription(ctx, request.subscribed_topic_names)
        heard = await _beat(request, caller, ctx, may_wait=True)
        if heard.initialize is not None:
            initializing = ctx.node.shares.initialize_soon(heard.initialize)
            if heard.response is None:
                await asyncio.wait([initializing])  # if it fails, there is nothing to assign yet
                heard = await _beat(request, caller, ctx, may_wait=False)
    except KafkaError as error:
        return ShareGroupHeartbeatResponse(error_code=error.code, error_message=str(error))
    assert heard.response is not None
    return heard.response


async def _beat(
    request: ShareGroupHeartbeatRequest, caller: Caller, ctx: Context, *, may_wait: bool
) -> Heard:
    heard: Heard = await ctx.node.groups.call(
        request.group_id,
        lambda machine, now, ticket: heartbeat(machine, request, caller, now, may_wait=may_wait),
    )
    return heard
