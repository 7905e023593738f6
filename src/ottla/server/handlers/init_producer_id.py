"""InitProducerId, key 22, versions 0-5.

Serves idempotent producers: no transactional id, a fresh producer id each time, epoch 0. A transactional id
is checked as Kafka checks it and then answered with COORDINATOR_NOT_AVAILABLE, as this broker coordinates
no transactions. Where Kafka answers COORDINATOR_LOAD_IN_PROGRESS until its first block of ids has arrived,
this waits for the block.
"""

from __future__ import annotations

from typing import Final

from ottla.protocol.errors import (
    CoordinatorNotAvailable,
    InvalidRequest,
    InvalidTransactionTimeout,
    KafkaError,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.server.context import Context

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1


async def init_producer_id(request: InitProducerIdRequest, ctx: Context) -> InitProducerIdResponse:
    try:
        _check(request, ctx)
        producer_id = await ctx.node.producer_ids.take()
    except KafkaError as error:
        return InitProducerIdResponse(
            error_code=error.code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _check(request: InitProducerIdRequest, ctx: Context) -> None:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise InvalidRequest("A producer id and its epoch go together.")
    if request.transactional_id is None:
        return
    if not request.transactional_id:
        raise InvalidRequest("The transactional id is empty.")
    if not 0 < request.transaction_timeout_ms <= ctx.node.settings.transaction_max_timeout_ms:
        raise InvalidTransactionTimeout
    raise CoordinatorNotAvailable
