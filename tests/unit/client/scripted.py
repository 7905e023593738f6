"""A broker that says what a test tells it to, to see how the client takes it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from ottla.protocol.codec import encode
from ottla.protocol.headers import RequestHeader, read_request_header, response_head
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

# From the header of a request to the frame that answers it; None to say nothing.
Script = Callable[[RequestHeader], Awaitable[bytes | None]]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

API_VERSIONS, METADATA = 18, 3


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    """A server of this; yields its port. Its connections are closed, and seen to be closed, at the end."""
    writers: list[asyncio.StreamWriter] = []
    served: list[asyncio.Task[None] | None] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        served.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await asyncio.gather(*(each for each in served if each is not None))
        for writer in writers:
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def scripted_broker(script: Script) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            header, _ = read_request_header(await reader.readexactly(size), 0, size)
            answer = await script(header)
            if answer is not None:
                writer.write(struct.pack(">i", len(answer)) + answer)

    async with listening(serve) as port:
        yield port


def answer(header: RequestHeader, message: object) -> bytes:
    key, version = header.request_api_key, header.request_api_version
    return response_head(key, version, header.correlation_id) + encode(message, version)


def serving(*ranges: tuple[int, int, int]) -> ApiVersionsResponse:
    """The answer of a broker that has these APIs: key, first version, last version."""
    keys = [ApiVersion(api_key=key, min_version=first, max_version=last) for key, first, last in ranges]
    return ApiVersionsResponse(api_keys=keys)
