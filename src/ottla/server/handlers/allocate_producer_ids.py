"""AllocateProducerIds, key 67, version 0: a broker takes a block of producer ids."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller


async def allocate_producer_ids(
    request: AllocateProducerIdsRequest, ctx: Context
) -> AllocateProducerIdsResponse:
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    response: AllocateProducerIdsResponse = await ask_controller(request, ctx)
    return response
