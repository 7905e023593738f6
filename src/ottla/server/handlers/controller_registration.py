"""ControllerRegistration, key 70, version 0: a controller tells what it can do and where it listens."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller


async def controller_registration(
    request: ControllerRegistrationRequest, ctx: Context
) -> ControllerRegistrationResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    response: ControllerRegistrationResponse = await ask_controller(request, ctx)
    return response
