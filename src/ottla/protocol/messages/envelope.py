"""Envelope (key 58): a broker forwards a client's request to the controller (KIP-590)."""

from __future__ import annotations

from ottla.protocol.schema import i16, message


@message(key=58, versions="0", flexible="0+")
class EnvelopeRequest:
    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""


@message(key=58, versions="0", flexible="0+")
class EnvelopeResponse:
    response_data: bytes | None = None
    error_code: i16 = 0
