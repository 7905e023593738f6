"""A whole broker: the node and its listeners, started and stopped together.

`Broker` is what `ottla serve` runs and what a program embeds:

    async with Broker(data_dir="data", port=0) as broker:
        print(broker.bootstrap)

    with Broker() as broker:        # in a thread of its own, on a temporary directory
        print(broker.bootstrap)
"""

from __future__ import annotations

import asyncio
import errno
import logging
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ottla.client.errors import BadSecurity
from ottla.config.broker import BrokerSettings, development_defaults
from ottla.config.listeners import KAFKA, Listeners, SocketAddress, check_static, offered_doors
from ottla.config.settings import ConfigError
from ottla.protocol.errors import KafkaError
from ottla.protocol.stored.metadata import UserScramCredentialRecord
from ottla.protocol.wire import MalformedFrame
from ottla.runtime.node import Node
from ottla.runtime.snapshots import DamagedSnapshot
from ottla.server.doors import Doors
from ottla.server.listener import Listener
from ottla.server.routes import Intercept
from ottla.storage.lock import DirectoryInUse
from ottla.storage.meta_properties import MetaPropertiesError

logger = logging.getLogger("ottla.broker")


class StartupError(Exception):
    """The broker cannot start. The message is one line that says why and what to do."""


class Broker:
    """One broker of a cluster; by default a cluster of its own.

    `properties` are Kafka's (`server.properties`); `data_dir`, `host` and `port` are short for `log.dirs` and
    `listeners`. Without a data directory the broker lives in a temporary one that goes with it. `intercept`
    may stand between requests and their handlers, which is how `ottla.testing` makes a broker misbehave on
    purpose. `first_users` can log in to a cluster that is new; one that is there already has its own.
    """

    def __init__(
        self,
        *,
        data_dir: str | Path | None = None,
        host: str = "127.0.0.1",
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        intercept: Intercept | None = None,
        first_users: Sequence[UserScramCredentialRecord] = (),
    ) -> None:
        self._properties = dict(properties or {})
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if data_dir is not None:
            self._properties["log.dirs"] = str(data_dir)
        if port is not None or "listeners" not in self._properties:
            self._properties["listeners"] = f"PLAINTEXT://{host}:{port or 0}"
        self._intercept = intercept
        self._first_users = first_users
        self._node: Node | None = None
        self._listeners: list[Listener] = []
        self._controller_listeners: list[Listener] = []
        self._doors: Doors | None = None
        self._thread: _Thread | None = None

    # --- what a caller asks --------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """What a client takes as `bootstrap.servers`. Raises RuntimeError while the broker is not running.

        These are the listeners of one security protocol, since a client speaks no other: of PLAINTEXT if
        there is such a listener, else that of the first.
        """
        if self._node is None:
            raise RuntimeError("the broker is not running, so it has no address: use it in a `with` block")
        protocol = self.security_protocol
        found = [listener.address for listener in self._listeners if listener.protocol == protocol]
        return ",".join(f"{_bracketed(host)}:{port}" for host, port in found)

    @property
    def security_protocol(self) -> str:
        """How a client has to speak to `bootstrap`."""
        protocols = [listener.protocol for listener in self._listeners]
        return "PLAINTEXT" if "PLAINTEXT" in protocols else protocols[0]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [listener.address for listener in self._listeners]

    @property
    def controller_addresses(self) -> list[tuple[str, int]]:
        """Where other nodes reach this one as a controller. A node that is nothing else has no clients."""
        return [listener.address for listener in self._controller_listeners]

    @property
    def data_dirs(self) -> list[str]:
        assert self._node is not None, "the broker is not running"
        return [directory.path for directory in self._node.log_directories]

    @property
    def node(self) -> Node:
        assert self._node is not None, "the broker is not running"
        return self._node

    # --- start and stop ------------------------------------------------------------------

    async def start(self) -> None:
        """Everything up, or nothing left behind and an error that says why."""
        try:
            settings, listeners = self._settings()
            self._node = Node(self._properties, settings, listeners, first_users=self._first_users)
            self._doors = Doors(self._node, self._listeners)
            self._node.channels.check()
            # The ports first: when one is taken, no directory has been touched.
            for address in listeners.clients:
                self._listeners.append(await self._bind(address, settings))
            for address in listeners.controllers:
                self._controller_listeners.append(await self._bind(address, settings, for_controllers=True))
            self._node.listeners = listeners._replace(
                controllers=tuple(
                    address._replace(port=listener.address[1])
                    for address, listener in zip(
                        listeners.controllers, self._controller_listeners, strict=True
                    )
                )
            )
            await self._node.load(self._controller_listeners)
            await self._node.join(self.addresses)
            for listener in self._listeners:
                await listener.serve()
        except (MetaPropertiesError, DamagedSnapshot, MalformedFrame, BadSecurity) as error:
            await self.stop()
            raise StartupError(str(error)) from error
        except KafkaError as error:
            await self.stop()
            raise StartupError(f"the cluster does not take this node: {error}") from error
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Hand over what others can lead, stop taking requests, then flush and close the logs."""
        if self._node is not None and self._node.has_company:
            await self._node.leave()
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            await listener.close()
        if self._doors is not None:
            await self._doors.close()
            self._doors = None
        node, self._node = self._node, None
        try:
            if node is not None:
                await node.stop()
        finally:
            controllers, self._controller_listeners = self._controller_listeners, []
            for listener in controllers:
                await listener.close()
            if self._temporary is not None:
                self._temporary.cleanup()
                self._temporary = None
                del self._properties["log.dirs"]  # the next start makes another

    async def died(self) -> str:
        """Wait until the broker can serve nothing any more, which a working one never does; answers why."""
        return await self.node.died()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        self._thread = _Thread(self)
        self._thread.start_and_wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        self._thread.stop_and_wait()
        self._thread = None

    # --- the parts -----------------------------------------------------------------------

    def _settings(self) -> tuple[BrokerSettings, Listeners]:
        if "log.dirs" not in self._properties and "log.dir" not in self._properties:
            self._temporary = tempfile.TemporaryDirectory(prefix="ottla-")
            self._properties["log.dirs"] = self._temporary.name
        self._properties = {**development_defaults(self._properties), **self._properties}
        settings = check_static(self._properties)
        return settings, Listeners.parse(settings)

    async def _bind(
        self, address: SocketAddress, settings: BrokerSettings, *, for_controllers: bool = False
    ) -> Listener:
        listener = Listener(
            address.name,
            self.node,
            settings,
            self._intercept,
            offered=frozenset({KAFKA}) if for_controllers else offered_doors(settings, address),
            doors=self._doors,
            protocol=address.protocol,
            for_controllers=for_controllers,
        )
        try:
            await listener.bind(address.host, address.port)
        except OSError as error:
            await listener.close()
            if error.errno == errno.EADDRINUSE:
                raise StartupError(
                    f"port {address.port} on {address.host or 'all addresses'} is in use: stop what listens "
                    "there, or choose another with --port"
                ) from error
            raise StartupError(
                f"cannot listen on {address.host}:{address.port}: {error.strerror or error}"
            ) from error
        return listener


class _Thread:
    """A loop in a thread of its own, for programs that have none."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._main, name="ottla-broker", daemon=True)

    def start_and_wait(self) -> None:
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def stop_and_wait(self) -> None:
        assert self._loop is not None and self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _main(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with self._broker:
            self._started.set()
            await self._stop.wait()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where there is one, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


__all__ = ["Broker", "ConfigError", "DirectoryInUse", "StartupError", "new_event_loop"]
