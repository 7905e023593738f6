"""InitProducerId, key 22, versions 0-5.

Without a transactional id a producer gets a fresh producer id each time, and epoch 0; with one the
transaction's coordinator decides. Where Kafka answers COORDINATOR_LOAD_IN_PROGRESS until its first block of
ids has arrived, this waits for the block.
"""

from __future__ import annotations

from typing import Final

from ottla.core.acl import Operation, ResourceType
from ottla.protocol.errors import (
    ClusterAuthorizationFailed,
    InvalidProducerEpoch,
    InvalidRequest,
    KafkaError,
    ProducerFenced,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.server import authorization
from ottla.server.context import Context
from ottla.server.transaction_calls import with_producer_id

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
# Older versions know INVALID_PRODUCER_EPOCH for it.
PRODUCER_FENCED_SINCE: Final = 4


async def init_producer_id(request: InitProducerIdRequest, ctx: Context) -> InitProducerIdResponse:
    try:
        _check_allowed(request.transactional_id, ctx)
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
            raise InvalidRequest("A producer id and its epoch go together.")
        transactional_id = request.transactional_id
        if transactional_id is None:
            return InitProducerIdResponse(producer_id=await ctx.node.producer_ids.take(), producer_epoch=0)
        response: InitProducerIdResponse = await with_producer_id(
            ctx.node,
            transactional_id,
            lambda machine, now, fresh_id: machine.init_producer_id(request, now, fresh_id),
        )
    except KafkaError as error:
        if isinstance(error, ProducerFenced) and ctx.version < PRODUCER_FENCED_SINCE:
            error = InvalidProducerEpoch()
        return InitProducerIdResponse(
            error_code=error.code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )
    return response


def _check_allowed(transactional_id: str | None, ctx: Context) -> None:
    """Who may write to any topic at all may do so without duplicates (KIP-679)."""
    authorizer, connection = ctx.node.authorizer, ctx.connection
    if authorizer is None:
        return
    if transactional_id is not None:
        authorization.check(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    elif not ctx.allows_on_cluster(Operation.IDEMPOTENT_WRITE) and not authorizer.allows_any(
        connection.principal, connection.address, Operation.WRITE, ResourceType.TOPIC
    ):
        raise ClusterAuthorizationFailed
