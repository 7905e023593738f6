"""A producer: records into batches, batches to the leaders of their partitions, retried until they are there.

Each partition has one batch on its way at a time, and meanwhile the next one fills. So the order of a
partition is kept, batches grow by themselves when the broker is the slower one, and there is nothing to
tune. With acks=all the producer is idempotent: a batch that was sent twice is stored once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, Disconnected, RequestTooLarge, check
from ottla.client.partitioner import RoundRobin, partition_of_key
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, add_to_sequence, write_batch
from ottla.protocol.errors import DuplicateSequenceNumber, KafkaError
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

ALL: Final = -1
BATCH_BYTES: Final = 256 * 1024
"""A batch is closed at this size, before compression. Kafka's own producer closes it at 16 KiB; here it only
gets that large when records come in faster than the broker takes them. It stays below the 1 MiB that a topic
accepts by default."""
QUEUED_BATCHES: Final = 4
"""Closed batches that may wait for their turn on a partition, before `send` waits too."""
_RECORD_OVERHEAD: Final = 24
_REQUEST_OVERHEAD: Final = 512
"""At most so much of a Produce request is not records: names of the topic and the client."""
_REQUEST_LIMIT: Final = "socket.request.max.bytes"
_LIMIT_SECONDS: Final = 5.0
"""How long a broker that hung up is asked for its limit."""

Headers = Sequence[tuple[str, bytes | None]]


class _Identity(NamedTuple):
    """What a broker knows an idempotent producer by."""

    producer_id: int = -1
    epoch: int = -1


class Delivery:
    """Where a record went, once it is there."""

    __slots__ = ("_batch", "_index", "partition")

    def __init__(self, batch: _Batch, index: int, partition: int) -> None:
        self._batch, self._index, self.partition = batch, index, partition

    async def offset(self) -> int:
        """The record's offset; -1 when nobody was asked to confirm it (acks=0). Raises what went wrong."""
        base = await asyncio.shield(self._batch.sent)
        return base + self._index if base >= 0 else -1

    def when_done(self, callback: Callable[[], None]) -> None:
        """Have this called when the record is there, or is known to have failed."""
        self._batch.sent.add_done_callback(lambda _: callback())


class Producer:
    """`async with Producer(cluster) as producer: await producer.send(topic, value)`.

    Leaving the block without an error waits for everything that was sent. A batch that fails for good fails
    its deliveries, and `flush` raises the first such error.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = ALL,
        codec: int = 0,
        batch_bytes: int = BATCH_BYTES,
        create: bool = True,
    ) -> None:
        self.cluster = cluster
        self.acks, self.codec, self.batch_bytes, self.create = acks, codec, batch_bytes, create
        self._identity: _Identity | None = None
        self._lanes: dict[TopicPartition, _Lane] = {}
        self._round_robin: dict[str, RoundRobin] = {}
        self._tasks = asyncio.TaskGroup()
        self._identifying = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            for lane in self._lanes.values():
                lane.stop()
            await self._tasks.__aexit__(None, None, None)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Put a record on its way. Waits only when too much is on its way already."""
        if partition is None:
            partition = await self._choose(topic, key)
        lane = self._lanes.get(TopicPartition(topic, partition))
        if lane is None:
            lane = await self._open_lane(TopicPartition(topic, partition))
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        return await lane.add(Record(0, timestamp_ms, key, value, list(headers)))

    @property
    def has_failed(self) -> bool:
        """Whether `flush` would raise: it may be of no use to send more."""
        return any(lane.has_failed for lane in self._lanes.values())

    async def flush(self) -> None:
        """Wait until everything sent so far is there; raises the first error among it."""
        for lane in list(self._lanes.values()):
            await lane.flush()

    async def _choose(self, topic: str, key: bytes | None) -> int:
        found = await self.cluster.topic(topic, create=self.create)
        if key is not None:
            # Not the available ones: a key stays with its partition, or other clients would not agree.
            return partition_of_key(key, len(found.partitions))
        turns = self._round_robin.get(topic)
        if turns is None:
            turns = self._round_robin[topic] = RoundRobin()
        return turns.choose(found.available or list(found.partitions))

    async def _open_lane(self, partition: TopicPartition) -> _Lane:
        await self.cluster.topic(partition.topic, create=self.create)
        await self.cluster.persist(lambda: self.cluster.leader(partition))
        lane = self._lanes.get(partition)
        if lane is None:
            lane = self._lanes[partition] = _Lane(self, partition)
            lane.task = self._tasks.create_task(lane.run())
        return lane

    async def identity(self, *, fresh: bool) -> _Identity:
        """The producer id that all partitions share, or one that nothing was ever sent with."""
        if fresh:
            return await self.cluster.persist(self._init_producer_id)
        async with self._identifying:
            if self._identity is None:
                self._identity = await self.cluster.persist(self._init_producer_id)
            return self._identity

    async def _init_producer_id(self) -> _Identity:
        connection = await self.cluster.any()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
        response = await connection.ask(request, InitProducerIdResponse, within=self.cluster.timeout)
        check(response.error_code, "asking for a producer id")
        return _Identity(response.producer_id, response.producer_epoch)


class _Batch:
    """Records that go together, and what becomes of them: `sent` is their base offset or an error."""

    __slots__ = ("bytes", "records", "sent")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.bytes = 0
        self.sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()


class _Lane:
    """The way to one partition: batches in a row, one of them being sent."""

    def __init__(self, producer: Producer, partition: TopicPartition) -> None:
        self.producer, self.partition = producer, partition
        self.task: asyncio.Task[None] | None = None
        self._waiting: list[_Batch] = []
        self._sending: _Batch | None = None
        self._failed: Exception | None = None
        self._identity: _Identity | None = None if producer.acks == ALL else _Identity()
        self._sequence = 0
        self._lost_a_batch = False
        self._work = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def add(self, record: Record) -> Delivery:
        while len(self._waiting) >= QUEUED_BATCHES and self._waiting[-1].bytes >= self.producer.batch_bytes:
            self._room.clear()
            await self._room.wait()
        if not self._waiting or self._waiting[-1].bytes >= self.producer.batch_bytes:
            self._waiting.append(_Batch())
        batch = self._waiting[-1]
        batch.records.append(record)
        batch.bytes += _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
        for name, value in record.headers:
            batch.bytes += len(name) + len(value or b"")
        self._work.set()
        return Delivery(batch, len(batch.records) - 1, self.partition.partition)

    @property
    def has_failed(self) -> bool:
        return self._failed is not None

    async def flush(self) -> None:
        last = self._waiting[-1] if self._waiting else self._sending
        if last is not None:
            await asyncio.wait([last.sent])
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def run(self) -> None:
        while True:
            await self._work.wait()
            batch = self._sending = self._waiting.pop(0)
            if not self._waiting:
                self._work.clear()
            self._room.set()
            try:
                batch.sent.set_result(await self._send(batch))
            except (KafkaError, ClientError) as error:
                self._failed = self._failed or error
                batch.sent.set_exception(error)
                batch.sent.exception()  # seen: flush tells it, whether or not anybody asks for the delivery
            finally:
                self._sending = None
                if not batch.sent.done():
                    batch.sent.cancel()

    async def _send(self, batch: _Batch) -> int:
        producer = self.producer
        identity = self._identity
        if identity is None:
            identity = self._identity = await producer.identity(fresh=self._lost_a_batch)
            self._sequence = 0
        records = write_batch(
            batch.records,
            codec=producer.codec,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=self._sequence if identity.producer_id >= 0 else -1,
        )
        try:
            offset = await producer.cluster.persist(lambda: self._send_once(records))
        except (KafkaError, ClientError):
            if producer.acks == ALL:
                # The batch may be there after all. The next one must not look like a repetition of it.
                self._identity, self._lost_a_batch = None, True
            raise
        self._sequence = add_to_sequence(self._sequence, len(batch.records))
        return offset

    async def _send_once(self, records: bytearray) -> int:
        cluster, partition = self.producer.cluster, self.partition
        connection = await cluster.broker(await cluster.leader(partition))
        topic = await cluster.topic(partition.topic)
        request = ProduceRequest(
            acks=self.producer.acks,
            timeout_ms=int(cluster.timeout * 1000),
            topic_data=[
                TopicProduceData(
                    name=topic.name,
                    topic_id=topic.id,
                    partition_data=[PartitionProduceData(index=partition.partition, records=records)],
                )
            ],
        )
        if self.producer.acks == 0:
            await connection.tell(request, within=cluster.timeout)
            return -1
        try:
            response = await connection.ask(request, ProduceResponse, within=cluster.timeout)
        except Disconnected:
            await self._check_size(len(records))
            raise
        ((answer,),) = [each.partition_responses for each in response.responses]
        if answer.error_code != DuplicateSequenceNumber.code:  # it is there, sent by an earlier attempt
            check(answer.error_code, f"partition {partition}", answer.error_message)
        return answer.base_offset

    async def _check_size(self, size: int) -> None:
        """Raise RequestTooLarge if that is why the leader hung up, which it does without a word. It would do
        so again."""
        from ottla.client import admin  # seldom needed, and it brings many messages along

        cluster = self.producer.cluster
        try:
            async with asyncio.timeout(min(_LIMIT_SECONDS, cluster.timeout)):
                leader = await cluster.leader(self.partition)
                (found,) = await admin.describe_configs(
                    cluster, admin.ResourceType.BROKER, str(leader), keys=[_REQUEST_LIMIT]
                )
            limit = int(found.value or "")
        except (KafkaError, ClientError, TimeoutError, ValueError):
            return  # it may not be asked, or is away, which explains as much
        if size + _REQUEST_OVERHEAD > limit:
            raise RequestTooLarge(
                f"broker {leader} closed the connection: a request with {size:,} bytes of records is above "
                f"its {_REQUEST_LIMIT} of {limit:,}; raise that, or send smaller records"
            )
