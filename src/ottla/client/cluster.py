"""A cluster as its clients see it: who leads what, who coordinates whom, and how to ask them.

Retries live here. An error that passes by itself (an election, a broker that restarts) is waited out with
growing pauses until `timeout` is over; everything else is raised at once. So is a first connection that
fails: somebody who mistyped an address wants to know now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ottla.client.addresses import Address, parse_bootstrap
from ottla.client.connection import Connection
from ottla.client.errors import ClientError, Disconnected, Unreachable, check, is_retriable
from ottla.client.security import PLAINTEXT, Security
from ottla.client.topology import (
    Broker,
    Topic,
    brokers_of,
    coordinator_of,
    coordinator_request,
    topic_of,
)
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.errors import KafkaError, LeaderNotAvailable, UnknownTopicOrPartition
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

T = TypeVar("T")
Response = TypeVar("Response")

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
CREATION_SECONDS: Final = 5.0
"""How long a topic that a broker creates on demand may take to appear; a broker that does not create any
answers just the same, so this is also how long a mistyped name is waited for."""


class Purpose(Enum):
    """A broker answers in the order of the requests, and holds a fetch or a join for seconds. What should not
    wait behind those has a connection of its own."""

    REQUESTS = "requests"
    FETCH = "fetch"
    COORDINATOR = "coordinator"


class Cluster:
    """`async with Cluster("localhost:9092") as cluster`: connections are made when needed and kept."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "ottla",
        security: Security = PLAINTEXT,
        timeout: float = 30.0,
    ) -> None:
        self.bootstrap = parse_bootstrap(bootstrap)
        self.client_id, self.security, self.timeout = client_id, security, timeout
        self.id: str | None = None
        self.controller_id = -1
        self.brokers: dict[int, Broker] = {}
        self._is_outdated = False
        self._topics: dict[str, Topic] = {}
        self._names: dict[Uuid, str] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._connections: dict[tuple[Address, Purpose], Connection] = {}
        self._connecting: dict[tuple[Address, Purpose], asyncio.Lock] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # --- connections ---------------------------------------------------------------------

    async def any(self) -> Connection:
        """A connection to whichever broker answers."""
        for (_, purpose), connection in self._connections.items():
            if purpose is Purpose.REQUESTS and connection.is_open and not connection.is_ending:
                return connection
        addresses = [*self.bootstrap, *(Address(each.host, each.port) for each in self.brokers.values())]
        refused: Unreachable | None = None
        for address in dict.fromkeys(addresses):
            try:
                return await self._connect(address, Purpose.REQUESTS)
            except Unreachable as error:
                refused = refused or error
        assert refused is not None
        raise refused

    async def broker(self, broker_id: int, purpose: Purpose = Purpose.REQUESTS) -> Connection:
        """A connection to this broker."""
        if broker_id not in self.brokers or self._is_outdated:
            await self.refresh()
        found = self.brokers.get(broker_id)
        if found is None:
            known = ", ".join(map(str, sorted(self.brokers)))
            raise Unreachable(f"there is no broker {broker_id} in the cluster, only {known}")
        return await self._connect(Address(found.host, found.port), purpose)

    async def _connect(self, address: Address, purpose: Purpose) -> Connection:
        # One lock per connection, so that those who need it at once share it.
        async with self._connecting.setdefault((address, purpose), asyncio.Lock()):
            connection = self._connections.get((address, purpose))
            if connection is not None and connection.is_ending:
                connection.retire()
                connection = None
            if connection is None or not connection.is_open:
                connection = await Connection.open(
                    address.host,
                    address.port,
                    client_id=self.client_id,
                    security=self.security,
                    within=min(self.timeout, 10.0),
                )
                self._connections[address, purpose] = connection
            return connection

    # --- asking --------------------------------------------------------------------------

    async def persist(
        self,
        attempt: Callable[[], Awaitable[T]],
        *,
        final: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> T:
        """What `attempt` answers, tried again after errors that pass, but not after `final` ones."""
        clock = asyncio.get_running_loop().time
        deadline, pause = clock() + self.timeout, FIRST_PAUSE
        while True:
            try:
                return await attempt()
            except (KafkaError, ClientError) as error:
                # A broker that does not answer may be at another address by now.
                self._is_outdated = isinstance(error, ClientError)
                known = bool(self.brokers)  # else there has never been a connection
                if (
                    not is_retriable(error)
                    or isinstance(error, final)
                    or not known
                    or clock() + pause > deadline
                ):
                    raise
            self.forget()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def ask(
        self, request: Any, response: type[Response], *, broker: int | None = None, at_most: int | None = None
    ) -> Response:
        """Ask one broker, or any, trying again when the connection breaks. Errors inside the answer are the
        caller's."""

        async def once() -> Response:
            connection = await (self.any() if broker is None else self.broker(broker))
            return await connection.ask(request, response, within=self.timeout, at_most=at_most)

        if not self.brokers:
            await self.refresh()
        return await self.persist(once)

    async def ask_coordinator(
        self,
        kind: int,
        key: str,
        request: Any,
        response: type[Response],
        *,
        at_most: int | None = None,
        within: float | None = None,
    ) -> Response:
        """Ask the coordinator of a group or transaction, once. If that fails it is looked up anew."""
        connection = await self.broker(await self.coordinator(kind, key), Purpose.COORDINATOR)
        try:
            return await connection.ask(request, response, within=within or self.timeout, at_most=at_most)
        except ClientError:
            self.lost_coordinator(kind, key)
            raise

    # --- what the cluster looks like -----------------------------------------------------

    def forget(self) -> None:
        """Leaders and coordinators may have moved: look them up when they are next needed."""
        self._topics.clear()
        self._coordinators.clear()

    async def refresh(
        self, topics: Iterable[str] = (), *, create: bool = False
    ) -> list[MetadataResponseTopic]:
        """Learn the brokers, and these topics; their errors are left to the caller."""
        wanted = [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        return await self._metadata(request)

    async def all_topics(self) -> list[Topic]:
        answered = await self.persist(
            lambda: self._metadata(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        )
        names = sorted(each.name or "" for each in answered)
        return [self._topics[name] for name in names if name in self._topics]

    async def topic(self, name: str, *, create: bool = False) -> Topic:
        """A topic and its partitions. Raises UnknownTopicOrPartition if there is none, at once unless the
        broker may create it."""
        known = self._topics.get(name)
        if known is not None:
            return known
        clock = asyncio.get_running_loop().time
        patience = clock() + min(CREATION_SECONDS, self.timeout)

        async def look() -> Topic:
            while True:
                (answered,) = await self.refresh([name], create=create)
                fresh = answered.error_code in (UnknownTopicOrPartition.code, LeaderNotAvailable.code)
                if not (create and fresh and clock() < patience):
                    break
                await asyncio.sleep(FIRST_PAUSE)
            check(answered.error_code, f"topic {name}")
            return self._topics[name]

        return await self.persist(look, final=UnknownTopicOrPartition)

    async def leader(self, partition: TopicPartition) -> int:
        """The broker that leads a partition now."""
        topic = await self.topic(partition.topic)
        return topic.leader(partition.partition)

    def name_of(self, topic_id: Uuid) -> str | None:
        """The name of a topic that has been looked up."""
        return self._names.get(topic_id)

    async def coordinator(self, kind: int, key: str) -> int:
        """The broker that coordinates a group or a transactional id."""
        found = self._coordinators.get((kind, key))
        if found is None:
            connection = await self.any()
            if not self.brokers:
                await self.refresh()
            request = coordinator_request(kind, key, connection.version_of(FindCoordinatorRequest))
            response = await connection.ask(request, FindCoordinatorResponse, within=self.timeout)
            found = coordinator_of(response, key)
            self._coordinators[kind, key] = found
        return found

    def lost_coordinator(self, kind: int, key: str) -> None:
        self._coordinators.pop((kind, key), None)

    async def _metadata(self, request: MetadataRequest) -> list[MetadataResponseTopic]:
        connection = await self.any()
        try:
            response = await connection.ask(request, MetadataResponse, within=self.timeout)
        except Disconnected:
            # A connection that went idle may have been closed by the broker; a new one decides.
            connection = await self.any()
            response = await connection.ask(request, MetadataResponse, within=self.timeout)
        self.id, self.controller_id = response.cluster_id, response.controller_id
        self.brokers, self._is_outdated = brokers_of(response), False
        for topic in response.topics:
            self._learn(topic)
        return response.topics

    def _learn(self, topic: MetadataResponseTopic) -> None:
        if topic.name is None:
            return
        if topic.error_code:
            self._topics.pop(topic.name, None)
            return
        self._names[topic.topic_id] = topic.name
        self._topics[topic.name] = topic_of(topic)
