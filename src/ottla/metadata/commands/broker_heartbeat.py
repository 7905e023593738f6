"""BrokerHeartbeat (key 63): a broker is alive, and says what it wants to become.

The states are Kafka's: fenced, unfenced, in controlled shutdown, and gone. The one thing a heartbeat
changes at once is the session: who was heard from is not worth a record.
"""

from __future__ import annotations

from enum import Enum

from ottla.core.ids import Uuid
from ottla.metadata.cluster import BrokerRegistration
from ottla.metadata.image import MetadataRecord
from ottla.metadata.leadership import changes, in_sync_on, leaderless, leads_any
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.metadata.versions import MV_CORDONED_DIRECTORIES, MV_DIRECTORY_ASSIGNMENT
from ottla.protocol.errors import BrokerIdNotRegistered, KafkaError
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.stored.metadata import BrokerRegistrationChangeRecord


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


def broker_heartbeat(state: ControllerState, request: BrokerHeartbeatRequest, context: Context) -> Decision:
    broker = state.image.brokers.get(request.broker_id)
    try:
        if broker is None:
            raise BrokerIdNotRegistered(f"Broker ID {request.broker_id} is not currently registered")
        state.check_broker_epoch(request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return Decision([], BrokerHeartbeatResponse(error_code=error.code))
    state.sessions.heard(broker.id, broker.epoch, request.current_metadata_offset, context.now_ms)

    before = _current(state, broker)
    after = _next(state, broker, before, request)
    records: list[MetadataRecord] = []
    if before is not after:
        if after is BrokerState.UNFENCED:
            records = unfence(state, broker)
        elif after is BrokerState.CONTROLLED_SHUTDOWN:
            records = _enter_controlled_shutdown(state, broker)
            state.sessions.begin_shutdown(broker.id, context.next_offset + len(records) - 1)
        else:
            records = fence(state, broker)
    records += _directories(state, broker, request)
    if after is BrokerState.SHUTDOWN_NOW:
        # It has said goodbye: its successor need not wait until the session is over.
        state.sessions.end(broker.id)
    return Decision(
        records,
        BrokerHeartbeatResponse(
            is_caught_up=request.current_metadata_offset >= broker.offset,
            is_fenced=after in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
            should_shut_down=after is BrokerState.SHUTDOWN_NOW,
        ),
        atomic=False,
    )


def fence(state: ControllerState, broker: BrokerRegistration) -> list[MetadataRecord]:
    """A broker is out: its partitions find other leaders, then it counts as fenced."""
    return [
        *changes(state, in_sync_on(state, broker.id), removed=broker.id),
        BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=1),
    ]


def unfence(state: ControllerState, broker: BrokerRegistration) -> list[MetadataRecord]:
    """A broker is back: it may lead what has no leader."""
    return [
        BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=-1),
        *changes(state, leaderless(state), added=broker.id),
    ]


def _enter_controlled_shutdown(state: ControllerState, broker: BrokerRegistration) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    if not broker.in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
            )
        )
    return records + changes(state, in_sync_on(state, broker.id), removed=broker.id)


def _current(state: ControllerState, broker: BrokerRegistration) -> BrokerState:
    if state.sessions.is_shutting_down(broker.id):
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.FENCED if broker.fenced else BrokerState.UNFENCED


def _next(
    state: ControllerState, broker: BrokerRegistration, before: BrokerState, request: BrokerHeartbeatRequest
) -> BrokerState:
    if before is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        # A broker may serve once it has seen itself registered: then it has read all that came before.
        # One that was on its way out has to register again: there is no record that would call it back.
        caught_up = request.current_metadata_offset >= broker.offset
        may_serve = caught_up and not request.want_fence and not broker.in_controlled_shutdown
        return BrokerState.UNFENCED if may_serve else BrokerState.FENCED
    if before is BrokerState.UNFENCED:
        if request.want_fence:
            return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
        if request.want_shut_down:
            leads = leads_any(state, broker.id)
            return BrokerState.CONTROLLED_SHUTDOWN if leads else BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED
    # It goes once it leads nothing, and everyone who stays has heard that.
    if leads_any(state, broker.id):
        return BrokerState.CONTROLLED_SHUTDOWN
    staying = (
        other.id
        for other in state.image.brokers.values()
        if not other.fenced and not state.sessions.is_shutting_down(other.id)
    )
    if state.sessions.shutdown_offset(broker.id) <= state.sessions.lowest_offset(staying):
        return BrokerState.SHUTDOWN_NOW
    return BrokerState.CONTROLLED_SHUTDOWN


def _directories(
    state: ControllerState, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> list[MetadataRecord]:
    level = state.image.metadata_version
    records: list[MetadataRecord] = []
    if level >= MV_DIRECTORY_ASSIGNMENT:
        records += _offline(state, broker, request.offline_log_dirs)
    cordoned = request.cordoned_log_dirs
    if (
        level >= MV_CORDONED_DIRECTORIES
        and cordoned is not None
        and (broker.cordoned is None or set(broker.cordoned) != set(cordoned))
    ):
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
            )
        )
    return records


def _offline(state: ControllerState, broker: BrokerRegistration, offline: list[Uuid]) -> list[MetadataRecord]:
    """A directory failed: what it held is led from elsewhere."""
    failed = [directory for directory in broker.directories if directory in offline]
    if not failed:
        return []
    held = (
        partition for partition in state.image.partitions() if partition[2].directory(broker.id) in failed
    )
    return [
        *changes(state, held, removed=broker.id),
        BrokerRegistrationChangeRecord(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            log_dirs=[directory for directory in broker.directories if directory not in failed],
        ),
    ]
