"""What every door offers, whatever its language: topics, producing, consuming, offsets.

Each call is one or two Kafka requests, made as a client makes them and answered by the same handlers, here or
on the broker that they are for (`asking`). What goes wrong is raised as a `KafkaError`, for the door to say
in its own words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.partitioner import RoundRobin, partition_of_key
from ottla.core.acl import Operation, ResourceType
from ottla.core.types import INTERNAL_TOPICS
from ottla.gateways.asking import Asking
from ottla.gateways.reading import is_quickly_read, offset_after, visible_records
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import (
    InvalidGroupId,
    InvalidPartitions,
    UnknownTopicOrPartition,
    error_class,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.server.doors import Doors
from ottla.server.local import Local

EARLIEST: Final = -2
LATEST: Final = -1

# The last versions in which topics go by their names.
PRODUCE_BY_NAME: Final = 12
FETCH_BY_NAME: Final = 12
OFFSETS_BY_NAME: Final = 9
LIST_OFFSETS_VERSION: Final = 10

PRODUCE_TIMEOUT_MS: Final = 30_000
CREATE_TIMEOUT_MS: Final = 30_000
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
# What one call reads at most, unless a single batch is larger.
READ_BYTES_MAX: Final = 1 << 20
SHARE_BYTES_MIN: Final = 16 << 10
DEFAULT: Final = -1


class Topic(NamedTuple):
    name: str
    partitions: int


class Written(NamedTuple):
    partition: int
    offset: int
    timestamp: int


class Read(NamedTuple):
    records: list[Record]
    next_offset: int
    end_offset: int


class Bounds(NamedTuple):
    """The offsets that a partition holds: from `start` up to, and not including, `end`."""

    partition: int
    start: int
    end: int


class Turns:
    """Whose turn it is among the partitions of each topic, for records without a key."""

    TOPICS_MAX: Final = 10_000

    def __init__(self, doors: Doors) -> None:
        self._topics: dict[str, RoundRobin] = {}

    def next(self, topic: str, partitions: Sequence[int]) -> int:
        if len(self._topics) >= self.TOPICS_MAX:
            self._topics.clear()
        return self._topics.setdefault(topic, RoundRobin()).choose(partitions)


class Session:
    def __init__(self, doors: Doors, local: Local) -> None:
        self._asking = Asking(doors, local)
        self._node = doors.node
        self._turns = doors.keep(Turns)

    # --- topics --------------------------------------------------------------------------

    async def topics(self) -> list[Topic]:
        response = await self._asking.here(MetadataRequest(topics=None))
        found = [Topic(each.name, len(each.partitions)) for each in response.topics if not each.is_internal]
        return sorted(found)

    async def create_topic(
        self,
        name: str,
        partitions: int = DEFAULT,
        replication_factor: int = DEFAULT,
        configs: Mapping[str, str] | None = None,
    ) -> Topic:
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        response = await self._asking.here(CreateTopicsRequest(topics=[wanted], timeout_ms=CREATE_TIMEOUT_MS))
        (answer,) = response.topics
        _raise_for(answer.error_code, answer.error_message)
        return Topic(name, answer.num_partitions)

    async def partitions(self, topic: str, *, create: bool = False) -> list[int]:
        """A topic's partitions. With `create` it may be made, where `auto.create.topics.enable` says so."""
        # Where there are access rules it takes one to be told this.
        known = self._node.image.topics.get(topic) if self._node.authorizer is None else None
        if create and known is not None and known.partitions and topic not in INTERNAL_TOPICS:
            return sorted(known.partitions)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=create)
        answer: MetadataResponseTopic
        (answer,) = (await self._asking.here(asked)).topics
        _raise_for(answer.error_code)
        return sorted(each.partition_index for each in answer.partitions)

    # --- producing -----------------------------------------------------------------------

    async def produce(self, topic: str, record: Record, partition: int | None = None) -> Written:
        """Append one record, with acks=all. Without a partition the key decides, or whose turn it is."""
        partitions = await self.partitions(topic, create=True)
        if partition is None:
            if record.key is None:
                partition = self._turns.next(topic, partitions)
            else:
                partition = partition_of_key(record.key, len(partitions))
        elif partition not in partitions:
            raise UnknownTopicOrPartition(
                f"{topic} has no partition {partition}, its partitions are 0 to {len(partitions) - 1}"
            )
        base_offset, appended_at = await self.append(topic, partition, [record])
        return Written(partition, base_offset, appended_at if appended_at >= 0 else record.timestamp)

    async def append(
        self, topic: str, partition: int, records: Sequence[Record], *, only_here: bool = False
    ) -> tuple[int, int]:
        """Append all of these or none, with acks=all: the first offset, and the time if it is the log's.

        With `only_here` they are not taken to another broker, even if that leads the partition.
        """
        for record in records:
            if record.timestamp < 0:
                record.timestamp = self._node.clock.wall_ms()

        async def attempt() -> tuple[int, int]:
            data = PartitionProduceData(index=partition, records=write_batch(records))
            request = ProduceRequest(
                acks=-1,
                timeout_ms=PRODUCE_TIMEOUT_MS,
                topic_data=[TopicProduceData(name=topic, partition_data=[data])],
            )
            response: ProduceResponse
            if only_here:
                response = await self._asking.here(request, PRODUCE_BY_NAME)
            else:
                response = await self._asking.leader_of(
                    topic,
                    [partition],
                    request,
                    ProduceResponse,
                    PRODUCE_BY_NAME,
                    rights=[(Operation.WRITE, ResourceType.TOPIC, topic)],
                )
            (answer,) = response.responses[0].partition_responses
            _raise_for(answer.error_code, answer.error_message)
            return answer.base_offset, answer.log_append_time_ms

        return await (attempt() if only_here else self._asking.persist(attempt))

    # --- consuming -----------------------------------------------------------------------

    async def read(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_records: int,
        max_bytes: int = READ_BYTES_MAX,
        wait_ms: int = 0,
        committed: bool = True,
    ) -> Read:
        """Records from an offset on; waits for the first if there is none yet.

        Those of open transactions, and what follows them, wait for their end, unless `committed` is False.
        """
        until = self._node.clock.monotonic_ms() + wait_ms

        async def attempt() -> PartitionData:
            asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
            request = FetchRequest(
                max_wait_ms=max(until - self._node.clock.monotonic_ms(), 0) if wait_ms else 0,
                min_bytes=1,
                max_bytes=max_bytes,
                isolation_level=READ_COMMITTED if committed else READ_UNCOMMITTED,
                topics=[FetchTopic(topic=topic, partitions=[asked])],
            )
            response = await self._asking.read(
                topic,
                partition,
                request,
                FetchResponse,
                FETCH_BY_NAME,
                rights=[(Operation.READ, ResourceType.TOPIC, topic)],
            )
            _raise_for(response.error_code)
            (answer,) = response.responses[0].partitions
            _raise_for(answer.error_code)
            return answer

        answer = await self._asking.persist(attempt)
        # Another broker is not waited for as long at once.
        while not answer.records and self._node.clock.monotonic_ms() < until:
            answer = await self._asking.persist(attempt)
        batches = answer.records or b""
        if is_quickly_read(batches):
            return _read(answer, offset, max_records, committed)
        return await asyncio.to_thread(_read, answer, offset, max_records, committed)

    # --- offsets -------------------------------------------------------------------------

    async def offset_at(self, topic: str, partition: int, timestamp: int) -> int:
        """The first offset at or after a time in ms, or EARLIEST, or LATEST; the end if there is none."""
        (found,) = await self._list_offsets(topic, [partition], timestamp)
        if found < 0:
            (found,) = await self._list_offsets(topic, [partition], LATEST)
        return found

    async def offsets(self, topic: str) -> list[Bounds]:
        partitions = await self.partitions(topic)
        starts = await self._list_offsets(topic, partitions, EARLIEST)
        ends = await self._list_offsets(topic, partitions, LATEST)
        return [Bounds(*each) for each in zip(partitions, starts, ends, strict=True)]

    async def _list_offsets(self, topic: str, partitions: Sequence[int], timestamp: int) -> list[int]:
        async def attempt() -> list[int]:
            found: dict[int, int] = {}
            leaders: dict[int, list[int]] = {}
            for each in partitions:
                leaders.setdefault(self._asking.leader(topic, each), []).append(each)
            for led in leaders.values():
                found |= await self._ask_for_offsets(topic, led, timestamp)
            return [found[each] for each in partitions]

        return await self._asking.persist(attempt)

    async def _ask_for_offsets(self, topic: str, partitions: list[int], timestamp: int) -> dict[int, int]:
        asked = [ListOffsetsPartition(partition_index=each, timestamp=timestamp) for each in partitions]
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=READ_COMMITTED,
            topics=[ListOffsetsTopic(name=topic, partitions=asked)],
        )
        response = await self._asking.leader_of(
            topic,
            partitions,
            request,
            ListOffsetsResponse,
            LIST_OFFSETS_VERSION,
            rights=[(Operation.DESCRIBE, ResourceType.TOPIC, topic)],
        )
        found = {}
        for answer in response.topics[0].partitions:
            _raise_for(answer.error_code)
            found[answer.partition_index] = answer.offset
        return found

    async def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Store the positions of a group without members, as `kafka-consumer-groups --reset-offsets` does."""
        if not group:
            raise InvalidGroupId("a group has a name: say which one")
        if not offsets:
            raise InvalidPartitions("name at least one partition and its offset")
        asked = [
            OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
            for partition, offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=asked)]
        )
        rights = [(Operation.READ, ResourceType.GROUP, group), (Operation.READ, ResourceType.TOPIC, topic)]

        async def attempt() -> None:
            response = await self._asking.coordinator_of(
                group, request, OffsetCommitResponse, OFFSETS_BY_NAME, rights=rights
            )
            for answer in response.topics[0].partitions:
                _raise_for(answer.error_code)

        await self._asking.persist(attempt)

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        """Where a group is in a topic: partition to offset, for those partitions that it has committed."""
        partitions = await self.partitions(topic)
        asked = OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[asked])])
        rights = [
            (Operation.DESCRIBE, ResourceType.GROUP, group),
            (Operation.DESCRIBE, ResourceType.TOPIC, topic),
        ]

        async def attempt() -> dict[int, int]:
            response = await self._asking.coordinator_of(
                group, request, OffsetFetchResponse, OFFSETS_BY_NAME, rights=rights
            )
            (answer,) = response.groups
            _raise_for(answer.error_code)
            committed = {}
            for each in answer.topics[0].partitions:
                _raise_for(each.error_code)
                if each.committed_offset >= 0:
                    committed[each.partition_index] = each.committed_offset
            return committed

        return await self._asking.persist(attempt)


def _read(answer: PartitionData, offset: int, max_records: int, committed: bool) -> Read:
    batches = answer.records or b""
    end_offset = answer.last_stable_offset if committed else answer.high_watermark
    records: list[Record] = []
    for record in visible_records(batches, answer.aborted_transactions or (), offset):
        if len(records) == max_records:
            return Read(records, records[-1].offset + 1, end_offset)
        records.append(record)
    return Read(records, offset_after(batches, offset), end_offset)


def share_of_bytes(partitions: int) -> int:
    """What to read at once from each of so many partitions that are read side by side."""
    return max(READ_BYTES_MAX * 4 // max(partitions, 4), SHARE_BYTES_MIN)


def _raise_for(error_code: int, message: str | None = None) -> None:
    if error_code:
        raise error_class(error_code)(*((message,) if message else ()))
