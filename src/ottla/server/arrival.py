"""A connection to a listener with TLS, from its first byte until both sides have agreed on a key.

It counts as a connection from the start, so a crowd that never finishes its handshakes is bounded as any
other. Who does not speak TLS at all costs one line in the log.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING, Final, cast

from ottla.core.principal import ANONYMOUS, USER, Principal
from ottla.server.distinguished_name import subject_of
from ottla.server.handover import hand_over
from ottla.server.ssl_principal import PrincipalMapping
from ottla.server.stepping import Suspended
from ottla.server.tls import Tls

if TYPE_CHECKING:
    from ottla.server.authentication.authenticator import Authenticator
    from ottla.server.connection import Connection

logger = logging.getLogger("ottla.tls")

HANDSHAKE_SECONDS: Final = 10.0
# How long to wait for the other side's farewell after ours.
SHUTDOWN_SECONDS: Final = 5.0

_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNEXPECTED_MESSAGE")


class Arrival(asyncio.Protocol):
    __slots__ = ("_authenticator", "_connection", "_early", "_mapping", "_shaking_hands", "_tls")

    def __init__(
        self,
        connection: Connection,
        tls: Tls,
        mapping: PrincipalMapping,
        authenticator: Authenticator | None,
    ) -> None:
        self._connection = connection
        self._tls = tls
        self._mapping = mapping
        self._authenticator = authenticator
        self._early = b""  # what the client sends on the heels of its handshake
        self._shaking_hands: Suspended | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.connection_made(transport)
        if self._connection.is_closing:
            return
        steps = self._secure(cast(asyncio.Transport, transport))
        # By hand, since not a byte is to be read before TLS listens.
        self._shaking_hands = Suspended(steps, steps.send(None), self._ended)

    def data_received(self, data: bytes) -> None:
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    async def _secure(self, raw: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(
            raw,
            self,
            self._tls.context,
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )
        if transport is None or self._connection.is_closing:
            raise ConnectionResetError("the client went away")
        connection = self._connection
        connection.secured(transport, self._principal(transport))
        if self._authenticator is None:
            hand_over(transport, connection, self._early)
        else:
            from ottla.server.authentication.gate import Gate

            gate = Gate(connection, self._authenticator)
            transport.set_protocol(gate)
            gate.begin(transport)
            if self._early:
                gate.data_received(self._early)

    def _principal(self, transport: asyncio.Transport) -> Principal:
        """Whose certificate it is that the client has shown. Raises NoPrincipal."""
        session = transport.get_extra_info("ssl_object")
        certificate = None if session is None else session.getpeercert(binary_form=True)
        if not certificate or self._authenticator is not None:
            return ANONYMOUS
        try:
            subject = subject_of(certificate)
        except ValueError as error:
            raise NoPrincipal(f"the certificate cannot be read: {error}") from None
        name = self._mapping.name_of(subject)
        if name is None:
            raise NoPrincipal(f"no rule of ssl.principal.mapping.rules applies to {subject}")
        return Principal(USER, name)

    def _ended(self, _: object, error: BaseException | None) -> None:
        self._shaking_hands = None
        if error is None:
            return
        connection = self._connection
        if isinstance(error, NoPrincipal):
            logger.info("closing connection client=%s reason=%s", connection.client_host, error)
        elif isinstance(error, OSError):
            logger.info(
                "TLS handshake failed client=%s listener=%s reason=%s",
                connection.client_host,
                connection.listener_name,
                _reason(error),
            )
        else:
            logger.error("TLS handshake failed client=%s", connection.client_host, exc_info=error)
        connection.abort()
        connection.connection_lost(None)  # which nobody tells us of whose handshake was not over


class NoPrincipal(Exception):
    """A client that TLS has let in, but nobody knows by what name."""


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        if error.reason in _NOT_TLS:
            return "the client does not speak TLS (security.protocol=SSL or SASL_SSL), this listener does"
        return str(error.reason or error).lower().replace("_", " ")
    return str(error)
