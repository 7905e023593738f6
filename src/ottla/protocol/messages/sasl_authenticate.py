"""SaslAuthenticate (key 36): one step of a SASL exchange.

v1 session lifetime (KIP-368); v2 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i64, message


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    auth_bytes: bytes = field(default=b"", secret=True)


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    error_code: i16 = 0
    error_message: str | None = ""
    auth_bytes: bytes = field(default=b"", secret=True)
    session_lifetime_ms: i64 = field("1+", default=0, ignorable=True)
