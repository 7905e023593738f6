"""UnregisterBroker (key 64): forget a broker that will not come back."""

from __future__ import annotations

from ottla.metadata.leadership import changes, eligible_on, in_sync_on
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.protocol.errors import BrokerIdNotRegistered
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.protocol.stored.metadata import UnregisterBrokerRecord


def unregister_broker(state: ControllerState, request: UnregisterBrokerRequest, context: Context) -> Decision:
    broker = state.image.brokers.get(request.broker_id)
    if broker is None:
        error = BrokerIdNotRegistered(f"Broker ID {request.broker_id} is not currently registered")
        return Decision([], UnregisterBrokerResponse(error_code=error.code, error_message=str(error)))
    records = [
        # Whoever is not a member cannot be eligible either, however it went.
        *changes(state, in_sync_on(state, broker.id), unclean=broker.id),
        *changes(state, eligible_on(state, broker.id), unclean=broker.id),
        UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch),
    ]
    return Decision(records, UnregisterBrokerResponse(error_message=None), atomic=False)
