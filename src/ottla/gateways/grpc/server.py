"""The gRPC server behind the door: grpcio's, on a Unix socket that only this process uses."""

from __future__ import annotations

import asyncio
import itertools
import socket
import tempfile
from pathlib import Path
from typing import Any, Final

from ottla.gateways.session import Session
from ottla.protocol.errors import UnknownServerError
from ottla.server.doors import UNREAD_MAX, UNSENT_MAX, Doors, Visit

# A message of 1 MiB, which is what a broker takes by default, and what goes with it.
MESSAGE_MAX: Final = (1 << 20) + (16 << 10)
METADATA_MAX: Final = 16 << 10
STREAMS_MAX: Final = 100
CALLS_MAX: Final = 10_000
# A client that follows a quiet topic shows that it is still there by answering a ping.
KEEPALIVE_MS: Final = 120_000
# One that pings more often than this is hung up on.
PING_INTERVAL_MS: Final = 10_000

OPTIONS: Final = (
    ("grpc.max_receive_message_length", MESSAGE_MAX),
    ("grpc.max_metadata_size", METADATA_MAX),
    ("grpc.absolute_max_metadata_size", METADATA_MAX),
    ("grpc.max_concurrent_streams", STREAMS_MAX),
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_MS),
    ("grpc.so_reuseport", 0),
)


class GrpcServer:
    """Started by the first connection, stopped with the broker."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._starting = asyncio.Lock()
        self._server: Any = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._numbers = itertools.count()
        self._visits: dict[str, Visit] = {}
        doors.at_close(self._stop)

    async def connect(self, visit: Visit) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the server for one visit. Raises ImportError where grpcio is not installed."""
        async with self._starting:
            if self._server is None:
                await self._start()
        assert self._directory is not None
        # Our end has a name of its own, which is what the server sees as the peer of a call.
        own = f"{self._directory.name}/{next(self._numbers)}"
        connection = _socket_named(own)
        try:
            await asyncio.get_running_loop().sock_connect(connection, self._path)
            reader, writer = await asyncio.open_unix_connection(sock=connection, limit=UNREAD_MAX)
        except BaseException:
            connection.close()
            raise
        writer.transport.set_write_buffer_limits(high=UNSENT_MAX)
        self._visits[f"unix:{own}"] = visit
        return reader, writer

    def forget(self, visit: Visit) -> None:
        for peer in [peer for peer, known in self._visits.items() if known is visit]:
            del self._visits[peer]

    @property
    def _path(self) -> str:
        assert self._directory is not None
        return f"{self._directory.name}/server"

    async def _start(self) -> None:
        # In a thread, since loading grpcio takes a while, in which the loop has other things to do.
        service, reflection, aio = await asyncio.to_thread(_load)
        server = aio.server(options=OPTIONS, maximum_concurrent_rpcs=CALLS_MAX)
        server.add_generic_rpc_handlers((service.Service(self._session_of).handlers(),))
        reflection.enable_server_reflection(
            (service.messages.SERVICE, reflection.SERVICE_NAME), server, service.messages.pool()
        )
        self._directory = tempfile.TemporaryDirectory(prefix="ottla-grpc-")  # for this user alone
        server.add_insecure_port(f"unix:{self._path}")
        await server.start()
        self._server = server

    def _session_of(self, peer: str) -> Session:
        visit = self._visits.get(peer)
        if visit is None:
            raise UnknownServerError("the connection of this call is gone")
        return Session(self._doors, visit.local)

    async def _stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
        if self._directory is not None:
            self._directory.cleanup()


def _socket_named(path: str) -> socket.socket:
    """A socket whose peers know it by this name; there is no file to find it by."""
    named = socket.socket(socket.AF_UNIX)
    try:
        named.bind(path)
        Path(path).unlink()
        named.setblocking(False)
    except BaseException:
        named.close()
        raise
    return named


def _load() -> tuple[Any, Any, Any]:
    from grpc import aio
    from grpc_reflection.v1alpha import reflection

    from ottla.gateways.grpc import service

    return service, reflection, aio
