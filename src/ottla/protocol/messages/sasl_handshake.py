"""SaslHandshake (key 17): choose a SASL mechanism.

From v1 the tokens that follow travel in SaslAuthenticate requests, before that as bare frames. It can never
become flexible, because of how old clients negotiate (KAFKA-9577).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, message


@message(key=17, versions="0-1")
class SaslHandshakeRequest:
    mechanism: str = ""


@message(key=17, versions="0-1")
class SaslHandshakeResponse:
    error_code: i16 = 0
    mechanisms: list[str] = field(default=[])
