"""How a connection authenticates: the requests of a SASL exchange, in order, apart from the socket.

`authentication(...)` is a generator: it yields a request and the class of its response, takes that response,
and ends with how long the session may be used, in seconds; None is for ever. Raises `AuthenticationFailed`.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from typing import Any, Final

from ottla.client.errors import AuthenticationFailed
from ottla.client.sasl import SaslFailed, sasl_client
from ottla.client.security import Security
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

SESSION_SHARE: Final = 0.85
"""How much of a session is used before the client authenticates again (KIP-368)."""

Authentication = Generator[tuple[Any, type[Any]], Any, float | None]


def authentication(security: Security, peer: str) -> Authentication:
    assert security.mechanism is not None
    handshake = SaslHandshakeRequest(mechanism=security.mechanism)
    answered: SaslHandshakeResponse = yield handshake, SaslHandshakeResponse
    if answered.error_code:
        offered = ", ".join(answered.mechanisms) or "none"
        raise AuthenticationFailed(f"{peer} does not take {security.mechanism}; it takes {offered}")
    client = sasl_client(
        security.mechanism, security.username, security.password, nonce=secrets.token_urlsafe(24)
    )
    token: bytes | None = client.start()
    lifetime_ms = 0
    while token is not None:
        request = SaslAuthenticateRequest(auth_bytes=token)
        response: SaslAuthenticateResponse = yield request, SaslAuthenticateResponse
        if response.error_code:
            said = response.error_message or "authentication failed"
            raise AuthenticationFailed(f"{peer} refuses {security.username}: {said}")
        try:
            token = client.answer(response.auth_bytes)
        except SaslFailed as error:
            raise AuthenticationFailed(f"{peer} is not trusted by {security.username}: {error}") from None
        lifetime_ms = response.session_lifetime_ms
    if not client.is_done:
        raise AuthenticationFailed(f"{peer} ended the exchange with {security.username} early")
    return SESSION_SHARE * lifetime_ms / 1000 if lifetime_ms > 0 else None
