"""ControllerRegistration (key 70): a controller says what it can do and where it listens."""

from __future__ import annotations

from ottla.metadata.cluster import ControllerRegistration, Endpoint
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.metadata.versions import MV_CONTROLLER_REGISTRATION, VersionRange
from ottla.protocol.errors import UnsupportedVersion
from ottla.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


def controller_registration(
    state: ControllerState, request: ControllerRegistrationRequest, context: Context
) -> Decision:
    if state.image.metadata_version < MV_CONTROLLER_REGISTRATION:
        error = UnsupportedVersion(
            "The current MetadataVersion is too old to support controller registrations."
        )
        return Decision([], ControllerRegistrationResponse(error_code=error.code, error_message=str(error)))
    registration = ControllerRegistration(
        id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        endpoints=tuple(Endpoint(x.name, x.host, x.port, x.security_protocol) for x in request.listeners),
        features={
            f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in request.features
        },
    )
    return Decision([registration.to_record()], ControllerRegistrationResponse(error_message=None))
