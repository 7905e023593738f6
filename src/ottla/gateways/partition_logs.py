"""Partitions as plain logs of JSON values, on a broker in this process.

It asks the broker over a connection, as any client does, so what it writes every other door reads: a string
is stored as its text, any other value as JSON with a header that says so.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.connection import Connection
from ottla.protocol.batch import Record, iter_batches, read_records, write_batch
from ottla.protocol.errors import (
    KafkaError,
    OffsetOutOfRange,
    RequestTimedOut,
    UnknownTopicOrPartition,
    error_class,
)
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.server.broker import Broker

# The group under which offsets are committed that name no group.
GROUP: Final = "maelstrom"
# The newest versions in which topics are named and not numbered.
PRODUCE_VERSION: Final = 12
FETCH_VERSION: Final = 12
OFFSET_COMMIT_VERSION: Final = 8
OFFSET_FETCH_VERSION: Final = 7
FIND_COORDINATOR_VERSION: Final = 3
TIMEOUT_MS: Final = 30_000
FETCH_BYTES: Final = 1 << 20
RETRY_SECONDS: Final = 0.05
# What a value that is not a string is stored with.
CONTENT_TYPE: Final = "content-type"
JSON: Final = b"application/json"


class Appended(NamedTuple):
    offset: int
    segment: int  # base offset of the segment that took it
    timestamp_ms: int


class Info(NamedTuple):
    start_offset: int
    end_offset: int
    segments: int
    total_bytes: int


class PartitionLogs:
    """The partitions of one broker. Topics are created, and widened, when they are written to."""

    def __init__(self, broker: Broker, connection: Connection) -> None:
        self._broker = broker
        self._connection = connection
        self._has_coordinator = False

    @classmethod
    async def of(cls, broker: Broker) -> PartitionLogs:
        host, port = broker.addresses[0]
        return cls(broker, await Connection.open(host, port, client_id="ottla-node"))

    def close(self) -> None:
        self._connection.close()

    async def append(self, topic: str, partition: int, value: Any) -> Appended:
        await self._ensure(topic, partition)
        now_ms = time.time_ns() // 1_000_000
        batch = write_batch([_record(value, now_ms)])
        data = TopicProduceData(
            name=topic, partition_data=[PartitionProduceData(index=partition, records=memoryview(batch))]
        )
        request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[data])
        response = await self._connection.ask(request, ProduceResponse, at_most=PRODUCE_VERSION)
        answer = response.responses[0].partition_responses[0]
        _check(answer.error_code, answer.error_message)
        log = self._broker.node.replicas.get(topic, partition).log
        bases = [segment.base_offset for segment in log.segments if segment.base_offset <= answer.base_offset]
        return Appended(answer.base_offset, max(bases, default=0), max(now_ms, answer.log_append_time_ms))

    async def read(self, topic: str, partition: int, offset: int, count: int) -> list[tuple[int, Any]]:
        """Up to `count` values from `offset` on. Raises `UnknownTopicOrPartition` and `OffsetOutOfRange`."""
        self._broker.node.replicas.get(topic, partition)
        found: list[tuple[int, Any]] = []
        while len(found) < count:
            wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=FETCH_BYTES,
                topics=[FetchTopic(topic=topic, partitions=[wanted])],
            )
            response = await self._connection.ask(request, FetchResponse, at_most=FETCH_VERSION)
            answer = response.responses[0].partitions[0]
            if answer.error_code == OffsetOutOfRange.code:
                info = self.info(topic, partition)
                raise OffsetOutOfRange(
                    f"{topic}-{partition} has offsets {info.start_offset} to {info.end_offset}, not {offset}"
                )
            _check(answer.error_code, None)
            batches = list(iter_batches(answer.records or b""))
            if not batches:
                break
            for header, batch in batches:
                if not header.is_control:
                    found += [(r.offset, _value(r)) for r in read_records(batch) if r.offset >= offset]
                offset = header.last_offset + 1
        return found[:count]

    async def poll(self, topic: str, offset: int, count: int) -> list[tuple[int, Any]]:
        """As `read`, but where there is nothing there is nothing."""
        try:
            return await self.read(topic, 0, offset, count)
        except (UnknownTopicOrPartition, OffsetOutOfRange):
            return []

    def info(self, topic: str, partition: int) -> Info:
        log = self._broker.node.replicas.get(topic, partition).log
        return Info(log.start_offset, log.end_offset, log.segment_count, log.size)

    async def commit(self, offsets: Mapping[str, int]) -> None:
        for topic in offsets:
            await self._ensure(topic, 0)
        await self._find_coordinator()
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)],
            )
            for topic, offset in offsets.items()
        ]
        request = OffsetCommitRequest(group_id=GROUP, topics=topics)
        response = await self._connection.ask(request, OffsetCommitResponse, at_most=OFFSET_COMMIT_VERSION)
        for answer in response.topics:
            _check(answer.partitions[0].error_code, None)

    async def committed(self, topics: Sequence[str]) -> dict[str, int]:
        """The committed offset of each topic that has one."""
        await self._find_coordinator()
        wanted = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0]) for topic in topics]
        request = OffsetFetchRequest(group_id=GROUP, topics=wanted)
        response = await self._connection.ask(request, OffsetFetchResponse, at_most=OFFSET_FETCH_VERSION)
        _check(response.error_code, None)
        found = {topic.name: topic.partitions[0].committed_offset for topic in response.topics}
        return {topic: offset for topic, offset in found.items() if offset >= 0}

    async def _find_coordinator(self) -> None:
        """The first who asks for a group's coordinator makes the broker create the topic of its offsets."""
        while not self._has_coordinator:
            request = FindCoordinatorRequest(key=GROUP)
            response = await self._connection.ask(
                request, FindCoordinatorResponse, at_most=FIND_COORDINATOR_VERSION
            )
            if response.error_code and not error_class(response.error_code).retriable:
                _check(response.error_code, response.error_message)
            self._has_coordinator = not response.error_code
            if response.error_code:
                await asyncio.sleep(RETRY_SECONDS)

    async def _ensure(self, topic: str, partition: int) -> None:
        if self._broker.node.replicas.find(topic, partition) is not None:
            return
        known = self._broker.node.image.topics.get(topic)
        if known is None:
            made = CreatableTopic(name=topic, num_partitions=partition + 1, replication_factor=1)
            created = await self._connection.ask(
                CreateTopicsRequest(topics=[made], timeout_ms=TIMEOUT_MS), CreateTopicsResponse
            )
            _check(created.topics[0].error_code, created.topics[0].error_message)
        elif partition >= len(known.partitions):
            wider = CreatePartitionsTopic(name=topic, count=partition + 1, assignments=None)
            widened = await self._connection.ask(
                CreatePartitionsRequest(topics=[wider], timeout_ms=TIMEOUT_MS), CreatePartitionsResponse
            )
            _check(widened.results[0].error_code, widened.results[0].error_message)
        await self._until_here(topic, partition)

    async def _until_here(self, topic: str, partition: int) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_MS / 1000):
                while self._broker.node.replicas.find(topic, partition) is None:  # noqa: ASYNC110
                    await asyncio.sleep(0)
        except TimeoutError:
            raise RequestTimedOut from None


def _record(value: Any, now_ms: int) -> Record:
    if isinstance(value, str):
        return Record(timestamp=now_ms, value=value.encode("utf-8", "surrogatepass"))
    text = json.dumps(value, separators=(",", ":")).encode()
    return Record(timestamp=now_ms, value=text, headers=[(CONTENT_TYPE, JSON)])


def _value(record: Record) -> Any:
    if record.value is None:
        return None
    if (CONTENT_TYPE, JSON) in record.headers:
        try:
            return json.loads(record.value)
        except ValueError:
            pass  # another door wrote it and was wrong about it; its text is still worth showing
    return record.value.decode("utf-8", "replace")


def _check(code: int, message: str | None) -> None:
    if code:
        error: type[KafkaError] = error_class(code)
        raise error(message) if message else error()
