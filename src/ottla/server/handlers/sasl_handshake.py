"""SaslHandshake, key 17, versions 0-1.

A handshake that belongs to an authentication is taken by the connection before requests are handled at
all. One that arrives here came over a listener without SASL, or after authenticating: both are refused.
"""

from __future__ import annotations

from ottla.protocol.errors import IllegalSaslState
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.server.context import Context


async def sasl_handshake(request: SaslHandshakeRequest, ctx: Context) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=IllegalSaslState.code)
