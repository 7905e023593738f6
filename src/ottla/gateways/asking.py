"""Bringing a door's Kafka requests to the broker that they are for, which may be another one.

What this broker leads it answers itself, through the same handlers as for any client. What another one leads
is asked of that one over the listener of the brokers. There we are a broker and no longer the client, so what
the client may do is looked up here first; and the other broker has to allow us the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

from ottla.core.acl import Operation, ResourceType
from ottla.metadata.partition import NO_LEADER
from ottla.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaStorageError,
    LeaderNotAvailable,
    NetworkException,
    NotCoordinator,
    NotLeaderOrFollower,
)
from ottla.server.authorization import check
from ottla.server.context import Context
from ottla.server.doors import Doors
from ottla.server.local import Local

PURPOSE: Final = "doors"
# A broker answers in the order of the requests, so whoever waits for records does it on a connection that
# nobody else uses meanwhile: there are this many of them to each broker, and no wait takes longer than this.
READERS_MAX: Final = 32
WAIT_MS_MAX: Final = 500
# Seconds between tries while leaders and coordinators are being moved.
PAUSES: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0)

Right = tuple[Operation, ResourceType, str]
T = TypeVar("T")

_MOVING: Final = (
    NotLeaderOrFollower,
    LeaderNotAvailable,
    KafkaStorageError,
    NotCoordinator,
    CoordinatorNotAvailable,
    CoordinatorLoadInProgress,
    NetworkException,
)


class Readers:
    """Which connections for readers are free, by broker."""

    def __init__(self, doors: Doors) -> None:
        self._free: dict[int, asyncio.LifoQueue[int]] = {}

    def of(self, broker_id: int) -> asyncio.LifoQueue[int]:
        free = self._free.get(broker_id)
        if free is None:
            free = self._free[broker_id] = asyncio.LifoQueue()
            for number in reversed(range(READERS_MAX)):
                free.put_nowait(number)
        return free


class Asking:
    """The requests of one visit."""

    def __init__(self, doors: Doors, local: Local) -> None:
        self._local = local
        self._node = doors.node
        self._readers = doors.keep(Readers)

    async def here(self, request: Any, version: int | None = None) -> Any:
        """What every broker can answer."""
        return await self._local.ask(request, version)

    # --- leaders -------------------------------------------------------------------------

    def leader(self, topic: str, partition: int) -> int:
        """The broker to ask about a partition: its leader, or this one, which knows what is wrong with it."""
        known = self._node.image.topics.get(topic)
        state = None if known is None else known.partitions.get(partition)
        return self._node.node_id if state is None or state.leader == NO_LEADER else state.leader

    async def leader_of(
        self,
        topic: str,
        partitions: Iterable[int],
        request: Any,
        response: type[T],
        version: int,
        *,
        rights: Iterable[Right],
    ) -> T:
        """The answer of the broker that leads these partitions, all of which have the same leader."""
        partitions = list(partitions)
        broker_id = self.leader(topic, partitions[0])
        if broker_id == self._node.node_id:
            return await self._local.ask(request, version)  # type: ignore[no-any-return]
        return await self._there(
            broker_id,
            request,
            response,
            version,
            rights,
            lambda: all(self.leader(topic, each) == broker_id for each in partitions),
        )

    async def read(
        self,
        topic: str,
        partition: int,
        request: Any,
        response: type[T],
        version: int,
        *,
        rights: Iterable[Right],
    ) -> T:
        """As `leader_of`, for a fetch. One that goes elsewhere waits for a bounded time only."""
        broker_id = self.leader(topic, partition)
        if broker_id == self._node.node_id:
            wait = request.max_wait_ms / 1000 + 30
            return await self._local.ask(request, version, seconds=wait)  # type: ignore[no-any-return]
        request.max_wait_ms = min(request.max_wait_ms, WAIT_MS_MAX)
        free = self._readers.of(broker_id)
        number = await free.get()
        try:
            return await self._there(
                broker_id,
                request,
                response,
                version,
                rights,
                lambda: self.leader(topic, partition) == broker_id,
                purpose=f"{PURPOSE}-{number}",
            )
        finally:
            free.put_nowait(number)

    # --- coordinators --------------------------------------------------------------------

    async def coordinator_of(
        self, group: str, request: Any, response: type[T], version: int, *, rights: Iterable[Right]
    ) -> T:
        """The answer of the broker that coordinates a group."""
        groups = self._node.groups
        broker_id = groups.elsewhere(group)
        if broker_id is None:
            return await self._local.ask(request, version)  # type: ignore[no-any-return]
        return await self._there(
            broker_id, request, response, version, rights, lambda: groups.elsewhere(group) == broker_id
        )

    # --- both ----------------------------------------------------------------------------

    async def persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What `attempt` answers, tried again while leaders move. Where there is no other broker they do not,
        and what is wrong is said at once."""
        for pause in PAUSES:
            try:
                return await attempt()
            except _MOVING:
                if len(self._node.image.brokers) < 2:
                    raise
            await asyncio.sleep(pause)
        return await attempt()

    async def _there(
        self,
        broker_id: int,
        request: Any,
        response: type[T],
        version: int,
        rights: Iterable[Right],
        still_leads: Callable[[], bool],
        purpose: str = PURPOSE,
    ) -> T:
        local, node = self._local, self._node
        context = Context(version, local.client_id, local.connection, node)
        for right in rights:
            check(context, *right)
        return await node.coordinators.elsewhere.ask(
            broker_id,
            request,
            response,
            purpose=purpose,
            within=node.settings.request_timeout_ms / 1000,
            still_leads=still_leads,
            version=version,
        )
