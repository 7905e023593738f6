"""A real node without sockets, a producer that speaks to its handlers, and a disk that can be held up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from ottla.config.broker import broker_settings, development_defaults
from ottla.config.listeners import Listeners
from ottla.core.files import Files
from ottla.core.principal import ANONYMOUS, Principal
from ottla.core.types import TopicPartition
from ottla.protocol import codec
from ottla.protocol.batch import TRANSACTIONAL, Record, iter_batches, read_records, write_batch
from ottla.protocol.control import read_end_transaction
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from ottla.replication.partition import Partition
from ottla.runtime.node import Node
from ottla.server.context import Context
from ottla.server.handlers.describe_transactions import describe_transactions
from ottla.server.handlers.end_txn import end_txn
from ottla.server.handlers.fetch import fetch
from ottla.server.handlers.init_producer_id import init_producer_id
from ottla.server.handlers.produce import produce
from ottla.server.stepping import carry_on
from ottla.testing.disk import UnsyncedFiles

LONG_S = 30
Handler = Callable[[Any, Any], Coroutine[Any, Any, Any]]
Story = Callable[["ServingNode"], Awaitable[None]]


class Connection(NamedTuple):
    listener_name: str = "PLAINTEXT"
    dialled_host: str = "127.0.0.1"
    dialled_port: int = 9092
    client_host: str = "/127.0.0.1"
    address: str = "127.0.0.1"
    principal: Principal = ANONYMOUS


def committed_records(data: PartitionData) -> list[tuple[int, bytes]]:
    """What a consumer makes of an answer: the records outside of aborted transactions, by offset."""
    to_come = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    aborted: set[int] = set()
    found = []
    for header, batch in iter_batches(data.records or b""):
        while to_come and to_come[0][0] <= header.last_offset:
            aborted.add(to_come.pop(0)[1])
        if header.is_control:
            marker = read_end_transaction(batch)
            if marker is not None and not marker.commit:
                aborted.discard(marker.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            found += [(record.offset, record.value or b"") for record in read_records(batch)]
    return found


class ServingNode:
    def __init__(self, path: Path, files: Files | None = None, **properties: str) -> None:
        given = {"log.dirs": str(path), "listeners": "PLAINTEXT://127.0.0.1:9092"}
        given |= {name.replace("_", "."): value for name, value in properties.items()}
        given = development_defaults(given) | given
        settings = broker_settings(given)
        self.node = Node(given, settings, Listeners.parse(settings), files=files or UnsyncedFiles())

    async def __aenter__(self) -> ServingNode:
        await self.node.load()
        await self.node.join([("127.0.0.1", 9092)])
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.node.stop()

    def start(self, handler: Handler, request: Any, version: int) -> asyncio.Future[Any]:
        """Start a handler as a connection does: by hand until it waits, and on bytes that are then reused."""
        frame = bytearray(codec.encode(request, version))
        received = codec.decode(type(request), version, frame)
        steps = handler(received, Context(version, "test", Connection(), self.node))  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        try:
            waits_for = steps.send(None)
        except StopIteration as done:
            answered: asyncio.Future[Any] = loop.create_future()
            answered.set_result(done.value)
            return answered
        finally:
            self.node.replicas.write_pending()
            frame[:] = bytes(len(frame))
        return loop.create_task(carry_on(steps, waits_for))

    async def call(self, handler: Handler, request: Any, version: int) -> Any:
        response = await self.start(handler, request, version)
        return codec.decode(type(response), version, codec.encode(response, version))

    async def create(self, topic: str, partitions: int = 1) -> None:
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        await self.node.quorum.submit(CreateTopicsRequest(topics=[wanted], timeout_ms=LONG_S * 1000), 7)
        await self.node.caught_up()

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.node.replicas.get(topic, index)

    async def read(self, topic: str, *, index: int = 0, committed: bool = True) -> PartitionData:
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=1 if committed else 0,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)],
                )
            ],
        )
        response = await self.call(fetch, request, 12)
        ((data,),) = [topic.partitions for topic in response.responses]
        return data  # type: ignore[no-any-return]

    async def values(self, topic: str, *, index: int = 0) -> list[bytes]:
        """What a reader of committed records sees."""
        data = await self.read(topic, index=index)
        return [value for _, value in committed_records(data)]

    async def describe(self, transactional_id: str) -> TransactionState:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (state,) = (await self.call(describe_transactions, request, 0)).transaction_states
        return state  # type: ignore[no-any-return]

    async def reaches(self, transactional_id: str, state: str) -> None:
        while True:
            if (await self.describe(transactional_id)).transaction_state == state:
                return
            await asyncio.sleep(0.001)


class Producer:
    """A transactional producer that keeps count of its sequences, and otherwise does as it is told."""

    def __init__(self, serving: ServingNode, transactional_id: str = "tx", version: int = 13) -> None:
        self.serving = serving
        self.transactional_id = transactional_id
        self.version = version
        self.id, self.epoch = -1, -1
        self.sequences: dict[TopicPartition, int] = {}

    async def init(self, timeout_ms: int = 60_000) -> Producer:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms
        )
        response = await self.serving.call(init_producer_id, request, 5)
        assert response.error_code == 0, response
        self._is_now(response.producer_id, response.producer_epoch)
        return self

    def _is_now(self, producer_id: int, epoch: int) -> None:
        if (self.id, self.epoch) != (producer_id, epoch):
            self.id, self.epoch = producer_id, epoch
            self.sequences.clear()

    def batch(self, *values: bytes, sequence: int = 0, transactional: bool = True) -> bytearray:
        return write_batch(
            [Record(timestamp=self.serving.node.clock.wall_ms(), value=value) for value in values],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            attributes=TRANSACTIONAL if transactional else 0,
        )

    def start(
        self,
        topic: str,
        *values: bytes,
        index: int = 0,
        acks: int = -1,
        sequence: int | None = None,
        transactional: bool = True,
        **fields: Any,
    ) -> asyncio.Future[Any]:
        """Send a batch; the next one has the next sequence, whatever becomes of this one."""
        at = TopicPartition(topic, index)
        if sequence is None:
            sequence = self.sequences.get(at, 0)
            self.sequences[at] = sequence + len(values)
        records = self.batch(*values, sequence=sequence, transactional=transactional)
        return self.start_records({at: records}, acks=acks, **fields)

    def start_records(
        self, records: dict[TopicPartition, bytearray], acks: int = -1, **fields: Any
    ) -> asyncio.Future[Any]:
        topics = self.serving.node.image.topics
        request = ProduceRequest(
            **{"transactional_id": self.transactional_id} | fields,
            acks=acks,
            timeout_ms=LONG_S * 1000,
            topic_data=[
                TopicProduceData(
                    name=at.topic,
                    topic_id=topics[at.topic].id,
                    partition_data=[PartitionProduceData(index=at.partition, records=batch)],
                )
                for at, batch in records.items()
            ],
        )
        return self.serving.start(produce, request, self.version)

    async def send(self, topic: str, *values: bytes, **how: Any) -> PartitionProduceResponse:
        ((answer,),) = [t.partition_responses for t in (await self.start(topic, *values, **how)).responses]
        return answer  # type: ignore[no-any-return]

    async def end(self, *, commit: bool, version: int | None = None) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        version = (5 if self.version >= 12 else 4) if version is None else version
        response: EndTxnResponse = await self.serving.call(end_txn, request, version)
        if version >= 5 and not response.error_code:
            self._is_now(response.producer_id, response.producer_epoch)
        return response

    async def finish(self, *, commit: bool) -> None:
        """End the transaction, and wait until its markers are written."""
        assert (await self.end(commit=commit)).error_code == 0
        await self.serving.reaches(self.transactional_id, "CompleteCommit" if commit else "CompleteAbort")


class GatedFiles(UnsyncedFiles):
    """While the gate is shut, syncs of logs with this name in their path wait at it. `synced` has all."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open = threading.Event()
        self._open.set()
        self._arrived = threading.Semaphore(0)
        self._paths: dict[object, str] = {}
        self.synced: list[str] = []

    def shut(self) -> None:
        self._open.clear()

    def lift(self) -> None:
        self._open.set()

    async def somebody_syncs(self) -> None:
        assert await asyncio.to_thread(self._arrived.acquire, timeout=LONG_S)

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        fd = super().open(path, flags, mode)
        self._paths[fd] = path
        return fd

    def fdatasync(self, fd: object) -> None:
        path = self._paths.get(fd, "")
        self.synced.append(path)
        if self._name in path and not self._open.is_set():
            self._arrived.release()
            assert self._open.wait(timeout=LONG_S)

    fsync = fdatasync


async def until(is_so: Callable[[], bool]) -> None:
    """Let the loop turn until something is so; the story as a whole has a limit."""
    for _ in iter(is_so, True):
        await asyncio.sleep(0)


def run(serving: ServingNode, story: Story) -> None:
    async def tell() -> None:
        async with serving:
            await asyncio.wait_for(story(serving), LONG_S)

    asyncio.run(tell())
