"""Makes the partitions of this node what the metadata log says: made, led, followed, reconfigured, removed.

Metadata arrives as deltas and is applied in slices, so that creating a thousand partitions does not hold up a
fetch.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.metadata.delta import Delta
from ottla.metadata.image import Image, Topic
from ottla.metadata.partition import PartitionState
from ottla.protocol.errors import KafkaStorageError
from ottla.replication.partition import NO_LEADER, Partition
from ottla.storage.files import is_of_the_disk

if TYPE_CHECKING:
    from ottla.runtime.node import Node

logger = logging.getLogger("ottla.node")

# Partitions made or changed before other work of the loop gets its turn.
SLICE: Final = 20
MAKE_AGAIN_MS: Final = 1000


class MetadataPublisher:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._deltas: deque[Delta] = deque()
        self._is_following = False  # the partitions follow the deltas that come
        self._applying: asyncio.Task[None] | None = None
        # Partitions whose log could not be made for want of open files, and what tries it again.
        self._unmade: set[TopicPartition] = set()
        self._making_again: asyncio.TimerHandle | None = None

    async def caught_up(self) -> None:
        """Return once the partitions here are as the metadata log said when this was called."""
        while self._applying is not None and not self._applying.done():
            await asyncio.shield(self._applying)

    def changed(self, image: Image, delta: Delta) -> None:
        """The metadata log has moved on."""
        node = self._node
        node.image = image
        # At once, since a topic of the same name may be there already: what is written to the old one now
        # would be acknowledged and then deleted.
        for topic_id, name in delta.deleted_topics.items():
            for partition in node.replicas.of_topic(name, topic_id):
                partition.stop_leading(NO_LEADER, partition.leader_epoch, partition.partition_epoch)
                node.replica_fetchers.follow(partition)
        if delta.acls and node.authorizer is not None:
            node.authorizer.change(delta.acls, image.acls)
        self._deltas.append(delta)
        if self._is_following:
            self._apply_soon()

    async def publish_all(self) -> None:
        """Make, lead and follow everything that the image has for this node."""
        for topic in list(self._node.image.topics.values()):
            await self._publish_topic(topic, topic.partitions)

    def start(self) -> None:
        """The partitions are as the image says, but for the deltas that came meanwhile."""
        self._is_following = True
        if self._deltas:
            self._apply_soon()

    async def stop(self) -> None:
        self._is_following = False
        if self._making_again is not None:
            self._making_again.cancel()
        await self.caught_up()

    def _apply_soon(self) -> None:
        if self._applying is None or self._applying.done():
            self._applying = asyncio.get_running_loop().create_task(self._apply_deltas())
            self._applying.add_done_callback(self._applied)

    def _applied(self, applying: asyncio.Task[None]) -> None:
        if not applying.cancelled() and (error := applying.exception()) is not None:
            logger.error("cannot follow the metadata log", exc_info=error)
            self._node.die(f"the metadata log says what this node cannot follow: {error!r}")

    async def _apply_deltas(self) -> None:
        while self._deltas:
            delta = self._deltas.popleft()
            if delta.configs:
                self._node.reconfigure(delta.configs)
            for topic_id, name in delta.deleted_topics.items():
                self._remove_topic(name, topic_id)
            for name, numbers in delta.topics.items():
                topic = self._node.image.topics.get(name)
                if topic is not None:
                    await self._publish_topic(topic, numbers)
            if delta.brokers:
                self._node.in_sync_sets.brokers_changed()
            self._node.coordinators.metadata_changed(delta)

    async def _publish_topic(self, topic: Topic, numbers: Iterable[int]) -> None:
        for count, number in enumerate(sorted(numbers), 1):
            state = topic.partitions.get(number)
            if state is not None:
                self._publish_partition(topic, number, state)
            if count % SLICE == 0:
                await asyncio.sleep(0)
                known = self._node.image.topics.get(topic.name)
                if known is None or known.id != topic.id:
                    return  # deleted meanwhile, which the next deltas tell

    def _publish_partition(self, topic: Topic, number: int, state: PartitionState) -> None:
        node = self._node
        name = TopicPartition(topic.name, number)
        if node.node_id not in state.replicas:
            self._remove(name)
            return
        partition = node.replicas.find(topic.name, number)
        if partition is not None and partition.topic_id != topic.id:
            self._remove(name)
            partition = None
        if partition is None:
            partition = self._open(topic, name, state.directory(node.node_id))
            if partition is None:
                return
        try:
            partition.take_state(
                state.leader,
                state.leader_epoch,
                state.partition_epoch,
                state.replicas,
                state.isr,
                node.topic_settings(topic.name).min_insync_replicas,
                node.clock.monotonic_ms(),
            )
        except OSError as error:  # the new epoch could not be noted
            partition.directory.fail(error)
        node.replica_fetchers.follow(partition)
        node.coordinators.follow(partition)

    def _open(self, topic: Topic, name: TopicPartition, assigned: Uuid) -> Partition | None:
        """The partition's log, found or made. A directory that fails to make it is offline from then on."""
        node = self._node
        for directory in node.log_directories:
            log = directory.logs.get(name)
            if log is not None:
                return node.replicas.add(name, topic.id, log, directory)
            if name in directory.unloadable:
                return None
        online = [directory for directory in node.log_directories if directory.error is None]
        if not online:
            return None
        if len(online) < len(node.log_directories) and not assigned.is_reserved:
            # It may have its log in a directory that is offline, and must not begin again with nothing.
            online = [directory for directory in online if directory.id == assigned]
            if not online:
                return None
        directory = min(online, key=lambda one: (one.id != assigned, len(one.logs)))
        try:
            log = directory.create_log(name, topic.id, node.topic_settings(topic.name))
        except (OSError, KafkaStorageError) as error:
            logger.error("cannot make a log partition=%s error=%s", name, error)
            if error.__cause__ is not None and not is_of_the_disk(error.__cause__):
                self._make_later(name)
            return None
        return node.replicas.add(name, topic.id, log, directory)

    def _make_later(self, name: TopicPartition) -> None:
        self._unmade.add(name)
        if self._making_again is None:
            loop = asyncio.get_running_loop()
            self._making_again = loop.call_later(MAKE_AGAIN_MS / 1000, self._make_again)

    def _make_again(self) -> None:
        unmade, self._unmade, self._making_again = self._unmade, set(), None
        for name in unmade:
            topic = self._node.image.topics.get(name.topic)
            state = None if topic is None else topic.partitions.get(name.partition)
            if topic is not None and state is not None:
                self._publish_partition(topic, name.partition, state)

    def _remove_topic(self, name: str, topic_id: Uuid) -> None:
        for partition in self._node.replicas.of_topic(name, topic_id):
            self._remove(partition.partition)
        self._node.forget_settings(name)

    def _remove(self, name: TopicPartition) -> None:
        node = self._node
        gone = node.replicas.remove(name)
        if gone is not None:
            gone.stop_leading(NO_LEADER, gone.leader_epoch, gone.partition_epoch)
            node.replica_fetchers.follow(gone)
            node.coordinators.follow(gone)
            if gone.directory.error is None:
                with suppress(KafkaStorageError):  # then the directory is offline, and has said so
                    gone.directory.delete_log(name)
