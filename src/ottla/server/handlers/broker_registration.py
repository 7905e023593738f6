"""BrokerRegistration, key 62, versions 0-4: a broker makes itself known, and gets its epoch."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller


async def broker_registration(request: BrokerRegistrationRequest, ctx: Context) -> BrokerRegistrationResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    response: BrokerRegistrationResponse = await ask_controller(request, ctx)
    return response
