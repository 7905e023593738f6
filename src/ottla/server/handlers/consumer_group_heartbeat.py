"""ConsumerGroupHeartbeat, key 68, versions 0-1: join, stay in or leave a consumer group (KIP-848).

A member that waits for partitions is asked to come back after a second, and not only after
group.consumer.heartbeat.interval.ms as by Kafka.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.server.caller import caller_of
from ottla.server.context import Context
from ottla.server.group_authorization import check_group, check_subscription


async def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, ctx: Context
) -> ConsumerGroupHeartbeatResponse:
    caller = caller_of(ctx)
    response: ConsumerGroupHeartbeatResponse
    try:
        check_group(ctx, Operation.READ, request.group_id)
        check_subscription(ctx, request.subscribed_topic_names)
        response = await ctx.node.groups.call(
            request.group_id,
            lambda machine, now, ticket: machine.consumer_group_heartbeat(request, caller, now),
        )
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=str(error))
    return response
