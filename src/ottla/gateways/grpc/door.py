"""The gRPC door: an HTTP/2 connection is joined to the gRPC server of this process, byte for byte.

gRPC's library wants to own its socket, and the port is not ours to give away. So its server listens on a
private Unix socket, and what comes in here is passed on there and back. Each side is read only as fast as the
other one takes it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from ottla.gateways.grpc.refusal import refuse_calls
from ottla.gateways.grpc.server import GrpcServer
from ottla.server.doors import Visit

READ_BYTES: Final = 64 << 10
MISSING: Final = b"this broker has no gRPC: install it with pip install 'ottla[grpc]'"


async def serve(visit: Visit) -> None:
    server = visit.doors.keep(GrpcServer)
    try:
        reader, writer = await server.connect(visit)
    except ImportError:
        await refuse_calls(visit.reader, visit.writer, MISSING)
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


async def _pass_on(visit: Visit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(READ_BYTES):
        visit.stay()
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
