"""Connections to the other nodes of the cluster, made when they are first used.

There is one for each node and purpose, so that a long poll does not hold up a heartbeat. Nothing here is
repeated: whoever asks hears a `ClientError` and knows best what to do about it. But a node that could not be
reached a moment ago is not tried again at once, however often it is asked for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from ottla.client.addresses import Address
from ottla.client.errors import ClientError, Disconnected, NoAnswer, Unreachable, UnsupportedRequest
from ottla.config.broker import BrokerSettings
from ottla.config.listeners import Listeners
from ottla.config.roles import is_alone
from ottla.metadata.image import Image
from ottla.protocol.apis import api
from ottla.raft.membership import Address as ControllerAddress

if TYPE_CHECKING:
    from ottla.client.connection import Connection
    from ottla.client.security import Security

R = TypeVar("R")

CHANNELS_MAX: Final = 1024
"""More than a cluster has nodes and purposes. Beyond this the channel that was not used for longest goes."""

CONNECT_SECONDS: Final = 10.0
BACKOFF_SECONDS: Final = 0.05
"""After a failure nobody connects for this long, and for up to as long again."""


class Home(Protocol):
    """What the node that speaks has to offer."""

    @property
    def node_id(self) -> int: ...
    @property
    def settings(self) -> BrokerSettings: ...
    @property
    def static_properties(self) -> Mapping[str, str]: ...
    @property
    def listeners(self) -> Listeners: ...
    @property
    def image(self) -> Image: ...


class _Key(NamedTuple):
    peer: int | tuple[str, int]
    purpose: str


class Channels:
    """Connections to the other nodes, made when first used."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._channels: dict[_Key, _Channel] = {}
        self._is_closed = False

    def check(self) -> None:
        """Raise `BadSecurity` now if the settings do not say how to speak to the others."""
        home = self._home
        if is_alone(home.settings):
            return
        names = [(name.upper(), True) for name in home.settings.controller_listener_names[:1]]
        if home.listeners.clients:
            names.append((home.listeners.inter_broker, False))
        for name, to_controller in names:
            _Endpoint(name, "", 0, to_controller).security(home).ssl_context()

    async def ask_broker(
        self,
        broker_id: int,
        request: Any,
        response: type[R],
        *,
        purpose: str = "",
        within: float = 30.0,
        version: int | None = None,
    ) -> R:
        """A broker's answer, over the listener that brokers use among themselves. Raises `ClientError`."""
        listener = self._home.listeners.inter_broker
        broker = self._home.image.brokers.get(broker_id)
        if broker is None:
            raise Unreachable(f"broker {broker_id} is not registered")
        endpoint = broker.endpoint(listener)
        if endpoint is None:
            raise Unreachable(f"broker {broker_id} has no listener {listener}")
        channel = self._channel(_Key(broker_id, purpose))
        to = _Endpoint(listener, endpoint.host, endpoint.port, to_controller=False)
        return await self._ask(channel, to, request, response, within, version)

    async def ask_controller(
        self,
        at: ControllerAddress,
        request: Any,
        response: type[R],
        *,
        purpose: str = "",
        within: float,
        version: int | None = None,
    ) -> R:
        """The answer of the controller that listens there. Raises `ClientError`."""
        channel = self._channel(_Key((at.host, at.port), purpose))
        to = _Endpoint(at.name.upper(), at.host, at.port, to_controller=True)
        return await self._ask(channel, to, request, response, within, version)

    async def close(self) -> None:
        """Hang up. Whoever waits for an answer hears that the connection was closed."""
        self._is_closed = True
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        await asyncio.sleep(0)  # for those who waited

    def _channel(self, key: _Key) -> _Channel:
        if self._is_closed:
            raise Disconnected("this node is stopping")
        channel = self._channels.pop(key, None) or _Channel(key.purpose)
        self._channels[key] = channel  # the last is the one used last
        if len(self._channels) > CHANNELS_MAX:
            self._channels.pop(next(iter(self._channels))).retire()
        return channel

    async def _ask(
        self,
        channel: _Channel,
        to: _Endpoint,
        request: Any,
        response: type[R],
        within: float,
        version: int | None,
    ) -> R:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        connection = channel.ready(to)
        if connection is None:
            try:
                async with asyncio.timeout(within):
                    connection = await channel.connected(to, self._home, min(within, CONNECT_SECONDS))
            except TimeoutError:
                raise NoAnswer(f"{to.host}:{to.port} could not be asked within {within:g} s") from None
        if version is not None and connection.version_of(type(request), version) != version:
            raise UnsupportedRequest(f"{connection} has no {api(request.api_key).name} in version {version}")
        return await connection.ask(request, response, within=deadline - loop.time(), version=version)


class _Endpoint(NamedTuple):
    listener: str
    host: str
    port: int
    to_controller: bool

    def security(self, home: Home) -> Security:
        from ottla.runtime.channel_security import channel_security

        protocol = home.listeners.protocols.get(self.listener, "PLAINTEXT")
        return channel_security(
            home.settings,
            home.static_properties,
            self.listener,
            protocol,
            to_controller=self.to_controller,
        )


class _Channel:
    """The connection to one node for one purpose, and another one when it breaks."""

    def __init__(self, purpose: str) -> None:
        self._purpose = purpose
        self._connection: Connection | None = None
        self._to: _Endpoint | None = None
        self._opening = asyncio.Lock()
        self._failure: ClientError | None = None
        self._not_before = 0.0
        self._is_closed = False

    def ready(self, to: _Endpoint) -> Connection | None:
        """The connection, if there is one that can be used."""
        connection = self._connection
        if connection is None:
            return None
        if connection.is_open and not connection.is_ending and self._to == to:
            return connection
        connection.retire()
        self._connection = None
        return None

    async def connected(self, to: _Endpoint, home: Home, within: float) -> Connection:
        """A connection, made unless somebody else has made it meanwhile."""
        async with self._opening:
            connection = self.ready(to)
            if connection is None:
                self._check_backoff(to)
                connection = await self._open(to, home, within)
            return connection

    async def _open(self, to: _Endpoint, home: Home, within: float) -> Connection:
        from ottla.client.connection import Connection  # a node that is alone never needs it

        client_id = f"node-{home.node_id}-{self._purpose}".rstrip("-")
        self._to = to
        try:
            connection = await Connection.open(
                to.host, to.port, client_id=client_id, security=to.security(home), within=within
            )
        except ClientError as error:
            self._failure = error
            pause = BACKOFF_SECONDS * (1 + random.random())
            self._not_before = asyncio.get_running_loop().time() + pause
            raise
        self._failure = None
        if self._is_closed:
            connection.close()
            raise Disconnected(f"the connection to {Address(to.host, to.port)} was closed")
        self._connection = connection
        return connection

    def _check_backoff(self, to: _Endpoint) -> None:
        failure = self._failure
        if failure is not None and self._to == to and asyncio.get_running_loop().time() < self._not_before:
            raise type(failure)(*failure.args)

    def retire(self) -> None:
        """Close when whoever waits has been answered."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.retire()

    def close(self) -> None:
        self._is_closed = True
        if self._connection is not None:
            self._connection.close()
