"""This node: its log directories, its view of the cluster, and the partitions it holds.

It starts and stops everything that runs, in order, and hands handlers what they ask for. What the controller
decided becomes partitions in `metadata_publisher`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from ottla.config.broker import BrokerSettings, effective
from ottla.config.listeners import SECURITY_PROTOCOLS, Listeners
from ottla.config.topic import TopicSettings, topic_settings
from ottla.core.clock import Clock
from ottla.core.files import Files
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.metadata.authorizer import Authorizer
from ottla.metadata.cluster import BrokerRegistration
from ottla.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from ottla.protocol.errors import KafkaStorageError, RequestTimedOut
from ottla.protocol.messages.broker_registration import Listener as RegisteredListener
from ottla.protocol.stored.metadata import UserScramCredentialRecord
from ottla.replication.fetch_session import FetchSessions
from ottla.replication.isr import NOT_REGISTERED, Standing
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.runtime.channels import Channels
from ottla.runtime.clock import SystemClock
from ottla.runtime.coordinators import Coordinators
from ottla.runtime.flusher import Flusher
from ottla.runtime.housekeeping import Housekeeping
from ottla.runtime.in_sync_sets import InSyncSets
from ottla.runtime.lifecycle import Lifecycle
from ottla.runtime.log_cleaner import LogCleaner
from ottla.runtime.metadata_publisher import MetadataPublisher
from ottla.runtime.producer_ids import ProducerIds
from ottla.runtime.quorum import Quorum
from ottla.runtime.quorum_start import first_cluster_id
from ottla.runtime.replica_fetchers import ReplicaFetchers
from ottla.runtime.threads import to_the_end
from ottla.storage.files import OsFiles
from ottla.storage.log_directory import LogDirectory, open_log_directories

if TYPE_CHECKING:
    from ottla.runtime.share import Shares

logger = logging.getLogger("ottla.node")

LOOK_MS: Final = 5
DURABLE: Final = "durable"


class Caller(Protocol):
    """What the node asks about a connection."""

    listener_name: str

    @property
    def dialled_host(self) -> str: ...

    @property
    def dialled_port(self) -> int: ...


class ControllerListener(Protocol):
    """A listener that other controllers, and brokers, come to for the quorum."""

    async def serve(self) -> None: ...
    async def close(self) -> None: ...


class Node:
    def __init__(
        self,
        properties: Mapping[str, str],
        settings: BrokerSettings,
        listeners: Listeners,
        *,
        clock: Clock | None = None,
        files: Files | None = None,
        first_users: Sequence[UserScramCredentialRecord] = (),
    ) -> None:
        self.static_properties = dict(properties)
        self.settings = settings
        self.listeners = listeners
        self.clock = clock or SystemClock()
        self.node_id = settings.node_id
        self.cluster_id = ""
        self.image = Image()
        # None where everybody may do everything.
        self.authorizer: Authorizer | None = None
        self.replicas = Replicas(self.node_id)
        self.fetch_sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots)
        self.log_directories: list[LogDirectory] = []
        self.flushers: dict[LogDirectory, Flusher] = {}
        self._first_users = first_users
        self.quorum: Quorum
        self.producer_ids: ProducerIds
        # Our own, since open files are counted per `Files`, and another node may run in another thread.
        self._files = OsFiles() if files is None else files
        self.is_durable = settings.ottla_durability == DURABLE
        self.channels = Channels(self)
        self.coordinators = Coordinators(self)
        self.groups = self.coordinators.groups
        self.transactions = self.coordinators.transactions
        self.share_state = self.coordinators.share_state
        self.log_cleaner = LogCleaner(self)
        self.replica_fetchers = ReplicaFetchers(self)
        self.in_sync_sets = InSyncSets(self)
        self._lifecycle: Lifecycle | None = None
        self._parts = AsyncExitStack()  # what is running, to be stopped in the opposite order
        self._topic_settings: dict[str, TopicSettings] = {}
        self._publisher = MetadataPublisher(self)
        self._has_left = False
        self._fatal: str | None = None
        self._died = asyncio.Event()

    @property
    def is_broker(self) -> bool:
        return "broker" in self.settings.process_roles

    @property
    def broker_epoch(self) -> int:
        return -1 if self._lifecycle is None else self._lifecycle.broker_epoch

    @property
    def shares(self) -> Shares:
        return self.coordinators.shares

    @property
    def recovering(self) -> list[str]:
        """The partitions that are not served yet: logs being loaded, then coordinators over theirs."""
        logs = {
            str(partition) for directory in self.log_directories for partition in directory.loading.copy()
        }
        coordinators = {
            f"{coordinator.topic}-{partition}"
            for coordinator in self.coordinators.by_topic.values()
            for partition in coordinator.loading()
        }
        return sorted(logs | coordinators)

    # --- start ---------------------------------------------------------------------------

    async def load(self, controllers: Sequence[ControllerListener] = ()) -> None:
        """Open everything that is on disk, and learn what has become of the cluster.

        Nothing is served yet but the quorum's own listeners, `controllers`: without those nobody could be
        elected, and nothing learned.
        """
        settings = self.settings
        self._parts.push_async_callback(self.channels.close)
        self.log_directories = open_log_directories(
            settings.data_dirs,
            clock=self.clock,
            node_id=self.node_id,
            cluster_id=first_cluster_id(settings, self.static_properties),
            files=self._files,
            recovery_threads=settings.num_recovery_threads_per_data_dir,
            producer_id_expiration_ms=settings.producer_id_expiration_ms,
        )
        self.cluster_id = self.log_directories[0].cluster_id
        for directory in self.log_directories:
            self._parts.push_async_callback(self._close_directory, directory)
            directory.on_offline(partial(self._directory_failed, directory))
            flusher = self.flushers[directory] = Flusher(directory)
            self._parts.push_async_callback(flusher.close)
        await self._follow_quorum(controllers)
        if self.is_broker:
            await to_the_end(self._load_logs)
        self.producer_ids = ProducerIds(self.quorum, self.node_id, lambda: self.broker_epoch)
        self._parts.callback(self.producer_ids.close)
        self._parts.push_async_callback(self.coordinators.close)

    async def _follow_quorum(self, controllers: Sequence[ControllerListener]) -> None:
        settings = self.settings
        if settings.authorizer_class_name:
            # Until the rules are known, only those may do anything whom no rule stops.
            self.authorizer = Authorizer(settings.super_principals)
        self.quorum = await Quorum.open(self, self._first_users)
        self._parts.push_async_callback(self.quorum.close)
        self.image = self.quorum.image
        for listener in controllers:
            self._parts.push_async_callback(listener.close)
            await listener.serve()
        await self.quorum.caught_up()
        # From here to the subscription nothing suspends, so no change is missed.
        self.image = self.quorum.image
        self._configure()
        if settings.authorizer_class_name:
            self.authorizer = Authorizer(
                settings.super_principals,
                allow_if_no_acl=settings.allow_everyone_if_no_acl_found,
            )
            self.authorizer.load(self.image.acls.values())
        self.quorum.subscribe(self._publisher.changed)

    def _load_logs(self) -> None:
        for directory in self.log_directories:
            directory.load(self.topic_settings, self._is_stray)

    def _is_stray(self, name: TopicPartition, topic_id: Uuid | None) -> bool:
        """Whether the cluster has no such partition here any more, or another topic of that name."""
        topic = self.image.topics.get(name.topic)
        if topic is None:
            return True
        state = topic.partitions.get(name.partition)
        if state is None or self.node_id not in state.replicas:
            return True
        return topic_id is not None and topic_id != topic.id

    async def join(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Register with the controller and serve what it lets us serve."""
        if not self.is_broker:
            self._parts.push_async_callback(self._publisher.stop)
            self._publisher.start()
            return
        lifecycle = Lifecycle(
            self.quorum,
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            rack=self.settings.broker_rack,
            heartbeat_interval_ms=self.settings.broker_heartbeat_interval_ms,
            metadata_offset=lambda: self.image.offset,
            registration_timeout_ms=self.settings.initial_broker_registration_timeout_ms,
            superseded=self.die,
        )
        await lifecycle.register(
            self._registered_listeners(addresses),
            [directory.id for directory in self.log_directories],
            # One directory that was not closed cleanly is enough to have lost something.
            min(directory.previous_broker_epoch for directory in self.log_directories),
        )
        self._lifecycle = lifecycle
        await self._registration_seen(lifecycle.broker_epoch)
        self._parts.push_async_callback(self.replica_fetchers.close)
        self._parts.push_async_callback(self.in_sync_sets.close)
        self.in_sync_sets.start()
        self._parts.push_async_callback(self._publisher.stop)
        await self._publisher.publish_all()
        self._publisher.start()
        self._parts.push_async_callback(self.leave)
        await lifecycle.become_active()
        await self.caught_up()
        housekeeping = Housekeeping(self)
        housekeeping.start()
        self._parts.push_async_callback(housekeeping.stop)
        self.log_cleaner.start()
        self._parts.push_async_callback(self.log_cleaner.stop)

    async def _registration_seen(self, broker_epoch: int) -> None:
        """Return when the metadata log here has our registration.

        Until then it may say that we lead, as we did before we crashed: in that epoch, with what we had then.
        """
        within_ms = self.settings.initial_broker_registration_timeout_ms
        deadline_ms = self.clock.monotonic_ms() + within_ms
        while self.standing_of(self.node_id).epoch < broker_epoch:
            if self._fatal is not None:
                raise KafkaStorageError(self._fatal)  # it was, as long as this node followed the log
            if self.clock.monotonic_ms() >= deadline_ms:
                raise RequestTimedOut(
                    f"broker {self.node_id} is registered, and did not hear of it from the quorum within "
                    f"{within_ms} ms (initial.broker.registration.timeout.ms)"
                )
            await asyncio.sleep(LOOK_MS / 1000)

    def _registered_listeners(self, addresses: Sequence[tuple[str, int]]) -> list[RegisteredListener]:
        registered = []
        for wanted, (host, port) in zip(self.listeners.clients, addresses, strict=True):
            advertised = self.listeners.advertised.get(wanted.name)
            registered.append(
                RegisteredListener(
                    name=wanted.name,
                    host=advertised.host if advertised else host,
                    port=(advertised.port if advertised else 0) or port,
                    security_protocol=SECURITY_PROTOCOLS.index(wanted.protocol),
                )
            )
        return registered

    # --- stop ----------------------------------------------------------------------------

    @property
    def has_company(self) -> bool:
        """Whether there are other brokers, who might take over what this one leads."""
        return any(broker.is_active for broker in self.image.brokers.values() if broker.id != self.node_id)

    async def leave(self) -> None:
        """Controlled shutdown: what this broker leads is led by others when this returns, if it can be."""
        if self._lifecycle is not None and not self._has_left:
            self._has_left = True
            await self._lifecycle.leave()

    async def stop(self) -> None:
        """Leave the cluster, then flush and close every log. Safe at any point of a start that failed."""
        await self._parts.aclose()

    async def _close_directory(self, directory: LogDirectory) -> None:
        await to_the_end(directory.close, self.broker_epoch)

    # --- what handlers ask ---------------------------------------------------------------

    def synced(self, partition: Partition, last_offset: int) -> asyncio.Future[None] | None:
        """The sync that acks=all waits for; None when this broker leaves it to the page cache."""
        if not self.is_durable:
            return None
        return self.flushers[partition.directory].synced(partition.log, last_offset + 1)

    def topic_settings(self, topic: str) -> TopicSettings:
        known = self._topic_settings.get(topic)
        if known is None:
            overrides = self.image.config(TOPIC_RESOURCE, topic)
            known = self._topic_settings[topic] = topic_settings(overrides, self.settings)
        return known

    def random_session_id(self) -> int:
        return random.randint(1, 2**31 - 1)

    def broker_endpoint(self, broker: BrokerRegistration, connection: Caller) -> tuple[str, int]:
        """Where this client finds a broker: ourselves at the address it dialled, unless told otherwise."""
        listener = connection.listener_name
        if broker.id == self.node_id and listener not in self.listeners.advertised:
            return connection.dialled_host, connection.dialled_port
        endpoint = broker.endpoint(listener)
        return ("", -1) if endpoint is None else (endpoint.host, endpoint.port)

    def standing_of(self, broker: int) -> Standing:
        """What a leader here has to know of a broker that follows it."""
        registration = self.image.brokers.get(broker)
        if registration is None:
            return NOT_REGISTERED
        return Standing(registration.epoch, registration.is_active)

    # --- following the metadata log ------------------------------------------------------

    async def caught_up(self) -> None:
        """Return once the partitions here are as the metadata log said when this was called."""
        await self._publisher.caught_up()

    # --- settings ------------------------------------------------------------------------

    def _configure(self) -> None:
        self.settings = effective(
            self.static_properties,
            self.image.config(BROKER_RESOURCE, ""),
            self.image.config(BROKER_RESOURCE, str(self.node_id)),
        )

    def reconfigure(self, changed: set[tuple[int, str]]) -> None:
        """Dynamic settings changed: swap the snapshots that logs and listeners hold."""
        if any(kind == BROKER_RESOURCE for kind, _ in changed):
            self._configure()
            self._topic_settings.clear()
            topics = {partition.partition.topic for partition in self.replicas}
        else:
            topics = {name for kind, name in changed if kind == TOPIC_RESOURCE}
            for name in topics:
                self._topic_settings.pop(name, None)
        for partition in self.replicas:
            topic = partition.partition.topic
            if topic in topics:
                settings = self.topic_settings(topic)
                partition.log.settings = settings
                partition.configure(settings.min_insync_replicas)

    def forget_settings(self, topic: str) -> None:
        self._topic_settings.pop(topic, None)

    # --- failures ------------------------------------------------------------------------

    def _directory_failed(self, directory: LogDirectory, error: Exception) -> None:
        """A directory went offline: its partitions answer KAFKA_STORAGE_ERROR, the rest goes on."""
        logger.error("log directory offline path=%s error=%s", directory.path, error)
        for partition in self.replicas:
            if partition.directory is directory:
                partition.fail()
                self.replica_fetchers.follow(partition)
                self.coordinators.follow(partition)
        if self._lifecycle is not None:
            self._lifecycle.offline_directories.append(directory.id)
        if all(one.error is not None for one in self.log_directories):
            self.die(f"every log directory is offline, the last by {error}")

    def die(self, reason: str) -> None:
        """There is no use in going on. Whoever runs this process hears of it from `died`."""
        if self._fatal is None:
            self._fatal = reason
            logger.critical("%s", reason)
            self._died.set()

    async def died(self) -> str:
        """Wait for the day when this node can do nothing any more; answers why."""
        await self._died.wait()
        assert self._fatal is not None
        return self._fatal
