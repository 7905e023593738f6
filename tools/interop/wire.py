"""What a client says to a broker and hears from it: a relay that the broker advertises as its address.

So no connection goes past it, and a judge can ask which requests were sent, in which versions, and how they
were answered, whatever the client says of itself. It works alike for Ottla and for Apache Kafka. While it is
`aged`, it answers ApiVersions as a Kafka 2.1 would, so that clients have to speak the protocol of that time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tools.interop.aged import API_VERSIONS, as_kafka_2_1
from tools.interop.witness import CLIENT_ID

SIZE = struct.Struct(">i")
HEADER = struct.Struct(">hhih")  # api key, version, correlation id, length of the client id
HOST = "127.0.0.1"
AGELESS = (CLIENT_ID.decode(),)
"""Client ids to which the broker is as new as it is."""


@dataclass
class Exchange:
    """One request as it was sent, and its answer when there was one; both without their size."""

    connection: int
    client_id: str
    api_key: int
    version: int
    correlation_id: int
    request: bytes
    response: bytes = b""


class Wire:
    """`with Wire(port) as wire:` relays from `wire.bootstrap` to the broker at that port."""

    def __init__(self, broker_port: int) -> None:
        self.broker_port = broker_port
        self.port = 0
        self.aged = False
        self.exchanges: list[Exchange] = []
        self._connections = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def begin(self, *, aged: bool = False) -> None:
        """Forgets what it heard."""
        self.exchanges, self.aged = [], aged

    def __enter__(self) -> Self:
        self._thread.start()
        serving = asyncio.start_server(self._relay, HOST, 0)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(self._connections)
        waiting: dict[int, Exchange] = {}
        with contextlib.suppress(OSError, asyncio.CancelledError), contextlib.closing(writer):
            from_broker, to_broker = await asyncio.open_connection(HOST, self.broker_port)
            with contextlib.closing(to_broker):
                ways = [
                    asyncio.create_task(self._requests(number, reader, to_broker, waiting)),
                    asyncio.create_task(self._answers(from_broker, writer, waiting)),
                ]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(
        self,
        connection: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        waiting: dict[int, Exchange],
    ) -> None:
        while True:
            frame = await read_frame(reader)
            exchange = parsed(connection, frame)
            waiting[exchange.correlation_id] = exchange
            self.exchanges.append(exchange)
            await write_frame(writer, frame)

    async def _answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, waiting: dict[int, Exchange]
    ) -> None:
        while True:
            frame = await read_frame(reader)
            exchange = waiting.pop(SIZE.unpack_from(frame)[0], None)
            if exchange is not None:
                if self.aged and exchange.api_key == API_VERSIONS and exchange.client_id not in AGELESS:
                    frame = as_kafka_2_1(exchange.version, frame)
                exchange.response = frame
            await write_frame(writer, frame)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Raises IncompleteReadError at the end of the connection."""
    (size,) = SIZE.unpack(await reader.readexactly(SIZE.size))
    return await reader.readexactly(size)


async def write_frame(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(SIZE.pack(len(frame)) + frame)
    await writer.drain()


def parsed(connection: int, frame: bytes) -> Exchange:
    key, version, correlation_id, length = HEADER.unpack_from(frame)
    client_id = frame[HEADER.size : HEADER.size + max(length, 0)].decode(errors="replace")
    return Exchange(connection, client_id, key, version, correlation_id, frame)
