"""A principal as brokers pass it on inside an Envelope."""

from __future__ import annotations

from ottla.protocol.schema import message


@message(versions="0", flexible="0+")
class DefaultPrincipalData:
    """The principal of a forwarded request."""

    type: str = ""
    name: str = ""
    token_authenticated: bool = False
