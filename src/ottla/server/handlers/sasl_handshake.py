"""SaslHandshake, key 17, versions 0-1.

A handshake that begins a connection never gets here (`authentication.gate`). What does came over a
listener without SASL, where it is refused, or from a client that authenticates again while its connection
is in use (KIP-368).
"""

from __future__ import annotations

from ottla.protocol.errors import IllegalSaslState
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.server.context import Context


async def sasl_handshake(request: SaslHandshakeRequest, ctx: Context) -> SaslHandshakeResponse:
    session = ctx.connection.session
    if session is None:
        return SaslHandshakeResponse(error_code=IllegalSaslState.code)
    return await session.handshake(request.mechanism, ctx.version)
