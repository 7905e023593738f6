"""The links between nodes, each of which can be cut or slowed down in either direction.

Every listener that nodes use among themselves is reached through a relay here (`TestCluster(route=...)`).
Whose connection it is, the relay finds out from the sockets of the nodes' processes, so nothing about the
nodes has to change. What is cut is silent, as when a cable is pulled: connections stay open, and what was on
its way arrives late, when the link is whole again.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

import psutil

CHUNK: Final = 64 * 1024
# As much as a relay keeps for a link that is cut; then the sender's own buffers fill.
START_SECONDS: Final = 10.0


class Links:
    """`with Links() as links: TestCluster(route=links.route)`; `links.pids` are set before the start."""

    def __init__(self) -> None:
        self.pids: Callable[[], Mapping[int, int]] = dict
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._cut: set[tuple[int, int]] = set()
        self._delays: dict[tuple[int, int], float] = {}
        self._changed = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()

    # --- what a scenario does ------------------------------------------------------------

    def cut(self, source: int, target: int) -> None:
        """Nothing that the source says reaches the target; the other direction stays."""
        self._change(lambda: self._cut.add((source, target)))

    def part(self, one: int, other: int) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def isolate(self, node: int, others: list[int]) -> None:
        for other in others:
            if other != node:
                self.part(node, other)

    def slow(self, source: int, target: int, seconds: float) -> None:
        self._change(lambda: self._delays.__setitem__((source, target), seconds))

    def heal(self) -> None:
        def whole() -> None:
            self._cut.clear()
            self._delays.clear()

        self._change(whole)

    def _change(self, act: Callable[[], Any]) -> None:
        def change() -> None:
            act()
            self._changed.set()
            self._changed = asyncio.Event()

        self._loop.call_soon_threadsafe(change)

    # --- relaying ------------------------------------------------------------------------

    def route(self, node: int, listener: str, port: int) -> int:
        """The port at which the others reach this listener of the node."""

        async def serve() -> int:
            def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = self._loop.create_task(self._relay(node, port, reader, writer))
                self._connections.add(task)
                task.add_done_callback(self._connections.discard)

            server = await asyncio.start_server(accept, "127.0.0.1", 0)
            self._servers.append(server)
            return int(server.sockets[0].getsockname()[1])

        return asyncio.run_coroutine_threadsafe(serve(), self._loop).result(START_SECONDS)

    async def _relay(
        self, node: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        far: asyncio.StreamWriter | None = None
        try:
            source = await asyncio.to_thread(self._owner, writer.get_extra_info("peername")[1])
            await self._passable(source, node)
            answers, far = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, far, source, node))
                both.create_task(self._pump(answers, writer, node, source))
        except (OSError, ExceptionGroup):
            pass  # one of the two is gone, and the other hears of it now
        finally:
            for each in (writer, far):
                if each is not None:
                    each.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: int, target: int
    ) -> None:
        while data := await reader.read(CHUNK):
            if delay := self._delays.get((source, target)):
                await asyncio.sleep(delay)
            await self._passable(source, target)
            writer.write(data)
            await writer.drain()
        await self._passable(source, target)  # a node that goes is not heard to go across a cut
        raise ConnectionResetError

    async def _passable(self, source: int, target: int) -> None:
        while (source, target) in self._cut:
            await self._changed.wait()

    def _owner(self, port: int) -> int:
        """The node whose process has a socket with this local port; 0 if it is nobody's."""
        for id, pid in self.pids().items():
            with contextlib.suppress(psutil.Error):
                for each in psutil.Process(pid).net_connections(kind="tcp"):
                    if each.laddr and each.laddr.port == port:
                        return id
        return 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async def end() -> None:
            for server in self._servers:
                server.close()
            for task in list(self._connections):
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(START_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
