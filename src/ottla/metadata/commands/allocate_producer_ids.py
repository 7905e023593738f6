"""AllocateProducerIds (key 67): a broker fetches a block of producer ids that nobody else will hand out."""

from __future__ import annotations

from typing import Final

from ottla.metadata.state import Context, ControllerState, Decision
from ottla.protocol.errors import KafkaError, UnknownServerError
from ottla.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from ottla.protocol.stored.metadata import ProducerIdsRecord

BLOCK_SIZE: Final = 1_000
LAST_ID: Final = 2**63 - 1


def allocate_producer_ids(
    state: ControllerState, request: AllocateProducerIdsRequest, context: Context
) -> Decision:
    first = state.image.next_producer_id
    try:
        state.check_broker_epoch(request.broker_id, request.broker_epoch)
        if first > LAST_ID - BLOCK_SIZE:
            raise UnknownServerError("Exhausted all producerIds: the next block would end past 64 bits")
    except KafkaError as error:
        return Decision([], AllocateProducerIdsResponse(error_code=error.code))
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    return Decision(
        [record], AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    )
