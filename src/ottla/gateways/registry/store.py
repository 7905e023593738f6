"""The topic `_schemas`, read and written as a client reads and writes it. Only its leader's broker writes.

The image is as good as the last record that was read, so every request begins by reading what is new: it sees
all that was acknowledged before, whoever wrote it, and it is refused where it may not read the topic.

Transactions make no difference, as they make none to Confluent's registry: whoever left one open would hide
from us what we wrote after it, and the ids in there would be given again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from ottla.gateways.session import DEFAULT, EARLIEST, Session
from ottla.metadata.partition import NO_LEADER
from ottla.protocol.batch import Record
from ottla.protocol.errors import (
    ClusterAuthorizationFailed,
    KafkaError,
    MessageTooLarge,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    RecordListTooLarge,
    RequestTimedOut,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from ottla.registry.errors import RegistryError, SchemaTooLarge, StoreTimeout, Unauthorized, UnknownLeader
from ottla.registry.image import Image
from ottla.registry.records import TOPIC, Change
from ottla.replication.partition import Partition
from ottla.server.doors import Doors

PARTITION: Final = 0
REPLICAS: Final = 3  # as far as there are brokers for them
RECORDS_AT_ONCE: Final = 1_000
CONFIGS: Final = {"cleanup.policy": "compact"}
KEPT_FOR_EVER: Final = frozenset(("compact",))
# Seconds between attempts to use the topic when it was just made.
PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# How long replicas may take to have what was in the log when this broker came to lead it.
COMMIT_SECONDS: Final = 20.0

T = TypeVar("T")


class Store:
    """The registry of one broker. Who writes has the turn from reading what is there to having written."""

    def __init__(self, doors: Doors) -> None:
        self.turn = asyncio.Lock()
        self._node = doors.node
        self._reading = asyncio.Lock()
        self._epoch = -1  # in which the topic was read last before a change
        self._forget()

    def _forget(self) -> None:
        self._image = Image()
        self._next_offset = 0
        self._topic_id: object = None

    @property
    def cluster_id(self) -> str:
        return self._node.cluster_id

    async def writer(self, session: Session) -> int | None:
        """The broker that makes changes, if that is another one. There is one as soon as there is a topic."""
        if len(self._node.image.brokers) < 2:
            return None
        if TOPIC not in self._node.image.topics:
            try:
                await _create(session, self._brokers())
            except KafkaError as error:
                raise _said(error) from error
        for pause in PAUSES:
            leader = self._leader()
            if leader != NO_LEADER:
                return None if leader == self._node.node_id else leader
            await asyncio.sleep(pause)
        raise UnknownLeader(f"The topic {TOPIC} has no leader at the moment")

    def _brokers(self) -> int:
        return sum(not broker.fenced for broker in self._node.image.brokers.values())

    def _leader(self) -> int:
        topic = self._node.image.topics.get(TOPIC)
        state = None if topic is None else topic.partitions.get(PARTITION)
        return NO_LEADER if state is None else state.leader

    async def image(self, session: Session, *, to_write: bool = False) -> Image:
        """The registry as of now. If it is `to_write`, with all that a change may be decided on."""

        async def catch_up() -> None:
            if to_write:
                await self._all_committed()
            await self._catch_up(session)

        async with self._reading:
            try:
                await self._once_led(catch_up)
            except KafkaError as error:
                raise _said(error) from error
            return self._image

    async def _all_committed(self) -> None:
        """A broker that has just come to lead the topic does not know yet how much of it is committed, and so
        to be read: wait until all is that it has."""
        self._epoch = -1
        if TOPIC not in self._node.image.topics:
            return
        partition = self._led()
        self._epoch = partition.leader_epoch
        wait = partition.committed(partition.log.end_offset - 1)
        if wait is not None:
            await asyncio.wait_for(wait, COMMIT_SECONDS)

    def _led(self) -> Partition:
        partition = self._node.replicas.find(TOPIC, PARTITION)
        if partition is None or not partition.is_leader:
            raise NotLeaderOrFollower
        return partition

    async def _catch_up(self, session: Session) -> None:
        topic = self._node.image.topics.get(TOPIC)
        topic_id = topic and topic.id
        if topic_id != self._topic_id:  # it was deleted, and perhaps made again
            self._forget()
            self._topic_id = topic_id
        while True:
            try:
                read = await session.read(
                    TOPIC, PARTITION, self._next_offset, max_records=RECORDS_AT_ONCE, committed=False
                )
            except UnknownTopicOrPartition:
                return  # nothing was registered yet
            except OffsetOutOfRange:
                # Records were deleted from its start, or it was cut at its end.
                self._image = Image()
                self._next_offset = await session.offset_at(TOPIC, PARTITION, EARLIEST)
                continue
            for record in read.records:
                self._image.apply(record.key, record.value)
            before, self._next_offset = self._next_offset, max(read.next_offset, self._next_offset)
            # Nothing may be left of what was there before the end.
            if self._next_offset >= read.end_offset or self._next_offset == before:
                return

    async def write(self, session: Session, changes: Sequence[Change]) -> None:
        """Write all of these or none. They are in the image that is asked for next."""
        records = [Record(key=change.key, value=change.value) for change in changes]
        try:
            if TOPIC not in self._node.image.topics:
                await _create(session, self._brokers())
            if self._node.topic_settings(TOPIC).cleanup_policy != KEPT_FOR_EVER:
                raise RegistryError(
                    f"The topic {TOPIC} would lose schemas in time: set its cleanup.policy to compact"
                )
            await self._once_led(lambda: self._append(session, records))
        except KafkaError as error:
            raise _said(error) from error

    async def _append(self, session: Session, records: Sequence[Record]) -> None:
        # Others may have written when they led the topic, after these were decided on.
        if self._epoch not in (-1, self._led().leader_epoch):
            raise NotLeaderOrFollower("Another broker has led it meanwhile")
        await session.append(TOPIC, PARTITION, records, only_here=True)

    async def _once_led(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do this when the topic is there to be used, which it is a moment after it was made."""
        for pause in PAUSES:
            try:
                return await work()
            except (NotLeaderOrFollower, UnknownTopicOrPartition):
                if self._leader() != self._node.node_id:
                    raise  # it is gone, or others have it
                await asyncio.sleep(pause)
        return await work()


async def _create(session: Session, brokers: int) -> None:
    replicas = min(brokers, REPLICAS) if brokers > 1 else DEFAULT
    with suppress(TopicAlreadyExists):
        await session.create_topic(TOPIC, partitions=1, replication_factor=replicas, configs=CONFIGS)


def _said(error: KafkaError) -> RegistryError:
    match error:
        case TopicAuthorizationFailed() | ClusterAuthorizationFailed():
            return Unauthorized(f"The topic {TOPIC}, which has the schemas, is not yours to use: {error}")
        case MessageTooLarge() | RecordListTooLarge():
            return SchemaTooLarge("The schema is larger than max.message.bytes of the topic " + TOPIC)
        case RequestTimedOut():
            return StoreTimeout(f"The topic {TOPIC} did not answer in time")
    return RegistryError(f"The topic {TOPIC} cannot be used: {error}")
