"""Envelope, key 58, version 0: a broker passes on what a client asked for (KIP-590).

The request inside is handled as if that client had sent it here: it is the client who needs the right to do
what it asks for, and the broker the right to speak for others, CLUSTER_ACTION. Only what is meant to be
forwarded can be inside.
"""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from ottla.core.acl import Operation
from ottla.core.java import host_address
from ottla.core.principal import Principal
from ottla.protocol import codec
from ottla.protocol.errors import (
    InvalidRequest,
    KafkaError,
    NotController,
    PrincipalDeserializationFailure,
    UnknownServerError,
    UnsupportedVersion,
)
from ottla.protocol.headers import RequestHeader, read_request_header, response_head
from ottla.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.protocol.stored.principal import DefaultPrincipalData
from ottla.protocol.wire import MalformedFrame
from ottla.runtime.forwarding import is_refused
from ottla.server import failures
from ottla.server.authorization import check_cluster
from ottla.server.context import Context, Disconnect

if TYPE_CHECKING:
    from ottla.server.connection import Connection
    from ottla.server.routes import Route

logger = logging.getLogger("ottla.envelope")

FORWARDED: Final = frozenset(
    {
        19,  # CreateTopics
        20,  # DeleteTopics
        30,  # CreateAcls
        31,  # DeleteAcls
        33,  # AlterConfigs
        37,  # CreatePartitions
        43,  # ElectLeaders
        44,  # IncrementalAlterConfigs
        45,  # AlterPartitionReassignments
        46,  # ListPartitionReassignments
        51,  # AlterUserScramCredentials
        55,  # DescribeQuorum
        57,  # UpdateFeatures
        64,  # UnregisterBroker
        67,  # AllocateProducerIds
        80,  # AddRaftVoter
        81,  # RemoveRaftVoter
    }
)
PRINCIPAL_VERSION: Final = 0


class Client(NamedTuple):
    """Who sent the request that is inside: as much of a connection as the handlers of such requests see."""

    principal: Principal
    address: str
    listener_name: str

    @property
    def client_host(self) -> str:
        return f"/{self.address}"


async def envelope(request: EnvelopeRequest, ctx: Context) -> EnvelopeResponse:
    try:
        check_cluster(ctx, Operation.CLUSTER_ACTION)
        if not ctx.node.quorum.is_active:
            raise NotController
        client = Client(_principal(request), _address(request), ctx.connection.listener_name)
        header, route, inside = _opened(request.request_data, ctx)
    except KafkaError as error:
        return EnvelopeResponse(error_code=error.code)
    as_client = Context(route.version, header.client_id, cast("Connection", client), ctx.node)
    try:
        answer = await route.handle(inside, as_client)
    except Disconnect:
        return EnvelopeResponse(error_code=InvalidRequest.code)
    except Exception as error:
        answer = _failed(route, error)
    if answer is None:
        return EnvelopeResponse(error_code=UnknownServerError.code)
    if is_refused(answer):
        # For the broker to see, which looks for the next one, and not for its client.
        return EnvelopeResponse(error_code=NotController.code)
    head = response_head(route.key, route.version, header.correlation_id)
    return EnvelopeResponse(response_data=head + codec.encode(answer, route.version))


def _failed(route: Route, error: Exception) -> Any | None:
    if not isinstance(error, KafkaError):
        logger.error("handler of a forwarded request failed api=%s", route.name, exc_info=error)
    return failures.failed(route.response_class, error)


def _principal(request: EnvelopeRequest) -> Principal:
    data = request.request_principal or b""
    try:
        if int.from_bytes(data[:2], "big") != PRINCIPAL_VERSION or len(data) < 2:
            raise MalformedFrame("a principal of an unknown version")
        found = codec.decode(DefaultPrincipalData, PRINCIPAL_VERSION, data, 2)
    except MalformedFrame as error:
        raise PrincipalDeserializationFailure(str(error)) from None
    return Principal(found.type, found.name)


def _address(request: EnvelopeRequest) -> str:
    packed = bytes(request.client_host_address)
    try:
        return host_address(socket.inet_ntop(socket.AF_INET6 if len(packed) > 4 else socket.AF_INET, packed))
    except ValueError:
        raise InvalidRequest("Failed to parse client address from envelope") from None


def _opened(data: bytes, ctx: Context) -> tuple[RequestHeader, Route, Any]:
    """The request inside. One that cannot be read is UNSUPPORTED_VERSION, as in Kafka, whatever is wrong."""
    try:
        header, body = read_request_header(data, 0, len(data))
        key, version = header.request_api_key, header.request_api_version
        if key not in FORWARDED:
            raise InvalidRequest(f"API {key} is not enabled or is not eligible for forwarding")
        route = ctx.connection.listener.routes.find(key, version)
        if route is None:
            raise UnsupportedVersion
        request, _ = route.read(data, body, len(data))
    except MalformedFrame as error:
        raise UnsupportedVersion(str(error)) from None
    return header, route, request
