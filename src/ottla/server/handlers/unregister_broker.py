"""UnregisterBroker, key 64, version 0. Decided by the controller, which this broker asks."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.server.authorization import check_cluster
from ottla.server.context import Context


async def unregister_broker(request: UnregisterBrokerRequest, ctx: Context) -> UnregisterBrokerResponse:
    try:
        check_cluster(ctx, Operation.ALTER)
        response: UnregisterBrokerResponse = await ctx.node.quorum.submit(request, ctx.version)
    except KafkaError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=str(error))
    await ctx.node.caught_up()
    return response
