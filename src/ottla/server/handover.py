"""How a connection passes from one protocol to the next: through TLS, through the gate, into service."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.server.connection import Connection


def hand_over(transport: asyncio.Transport, connection: Connection, received: bytes) -> None:
    """The transport speaks to the connection from here on, which first gets what was received already."""
    if transport.is_closing():
        return  # an answer could not be sent; that the connection is lost will be told to whom it has now
    # Reading stops for the change: the loop has to look again at what kind of protocol it feeds.
    transport.pause_reading()
    transport.set_protocol(connection)
    transport.resume_reading()
    if received:
        connection.take(received)
