"""SaslAuthenticate, key 36, versions 0-2.

As with SaslHandshake, what arrives here comes from a connection in use that authenticates again (KIP-368),
or from one that has no reason to ask.
"""

from __future__ import annotations

from ottla.protocol.errors import IllegalSaslState
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.server.context import Context


async def sasl_authenticate(request: SaslAuthenticateRequest, ctx: Context) -> SaslAuthenticateResponse:
    session = ctx.connection.session
    if session is None:
        return SaslAuthenticateResponse(
            error_code=IllegalSaslState.code,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    return await session.authenticate(bytes(request.auth_bytes))
