"""UnregisterBroker, key 64, version 0. Decided by the controller, which this broker asks."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller, seen_here


async def unregister_broker(request: UnregisterBrokerRequest, ctx: Context) -> UnregisterBrokerResponse:
    try:
        check_cluster(ctx, Operation.ALTER)
        response: UnregisterBrokerResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=str(error))
    await seen_here(ctx)
    return response
