"""The gate of a listener with SASL: what a connection speaks to until it is known who is at its other end.

It is the protocol of the transport in place of the `Connection`, which takes over once authentication is
done; so a connection that is through pays nothing for it, and one that is not has no way to anything else.
Only ApiVersions, SaslHandshake and SaslAuthenticate are read, one at a time; every other frame is the
last.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from typing import TYPE_CHECKING, Any, Final, cast

from ottla.protocol import headers
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.wire import MalformedFrame
from ottla.server.api import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from ottla.server.authentication.authenticator import Authenticator
from ottla.server.authentication.exchange import AUTHENTICATE
from ottla.server.authentication.session import Session
from ottla.server.context import Context
from ottla.server.handlers.api_versions import api_versions, unsupported_version
from ottla.server.handover import hand_over
from ottla.server.routes import Route

if TYPE_CHECKING:
    from ottla.server.connection import Connection

logger = logging.getLogger("ottla.authentication")

# How long a connection may be there without having authenticated.
AUTHENTICATE_SECONDS: Final = 30.0
# How often a client may ask for the versions without learning them: one that is newer than this broker is
# told once which to use. Whoever goes on may not even read the answers, which would then pile up.
VERSIONS_ASKED_MAX: Final = 4
# How every TLS connection begins: a record of the handshake, of version 3.x.
TLS_HELLO: Final = b"\x16\x03"

_SIZE: Final = struct.Struct(">i")
_KEY_AND_VERSION: Final = struct.Struct(">hh")


class Gate(asyncio.Protocol):
    __slots__ = (
        "_authenticator",
        "_connection",
        "_exchange",
        "_is_over",
        "_knows_versions",
        "_loop",
        "_received",
        "_timer",
        "_transport",
        "_versions_asked",
    )

    def __init__(self, connection: Connection, authenticator: Authenticator) -> None:
        self._connection = connection
        self._authenticator = authenticator
        self._exchange = authenticator.exchange()
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()  # at most one frame and what one read has brought
        self._knows_versions = False
        self._versions_asked = 0
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    # --- the transport's calls -----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.connection_made(transport)
        if not self._connection.is_closing:
            self.begin(cast(asyncio.Transport, transport))

    def begin(self, transport: asyncio.Transport) -> None:
        """From here on the transport is ours."""
        self._transport = transport
        self._timer = self._loop.call_later(AUTHENTICATE_SECONDS, self._close, "it has not authenticated")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._connection.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        self._received += data
        try:
            self._read()
        except MalformedFrame as error:
            self._close(f"a malformed request before authentication: {error}")
        except Exception:
            logger.exception("authentication failed client=%s", self._connection.client_host)
            self._close("an error of ours")

    # --- frames --------------------------------------------------------------------------

    def _read(self) -> None:
        received = self._received
        while not self._is_over and len(received) >= 4:
            (size,) = _SIZE.unpack_from(received)
            if not 0 <= size <= self._authenticator.receive_bytes_max:
                if received.startswith(TLS_HELLO):
                    self._close("the client speaks TLS (security.protocol=SASL_SSL), this listener is plain")
                    return
                self._close(
                    f"a frame of {size} bytes before authentication "
                    f"(sasl.server.max.receive.size is {self._authenticator.receive_bytes_max})"
                )
                return
            if len(received) < 4 + size:
                return
            frame = bytes(received[4 : 4 + size])
            del received[: 4 + size]
            self._connection.last_active = self._loop.time()
            if self._exchange.takes_bare_tokens:
                self._token(frame)
            else:
                self._request(frame)

    def _token(self, token: bytes) -> None:
        answer = self._exchange.token(token)
        self._answer(None if answer is None else _SIZE.pack(len(answer)) + answer)

    def _request(self, frame: bytes) -> None:
        if len(frame) < _KEY_AND_VERSION.size:
            raise MalformedFrame("the frame is too short for a request header")
        key, version = _KEY_AND_VERSION.unpack_from(frame)
        if not self._is_expected(key):
            self._close(f"API key {key} before authentication")
            return
        header, body = headers.read_request_header(frame, 0, len(frame))
        route = self._connection.listener.routes.find(key, version)
        if route is None:
            if key != API_VERSIONS:
                self._close(f"API key {key} version {version}, which is not served")
                return
            route = self._connection.listener.routes.find(API_VERSIONS, 0)
            assert route is not None
            self._answer(_encoded(route, header.correlation_id, unsupported_version()))
            return
        request, _ = route.read(frame, body, len(frame))
        route.requests += 1
        response: Any
        if key == API_VERSIONS:
            response = self._versions(request, version, header.client_id)
        elif key == SASL_HANDSHAKE:
            response = self._exchange.handshake(request.mechanism, version)
        else:
            response = self._exchange.authenticate(bytes(request.auth_bytes))
        self._answer(_encoded(route, header.correlation_id, response))

    def _is_expected(self, key: int) -> bool:
        if self._exchange.state == AUTHENTICATE:
            return key == SASL_AUTHENTICATE
        if key == API_VERSIONS:
            # As in Kafka, a client that has learned the versions does not ask again.
            self._versions_asked += 1
            return not self._knows_versions and self._versions_asked <= VERSIONS_ASKED_MAX
        return key == SASL_HANDSHAKE

    def _versions(self, request: Any, version: int, client_id: str | None) -> ApiVersionsResponse:
        listener = self._connection.listener
        asked = api_versions(request, Context(version, client_id, self._connection, listener.node))
        try:
            asked.send(None)
        except StopIteration as done:
            response: ApiVersionsResponse = done.value
        else:
            raise AssertionError("ApiVersions has to be answered at once")
        self._knows_versions = not response.error_code
        return response

    # --- ends ----------------------------------------------------------------------------

    def _answer(self, frame: bytes | bytearray | None) -> None:
        exchange, connection = self._exchange, self._connection
        if exchange.failure:
            delay = self._authenticator.failed(connection.address)
            logger.info(
                "authentication failed client=%s listener=%s reason=%s",
                connection.client_host,
                connection.listener_name,
                exchange.failure,
            )
            # Nothing more is read, and the client learns late that it was wrong.
            self._end()
            if not self._transport.is_closing():
                self._transport.pause_reading()
            self._timer = self._loop.call_later(delay, self._dismiss, frame)
            return
        if frame is not None:
            self._transport.write(frame)
        if exchange.authenticated is not None:
            self._authenticator.succeeded(connection.address)
            self._end()
            connection.session = Session(connection, self._authenticator, exchange.authenticated)
            hand_over(self._transport, connection, bytes(self._received))

    def _dismiss(self, frame: bytes | bytearray | None) -> None:
        if frame is not None:
            self._transport.write(frame)
        self._connection.close()

    def _close(self, why: str) -> None:
        self._end()
        logger.info("closing connection client=%s reason=%s", self._connection.client_host, why)
        self._connection.close()

    def _end(self) -> None:
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()


def _encoded(route: Route, correlation_id: int, response: Any) -> bytearray:
    out = bytearray(4)
    out += headers.response_head(route.key, route.version, correlation_id)
    route.write(response, out)
    _SIZE.pack_into(out, 0, len(out) - 4)
    return out
