"""BrokerRegistration (key 62): a broker says that it is there, what it can do and where it listens.

A new incarnation of a broker is taken out of every in-sync set before it is let in, because whatever the
old one promised, this one has not promised yet. If it cannot show that the old one stopped cleanly, its
word is worth less: it is not eligible to lead either (KIP-966).
"""

from __future__ import annotations

from ottla.metadata.cluster import BrokerRegistration, Endpoint
from ottla.metadata.image import MetadataRecord
from ottla.metadata.leadership import changes, eligible_on, in_sync_on
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.metadata.versions import METADATA_VERSION, MV_DIRECTORY_ASSIGNMENT, VersionRange
from ottla.protocol.errors import (
    BrokerIdNotRegistered,
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    InvalidRegistration,
    KafkaError,
    UnsupportedVersion,
)
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

NO_STORED_EPOCH = -2  # never equal to what a broker sends: -1 means that it does not know


def broker_registration(
    state: ControllerState, request: BrokerRegistrationRequest, context: Context
) -> Decision:
    existing = state.image.brokers.get(request.broker_id)
    try:
        _check_identity(state, request, existing, context)
        _check_directories(state, request)
        features = _checked_features(state, request)
    except KafkaError as error:
        return Decision([], BrokerRegistrationResponse(error_code=error.code))
    records: list[MetadataRecord] = []
    same = existing is not None and existing.incarnation_id == request.incarnation_id
    if existing is not None and same:
        epoch, fenced, leaving = existing.epoch, existing.fenced, existing.in_controlled_shutdown
    else:
        records = _leave_isrs(state, request, existing, context)
        # The epoch is the place of the registration in the log: nothing else can ever have the same one.
        epoch, fenced, leaving = context.next_offset + len(records), True, False
        state.sessions.end(request.broker_id)
    registration = BrokerRegistration(
        id=request.broker_id,
        epoch=epoch,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(Endpoint(x.name, x.host, x.port, x.security_protocol) for x in request.listeners),
        features=features,
        rack=request.rack,
        fenced=fenced,
        in_controlled_shutdown=leaving,
        directories=tuple(request.log_dirs),
    )
    # A crashed broker may leave thousands of partitions. They need not be one batch, as long as the
    # registration is the last record: if it is missing, the broker will ask again.
    records.append(registration.to_record(state.image.metadata_version))
    return Decision(records, BrokerRegistrationResponse(broker_epoch=epoch), atomic=False)


def _check_identity(
    state: ControllerState,
    request: BrokerRegistrationRequest,
    existing: BrokerRegistration | None,
    context: Context,
) -> None:
    if request.cluster_id != state.settings.cluster_id:
        raise InconsistentClusterId(
            f"Expected cluster ID {state.settings.cluster_id}, but got cluster ID {request.cluster_id}"
        )
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and not _is_on_the_disk_of(existing, request)
        and state.sessions.is_valid(existing.id, existing.epoch, context.now_ms)
    ):
        raise DuplicateBrokerRegistration("Another broker is registered with that broker id.")
    if request.is_migrating_zk_broker:
        raise BrokerIdNotRegistered("Controller does not support registering ZK brokers.")


def _is_on_the_disk_of(existing: BrokerRegistration, request: BrokerRegistrationRequest) -> bool:
    """Whether this is the same broker after a restart, however fast: it has locked the same directories.

    Departing from Kafka, which refuses it until the session of its predecessor is over.
    """
    return bool(existing.directories) and set(existing.directories) == set(request.log_dirs)


def _check_directories(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    if state.image.metadata_version < MV_DIRECTORY_ASSIGNMENT:
        return
    given = request.log_dirs
    if not given:
        raise InvalidRegistration("No directories specified in request")
    if any(directory.is_reserved for directory in given):
        raise InvalidRegistration("Reserved directory ID in request")
    if len(set(given)) != len(given):
        raise InvalidRegistration("Duplicate directory ID in request")
    for broker in state.image.brokers.values():
        taken = set(broker.directories) & set(given)
        if broker.id != request.broker_id and taken:
            raise InvalidRegistration(
                f"Broker {broker.id} is already registered with directory {taken.pop()}"
            )


def _checked_features(state: ControllerState, request: BrokerRegistrationRequest) -> dict[str, VersionRange]:
    """What the broker supports; raises unless that covers every feature the cluster has switched on."""
    finalized = state.image.features
    supported = {
        f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in request.features
    }
    for name, wants in supported.items():
        _check_range(name, finalized.get(name, 0), wants)
    if METADATA_VERSION not in supported:
        raise InvalidRegistration(f"Request features do not contain '{METADATA_VERSION}'")
    for name, level in finalized.items():
        if level and name not in supported:
            _check_range(name, level, VersionRange(0, 0))
    return supported


def _check_range(name: str, level: int, wants: VersionRange) -> None:
    if name == "kraft.version":
        return  # it is settled by the quorum itself, and what the image holds says nothing about it
    if not wants.min <= level <= wants.max:
        raise UnsupportedVersion(
            f"Unable to register because the broker does not support finalized version {level} of {name}. "
            f"The broker wants a version between {wants.min} and {wants.max}, inclusive."
        )


def _leave_isrs(
    state: ControllerState,
    request: BrokerRegistrationRequest,
    existing: BrokerRegistration | None,
    context: Context,
) -> list[MetadataRecord]:
    broker = request.broker_id
    stored_epoch = NO_STORED_EPOCH if existing is None else existing.epoch
    # Only from version 3 on does a broker say in which epoch it last stopped cleanly.
    clean = context.version >= 3 and request.previous_broker_epoch == stored_epoch
    if clean or not state.image.elr_enabled:
        return changes(state, in_sync_on(state, broker), removed=broker)
    return [
        *changes(state, in_sync_on(state, broker), unclean=broker),
        *changes(state, eligible_on(state, broker), unclean=broker),
    ]
