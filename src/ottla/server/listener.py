"""A listening socket and the connections that came through it: how many there may be, and for how long."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.config.broker import BrokerSettings
from ottla.config.listener_security import client_auth, uses_sasl, uses_tls
from ottla.config.listener_settings import listener_settings
from ottla.config.settings import ConfigError
from ottla.metadata.image import BROKER_RESOURCE
from ottla.server.api import SERVED, SERVED_TO_CONTROLLERS
from ottla.server.connection import Connection, Scratch
from ottla.server.doors import GRPC, HTTP, KAFKA
from ottla.server.routes import Intercept, Routes
from ottla.storage.handles import files_for_connections

if TYPE_CHECKING:
    from ottla.runtime.node import Node
    from ottla.server.authentication.authenticator import Authenticator
    from ottla.server.doors import Doors
    from ottla.server.tls import Tls

logger = logging.getLogger("ottla.listener")

# The kernel's queue of connections that we have not accepted yet; a burst of clients after a restart.
BACKLOG: Final = 4096
# What asyncio is told instead. It takes the length of the queue for how often to try in one turn of the loop,
# and when the process can open no more files it fails, and says so with a traceback, that often.
ACCEPTED_AT_ONCE: Final = 1
# How often to look for idle connections, as a part of the time they may be idle.
IDLE_CHECKS: Final = 10
# What TLS calls the languages of the doors (ALPN), without which gRPC's clients hang up. A client that could
# speak either is a browser, so HTTP/1.1 comes first.
LANGUAGES: Final = ((HTTP, "http/1.1"), (GRPC, "h2"))
# How often to look whether certificates were replaced.
CERTIFICATES_SECONDS: Final = 2.0


class Listener:
    """Connections of one listener. All run on one loop, so counting needs no lock."""

    def __init__(
        self,
        name: str,
        node: Node,
        settings: BrokerSettings,
        intercept: Intercept | None = None,
        *,
        offered: frozenset[str] = frozenset({"kafka"}),
        doors: Doors | None = None,
        protocol: str = "PLAINTEXT",
        for_controllers: bool = False,
    ) -> None:
        """Raises ConfigError when the keys or the rules of a listener with TLS are no good."""
        self.name = name
        self.protocol = protocol
        self.offered = offered
        self.node = node
        self.loop = asyncio.get_running_loop()
        self.scratch = Scratch()
        self.routes = Routes(intercept, SERVED_TO_CONTROLLERS if for_controllers else SERVED)
        self._doors = doors
        self._files = files_for_connections()
        self.is_ready = False
        self.configure(settings)
        self._connections: set[Connection] = set()
        self._per_address: Counter[str] = Counter()
        self._addresses: dict[str, str] = {}
        self._server: asyncio.Server | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._certificates_timer: asyncio.TimerHandle | None = None
        self._all_gone: asyncio.Future[None] | None = None
        self._is_closing = False
        self._authenticator: Authenticator | None = None
        self._tls: Tls | None = None
        self._new: Callable[[], asyncio.BaseProtocol] = lambda: Connection(self)
        if uses_sasl(protocol):
            self._use_sasl()
        if uses_tls(protocol):
            self._use_tls()

    async def bind(self, host: str, port: int) -> None:
        """Take the address, so that it can be told to the cluster.

        Where HTTP is spoken it can be asked how the start is going; everybody else is refused until `serve`.
        """
        self._server = await self.loop.create_server(
            self._new,
            host or None,
            port,
            backlog=ACCEPTED_AT_ONCE,
            start_serving=HTTP in self.offered,
        )
        if self._server.is_serving():
            self._lengthen_queue()
        self._watch_idle()

    async def serve(self) -> None:
        assert self._server is not None
        self.is_ready = True
        self.configure(self._settings)
        await self._server.start_serving()
        self._lengthen_queue()

    def _lengthen_queue(self) -> None:
        assert self._server is not None
        for each in self._server.sockets:
            with socket.fromfd(each.fileno(), each.family, each.type) as same:
                same.listen(BACKLOG)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens; the port is the real one when port 0 asked for any."""
        assert self._server is not None
        name = self._server.sockets[0].getsockname()
        return name[0], name[1]

    def __len__(self) -> int:
        return len(self._connections)

    def configure(self, settings: BrokerSettings) -> None:
        """Take new limits; they hold for what happens from now on."""
        self._settings = listener_settings(settings, self.node.static_properties, self.name)
        # Where Kafka is not spoken, or not yet, no frame is small enough.
        speaks_kafka = self.is_ready and KAFKA in self.offered
        self.request_bytes_max = self._settings.socket_request_max_bytes if speaks_kafka else 0

    # --- security ------------------------------------------------------------------------

    def _use_sasl(self) -> None:
        from ottla.config.sasl import sasl_of
        from ottla.server.authentication.authenticator import Authenticator
        from ottla.server.authentication.gate import Gate

        sasl = sasl_of(self._settings, self.node.static_properties, self.name)
        authenticator = self._authenticator = Authenticator(sasl, self.node, self.routes)
        self._new = lambda: Gate(Connection(self), authenticator)

    def _use_tls(self) -> None:
        from ottla.server.arrival import Arrival
        from ottla.server.ssl_principal import PrincipalMapping
        from ottla.server.tls import Tls

        # Who has to show a certificate is said by the file alone, as what the certificate's name stands for.
        self._client_auth = client_auth(self._settings, self.node.static_properties, self.name, self.protocol)
        mapping = PrincipalMapping(self._settings.ssl_principal_mapping_rules)
        languages = tuple(name for door, name in LANGUAGES if door in self.offered)
        tls = self._tls = Tls(self.name, self._tls_settings, languages)
        self._new = lambda: Arrival(Connection(self), tls, mapping, self._authenticator)
        self._watch_certificates()

    def _tls_settings(self) -> tuple[BrokerSettings, str]:
        """What TLS is made of, with what was altered since the start."""
        node = self.node
        properties = {**node.static_properties, **node.image.config(BROKER_RESOURCE, str(node.node_id))}
        try:
            settings = listener_settings(node.settings, properties, self.name)
        except ConfigError:  # of a property that was altered to nonsense
            settings = listener_settings(node.settings, node.static_properties, self.name)
        return settings, self._client_auth

    def _watch_certificates(self) -> None:
        """Certificates are replaced while brokers run: their files are looked at again and again."""
        assert self._tls is not None
        self._tls.refresh()
        self._certificates_timer = self.loop.call_later(CERTIFICATES_SECONDS, self._watch_certificates)

    # --- other languages -----------------------------------------------------------------

    def open_door(self, connection: Connection, transport: asyncio.Transport, received: bytes) -> bool:
        """Whether a connection that does not speak Kafka was taken by another door (`doors`)."""
        return self._doors is not None and self._doors.open(self, connection, transport, received)

    # --- admission -----------------------------------------------------------------------

    def one_for_all(self, address: str) -> str:
        """The string for an address that all connections from there keep."""
        return self._addresses.get(address, address)

    def admit(self, connection: Connection) -> bool:
        """Whether a new connection may stay. Says so once in the log when it may not."""
        settings, address = self._settings, connection.address
        if self._is_closing:
            return False
        if len(self._connections) >= settings.max_connections:
            logger.warning("connection refused client=%s max.connections=%d", address, len(self._connections))
            return False
        if len(self._connections) >= self._files:
            logger.warning(
                "connection refused client=%s connections=%d: more need more open files (ulimit -n)",
                address,
                len(self._connections),
            )
            return False
        limit = settings.max_connections_per_ip
        if self._per_address[address] >= limit:
            logger.warning("connection refused client=%s max.connections.per.ip=%d", address, limit)
            return False
        self._connections.add(connection)
        self._per_address[address] += 1
        self._addresses[address] = address
        connection.last_active = self.loop.time()
        return True

    def forget(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            address = connection.address
            self._per_address[address] -= 1
            if not self._per_address[address]:
                del self._per_address[address], self._addresses[address]
        if self._all_gone is not None and not self._connections and not self._all_gone.done():
            self._all_gone.set_result(None)

    # --- idleness ------------------------------------------------------------------------

    def _watch_idle(self) -> None:
        """Close whoever has sent nothing for `connections.max.idle.ms`. One sweep serves all."""
        idle_max = self._settings.connections_max_idle_ms / 1000
        if idle_max > 0:
            before = self.loop.time() - idle_max
            for connection in [c for c in self._connections if c.last_active < before]:
                connection.expire()
        pause = min(max(idle_max / IDLE_CHECKS, 0.05), 60) if idle_max > 0 else 60
        self._idle_timer = self.loop.call_later(pause, self._watch_idle)

    # --- the end -------------------------------------------------------------------------

    async def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        for timer in (self._idle_timer, self._certificates_timer):
            if timer is not None:
                timer.cancel()
        if self._server is not None:
            # A server of asyncio's loses whom it is accepting when it is closed: it has to stop that first.
            for each in self._server.sockets:
                self.loop.remove_reader(each.fileno())
            await asyncio.sleep(0)
            self._server.close()
        # A connection that the kernel has just handed over is made known to us within two turns, and one that
        # we refuse then is gone after one more.
        for _ in range(4):
            await asyncio.sleep(0)
        for connection in list(self._connections):
            connection.abort()
        # Let the transports deliver their last call, so that nothing is left running when we return.
        if self._connections:
            self._all_gone = self.loop.create_future()
            await self._all_gone
        if self._server is not None:
            await self._server.wait_closed()
