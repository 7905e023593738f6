"""The gRPC door: an HTTP/2 connection is joined to the gRPC server of this process, byte for byte.

gRPC's library wants to own its socket, and the port is not ours to give away. So its server listens on a
private Unix socket, and what comes in here is passed on there and back. Each side is read only as fast as the
other one takes it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from ottla.gateways.grpc.server import GrpcServer
from ottla.server.doors import Visit

READ_BYTES: Final = 64 << 10
# Two HTTP/2 frames, by hand: our settings, which have to come first, and a farewell with a reason.
SETTINGS: Final = b"\0\0\0\x04\0\0\0\0\0"
GO_AWAY: Final = b"\x07\0\0\0\0\0"
HTTP_1_1_REQUIRED: Final = 0xD
MISSING: Final = b"this broker has no gRPC: install it with pip install 'ottla[grpc]'"


async def serve(visit: Visit) -> None:
    server = visit.doors.keep(GrpcServer)
    try:
        reader, writer = await server.connect(visit)
    except ImportError:
        visit.writer.write(farewell(MISSING))
        return
    sending = asyncio.create_task(_pass_on(visit, visit.reader, writer))
    try:
        await _pass_on(visit, reader, visit.writer)
    finally:
        sending.cancel()
        writer.close()
        server.forget(visit)
        with suppress(asyncio.CancelledError, ConnectionError):
            await sending


def farewell(reason: bytes) -> bytes:
    """What tells an HTTP/2 client to go away, and why."""
    payload = b"\0\0\0\0" + HTTP_1_1_REQUIRED.to_bytes(4, "big") + reason
    return SETTINGS + len(payload).to_bytes(3, "big") + GO_AWAY + payload


async def _pass_on(visit: Visit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(READ_BYTES):
        visit.stay()
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
