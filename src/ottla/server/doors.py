"""The other doors of a port: how a connection that does not speak Kafka gets to one that speaks its language.

A Kafka frame starts with its size. Letters, read as a size, are half a gigabyte and more, which
`socket.request.max.bytes` refuses; so the Kafka path looks for other doors only where it would have closed
the connection, and pays nothing for them.

The doors themselves are in `ottla.gateways`, a layer above this one, which nothing here may import: they are
found by name when somebody knocks, as `routes` finds handlers. A door is a module with

    async def serve(visit: Visit) -> None

The connection stays with its listener, where it counts and where it is closed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.server.local import Local

if TYPE_CHECKING:
    from ottla.runtime.node import Node
    from ottla.server.connection import Connection
    from ottla.server.listener import Listener

logger = logging.getLogger("ottla.doors")

KAFKA: Final = "kafka"
GRPC: Final = "grpc"
HTTP: Final = "http"
TEXT: Final = "text"

MODULES: Final = {
    GRPC: "ottla.gateways.grpc.door",
    HTTP: "ottla.gateways.http",
    TEXT: "ottla.gateways.text",
}

HTTP_METHODS: Final = frozenset(
    (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"TRAC", b"CONN")
)
HTTP_2_PREFACE: Final = b"PRI "
# Received and not yet read by the door: above twice this many bytes the socket is not read.
UNREAD_MAX: Final = 64 << 10
# Sent by the door and not yet taken by the client: above this the door waits.
UNSENT_MAX: Final = 256 << 10

T = TypeVar("T")


def door_for(first: bytes) -> str | None:
    """The door that a connection's first four bytes ask for."""
    if first in HTTP_METHODS:
        return HTTP
    if first == HTTP_2_PREFACE:
        return GRPC
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in first):
        return TEXT
    return None


class Doors:
    """The doors of one broker, and what they keep between visits."""

    def __init__(self, node: Node, listeners: Sequence[Listener]) -> None:
        self.node = node
        self.listeners = listeners
        self._kept: dict[Any, Any] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._parts = AsyncExitStack()

    def keep(self, make: Callable[[Doors], T]) -> T:
        """The one `make(doors)` of this broker, made when it is first asked for."""
        if make not in self._kept:
            self._kept[make] = make(self)
        kept: T = self._kept[make]
        return kept

    def at_close(self, close: Callable[[], Awaitable[None]]) -> None:
        self._parts.push_async_callback(close)

    async def close(self) -> None:
        """After the listeners, whose closing ends every visit."""
        if self._serving:
            await asyncio.wait(self._serving)
        await self._parts.aclose()

    def open(
        self, listener: Listener, connection: Connection, transport: asyncio.Transport, received: bytes
    ) -> bool:
        """Hand a connection over if its first bytes ask for a door that its listener has."""
        name = door_for(received[:4])
        if name is None or name not in listener.offered:
            return False
        if name != HTTP and not listener.is_ready:
            return False
        serving = Visit(self, name, listener, connection, transport).begin(received)
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        return True


class Visit(asyncio.StreamReaderProtocol):
    """One connection at a door: streams to read and write, and `local` to ask the broker."""

    def __init__(
        self,
        doors: Doors,
        name: str,
        listener: Listener,
        connection: Connection,
        transport: asyncio.Transport,
    ) -> None:
        loop = listener.loop
        self.reader = asyncio.StreamReader(limit=UNREAD_MAX, loop=loop)
        super().__init__(self.reader, loop=loop)
        self.doors = doors
        self.name = name
        self.offered = listener.offered
        self.listener = listener
        self.connection = connection
        self._client = transport
        self.writer = asyncio.StreamWriter(transport, self, self.reader, loop)
        self.local = Local(doors.node, listener.routes, connection, name)
        self._serving_loop = loop
        self._serving: asyncio.Task[None] | None = None

    def begin(self, received: bytes) -> asyncio.Task[None]:
        transport = self._client
        # Reading stops for the change: the loop has to look again at what kind of protocol it feeds.
        transport.pause_reading()
        transport.set_protocol(self)
        transport.set_write_buffer_limits(high=UNSENT_MAX)
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.connection_made(transport)
        transport.resume_reading()
        self.reader.feed_data(received)  # which pauses again if this is more than a door takes at once
        self._serving = self._serving_loop.create_task(self._serve())
        return self._serving

    def stay(self) -> None:
        """Not idle, though nothing was received: the client is being sent what it asked for."""
        self.connection.last_active = self._serving_loop.time()

    def data_received(self, data: bytes) -> None:
        self.stay()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.connection.connection_lost(exc)
        if self._serving is not None:
            self._serving.cancel()

    async def _serve(self) -> None:
        try:
            await import_module(MODULES[self.name]).serve(self)
            await self.writer.drain()
        except (ConnectionError, TimeoutError):
            pass  # the client went away, which is its right, or its network did
        except Exception:
            # A door's mistake costs the one visit.
            logger.exception("door failed door=%s client=%s", self.name, self.connection.client_host)
        finally:
            self.writer.close()
