"""A cluster as its blocking clients see it: who leads what, who coordinates whom, and how to ask them.

Retries live here. An error that passes by itself (an election, a broker that restarts) is waited out with
growing pauses until `timeout` is over; everything else is raised at once.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ottla.client.addresses import Address, parse_bootstrap
from ottla.client.blocking import admin, offsets
from ottla.client.blocking.connection import BlockingConnection
from ottla.client.blocking.offsets import OffsetAndMetadata, OffsetAndTimestamp
from ottla.client.errors import ClientError, Unreachable, check, is_retriable
from ottla.client.security import PLAINTEXT, Security
from ottla.client.topology import (
    GROUP,
    TRANSACTION,
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

__all__ = [
    "GROUP",
    "TRANSACTION",
    "BlockingCluster",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "cached_cluster",
]

T = TypeVar("T")
Response = TypeVar("Response")

FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 1.0
CREATION_SECONDS: Final = 5.0
"""How long a topic that a broker creates on demand may take to appear; a broker that does not create any
answers just the same, so this is also how long a mistyped name is waited for."""
IDLE_CONNECTIONS: Final = 4
"""Connections kept for later to each broker, beside the one for single requests."""


class BlockingCluster:
    """`with BlockingCluster("localhost:9092") as cluster`: connections are made when needed and kept.

    Unless `patient`, a first connection that fails is raised at once: somebody who mistyped an address wants
    to know now. A task that is one of many rather waits for the broker to come back.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "ottla",
        security: Security = PLAINTEXT,
        timeout: float = 30.0,
        patient: bool = False,
    ) -> None:
        self.bootstrap = parse_bootstrap(bootstrap)
        self.client_id, self.security, self.timeout, self.patient = client_id, security, timeout, patient
        self.id: str | None = None
        self.brokers: dict[int, Broker] = {}
        self._topics: dict[str, Topic] = {}
        self._names: dict[Uuid, str] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._connections: dict[Address, BlockingConnection] = {}
        self._idle: dict[Address, list[BlockingConnection]] = {}
        self._lent: set[BlockingConnection] = set()
        self._was_reached = False
        self._is_outdated = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection, those that are lent as well."""
        for connection in [*self._connections.values(), *chain(*self._idle.values()), *self._lent]:
            connection.close()
        self._connections.clear()
        self._idle.clear()
        self._lent.clear()

    # --- connections ---------------------------------------------------------------------

    def any(self) -> BlockingConnection:
        """A connection to whichever broker answers."""
        for connection in self._connections.values():
            if connection.is_idle():
                return connection
        known = (Address(each.host, each.port) for each in self.brokers.values())
        refused: Unreachable | None = None
        for address in dict.fromkeys([*self.bootstrap, *known]):
            try:
                return self._connection(address)
            except Unreachable as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def broker(self, broker_id: int) -> BlockingConnection:
        """The connection to this broker for requests that are answered at once."""
        return self._connection(self._address(broker_id))

    def leader(self, partition: TopicPartition) -> BlockingConnection:
        """A connection to the broker that leads a partition now."""
        return self.broker(self.leader_id(partition))

    def coordinator(self, key: str, kind: int = GROUP) -> BlockingConnection:
        """A connection to the coordinator of a group or (TRANSACTION) of a transactional id."""
        return self.broker(self.coordinator_id(key, kind))

    def take(self, broker_id: int) -> BlockingConnection:
        """A connection to this broker that nobody else uses until `give_back`: for requests under way
        together, or answered late."""
        address = self._address(broker_id)
        idle = self._idle.get(address, [])
        while idle:
            connection = idle.pop()
            if connection.is_idle():
                break
            connection.close()
        else:
            connection = self._open(address)
        self._lent.add(connection)
        return connection

    def give_back(self, connection: BlockingConnection) -> None:
        """Keep it for the next one who needs it, unless answers are still owed on it."""
        self._lent.discard(connection)
        idle = self._idle.setdefault(connection.address, [])
        if connection.is_open and not connection.waiting and len(idle) < IDLE_CONNECTIONS:
            idle.append(connection)
        else:
            connection.close()

    def _address(self, broker_id: int) -> Address:
        if broker_id not in self.brokers or self._is_outdated:
            self.refresh()
        found = self.brokers.get(broker_id)
        if found is None:
            known = ", ".join(map(str, sorted(self.brokers)))
            raise Unreachable(f"there is no broker {broker_id} in the cluster, only {known}")
        return Address(found.host, found.port)

    def _connection(self, address: Address) -> BlockingConnection:
        connection = self._connections.get(address)
        if connection is None or not connection.is_idle():
            if connection is not None:
                connection.close()
            connection = self._connections[address] = self._open(address)
        return connection

    def _open(self, address: Address) -> BlockingConnection:
        connection = BlockingConnection.open(
            address.host,
            address.port,
            client_id=self.client_id,
            security=self.security,
            timeout=self.timeout,
        )
        self._was_reached = True
        return connection

    # --- asking --------------------------------------------------------------------------

    def persist(
        self,
        attempt: Callable[[], T],
        *,
        final: type[Exception] | tuple[type[Exception], ...] = (),
        timeout: float | None = None,
    ) -> T:
        """What `attempt` answers, tried again after errors that pass, but not after `final` ones."""
        deadline, pause = time.monotonic() + (self.timeout if timeout is None else timeout), FIRST_PAUSE
        while True:
            try:
                return attempt()
            except (KafkaError, ClientError) as error:
                # A broker that does not answer may be at another address by now.
                self._is_outdated = isinstance(error, ClientError)
                if (
                    not is_retriable(error)
                    or isinstance(error, final)
                    or not (self._was_reached or self.patient)
                    or time.monotonic() + pause > deadline
                ):
                    raise
            self.forget()
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def ask(self, request: Any, response: type[Response], *, broker: int | None = None) -> Response:
        """Ask one broker, or any, trying again when the connection breaks. Errors inside the answer are the
        caller's."""

        def once() -> Response:
            connection = self.any() if broker is None else self.broker(broker)
            return connection.ask(request, response)

        return self.persist(once)

    # --- what the cluster looks like -----------------------------------------------------

    def forget(self) -> None:
        """Leaders and coordinators may have moved: look them up when they are next needed."""
        self._topics.clear()
        self._coordinators.clear()

    def refresh(self, topics: Iterable[str] = (), *, create: bool = False) -> list[MetadataResponseTopic]:
        """Learn the brokers, and these topics; their errors are left to the caller."""
        wanted = [MetadataRequestTopic(name=name) for name in topics]
        return self._metadata(MetadataRequest(topics=wanted, allow_auto_topic_creation=create))

    def topics(
        self, names: Iterable[str] | None = None, *, pattern: str | re.Pattern[str] | None = None
    ) -> dict[str, list[int]]:
        """The partition numbers of these topics, as the cluster has them now; of all topics if none is named,
        of those whose whole name matches if there is a pattern (internal ones only by name). Raises
        UnknownTopicOrPartition for a name that does not exist."""
        if names is not None:
            return self._partitions_of(list(names))
        self.persist(lambda: self._metadata(MetadataRequest(topics=None, allow_auto_topic_creation=False)))
        wanted = re.compile(pattern or "")
        return {
            name: list(topic.partitions)
            for name, topic in sorted(self._topics.items())
            if not topic.is_internal and (pattern is None or wanted.fullmatch(name))
        }

    def _partitions_of(self, names: list[str]) -> dict[str, list[int]]:
        def look() -> dict[str, list[int]]:
            # Not from what is known: partitions may have been added.
            for answered in self.refresh(names):
                check(answered.error_code, f"topic {answered.name}")
            return {name: list(self._topics[name].partitions) for name in names}

        return self.persist(look, final=UnknownTopicOrPartition) if names else {}

    def topic(self, name: str, *, create: bool = False) -> Topic:
        """A topic and its partitions. Raises UnknownTopicOrPartition if there is none, at once unless the
        broker may create it."""
        known = self._topics.get(name)
        if known is not None:
            return known
        patience = time.monotonic() + min(CREATION_SECONDS, self.timeout)

        def look() -> Topic:
            while True:
                (answered,) = self.refresh([name], create=create)
                is_fresh = answered.error_code in (UnknownTopicOrPartition.code, LeaderNotAvailable.code)
                if not (create and is_fresh and time.monotonic() < patience):
                    break
                time.sleep(FIRST_PAUSE)
            check(answered.error_code, f"topic {name}")
            return self._topics[name]

        return self.persist(look, final=UnknownTopicOrPartition)

    def leader_id(self, partition: TopicPartition) -> int:
        return self.topic(partition.topic).leader(partition.partition)

    def name_of(self, topic_id: Uuid) -> str | None:
        """The name of a topic that has been looked up."""
        return self._names.get(topic_id)

    def coordinator_id(self, key: str, kind: int = GROUP) -> int:
        found = self._coordinators.get((kind, key))
        if found is None:
            connection = self.any()
            request = coordinator_request(kind, key, connection.version_of(FindCoordinatorRequest))
            found = coordinator_of(connection.ask(request, FindCoordinatorResponse), key)
            self._coordinators[kind, key] = found
        return found

    def lost_coordinator(self, key: str, kind: int = GROUP) -> None:
        self._coordinators.pop((kind, key), None)

    def _metadata(self, request: MetadataRequest) -> list[MetadataResponseTopic]:
        response = self.any().ask(request, MetadataResponse)
        check(response.error_code, "the cluster")
        self.id, self.brokers = response.cluster_id, brokers_of(response)
        self._is_outdated = False
        for answered in response.topics:
            if answered.name is None:
                continue
            if answered.error_code:
                self._topics.pop(answered.name, None)
                continue
            self._names[answered.topic_id] = answered.name
            self._topics[answered.name] = topic_of(answered)
        return response.topics

    # --- offsets and topics: one request each, see `offsets` and `admin` -----------------

    def list_offsets(
        self, specs: Mapping[TopicPartition, int], *, isolation_level: int = 0
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """The offset for each partition's timestamp: -2 is the earliest, -1 the latest. An offset of -1 in
        the answer means that no record is that young."""
        return offsets.list_offsets(self, specs, isolation_level)

    def committed(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = True,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed, for these partitions or for all; those without are left out. Positions
        in open transactions are waited for, unless what is in force before their end will do."""
        return offsets.committed(self, group, partitions, require_stable)

    def commit_offsets(self, group: str, positions: Mapping[TopicPartition, int | tuple[int, str]]) -> None:
        """Store positions of a group that has no members."""
        offsets.commit_offsets(self, group, positions)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Make a topic and wait until it can be used; -1 leaves a number to the broker."""
        admin.create_topic(self, name, partitions, replication_factor, configs or {})


class _Cache(threading.local):
    """The clusters of one thread. A fork copies them, with sockets that are the parent's: so by process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.clusters: dict[tuple[str, Security, str], BlockingCluster] = {}


_cache = _Cache()


def cached_cluster(
    bootstrap: str, security: Security = PLAINTEXT, client_id: str = "ottla", *, timeout: float = 30.0
) -> BlockingCluster:
    """The cluster that this thread of this process shares among all who ask for the same."""
    if _cache.pid != os.getpid():
        # The sockets are the parent's as well: closing ours says nothing on them.
        for inherited in _cache.clusters.values():
            inherited.close()
        _cache.pid, _cache.clusters = os.getpid(), {}
    key = (bootstrap, security, client_id)
    found = _cache.clusters.get(key)
    if found is None:
        found = _cache.clusters[key] = BlockingCluster(
            bootstrap, client_id=client_id, security=security, patient=True
        )
    found.timeout = timeout
    return found
