"""Who a connection belongs to, for how long, and how it authenticates again while it is in use (KIP-368).

When the time is up the connection is left with routes that lead to SaslHandshake only: whatever else its
client asks is not served, which closes it. So a request costs no look at the clock.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.protocol.errors import IllegalSaslState
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeResponse
from ottla.server.authentication.authenticator import Authenticator
from ottla.server.authentication.exchange import Authenticated, Exchange

if TYPE_CHECKING:
    from ottla.server.connection import Connection

logger = logging.getLogger("ottla.authentication")

# As in Kafka: a client that authenticates again more often than this is told that it may not.
AGAIN_SECONDS: Final = 1.0

T = TypeVar("T", SaslHandshakeResponse, SaslAuthenticateResponse)


class Session:
    __slots__ = ("_authenticated", "_authenticator", "_began", "_connection", "_exchange", "_expiry", "_loop")

    def __init__(
        self, connection: Connection, authenticator: Authenticator, authenticated: Authenticated
    ) -> None:
        self._connection = connection
        self._authenticator = authenticator
        self._loop = asyncio.get_running_loop()
        self._began = float("-inf")
        self._exchange: Exchange | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._authenticated = authenticated
        self._open()
        connection.endings[self] = self._end

    async def handshake(self, mechanism: str, version: int) -> SaslHandshakeResponse:
        """SaslHandshake on a connection that is in use: from here on it waits for SaslAuthenticate alone."""
        now = self._loop.time()
        # Clients that send bare tokens do not know that one can authenticate twice.
        if version == 0 or now - self._began < AGAIN_SECONDS:
            return SaslHandshakeResponse(error_code=IllegalSaslState.code)
        self._began = now
        self._end()
        self._exchange = self._authenticator.exchange(self._authenticated)
        self._connection.route_by(self._authenticator.after_handshake)
        return await self._answered(self._exchange, self._exchange.handshake(mechanism, version))

    async def authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        exchange = self._exchange
        if exchange is None:
            return SaslAuthenticateResponse(
                error_code=IllegalSaslState.code,
                error_message="SaslAuthenticate request received after successful authentication",
            )
        response = exchange.authenticate(token)
        if exchange.authenticated is not None:
            self._exchange = None
            self._authenticated = exchange.authenticated
            self._open()
        return await self._answered(exchange, response)

    def _open(self) -> None:
        connection, authenticated = self._connection, self._authenticated
        connection.principal = authenticated.principal
        connection.route_by(connection.listener.routes)
        if authenticated.session_ms:
            self._expiry = self._loop.call_later(authenticated.session_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._connection.route_by(self._authenticator.after_expiry)

    def _end(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    async def _answered(self, exchange: Exchange, response: T) -> T:
        """The response; a failure is told late, and is the last thing that is told."""
        if exchange.failure:
            connection = self._connection
            delay = self._authenticator.failed(connection.address)
            logger.info(
                "authentication failed client=%s listener=%s reason=%s",
                connection.client_host,
                connection.listener_name,
                exchange.failure,
            )
            await asyncio.sleep(delay)
            self._loop.call_soon(connection.close)  # once this is answered
        return response
