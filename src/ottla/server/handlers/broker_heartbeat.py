"""BrokerHeartbeat, key 63, versions 0-2: a broker is alive, and hears whether it may serve or go."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller


async def broker_heartbeat(request: BrokerHeartbeatRequest, ctx: Context) -> BrokerHeartbeatResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    quorum, id, epoch = ctx.node.quorum, request.broker_id, request.broker_epoch
    # A process that dies leaves a broken connection: no need to wait until its session has run out.
    ctx.connection.endings[broker_heartbeat] = lambda: quorum.missed(id, epoch)
    response: BrokerHeartbeatResponse = await ask_controller(request, ctx)
    return response
