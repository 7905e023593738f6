"""A real node without sockets, and members of share groups that speak to its handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from ottla.config.broker import broker_settings, development_defaults
from ottla.config.listeners import Listeners
from ottla.core.clock import Clock
from ottla.core.ids import Uuid
from ottla.core.principal import ANONYMOUS
from ottla.core.types import SHARE_GROUP_STATE
from ottla.metadata.image import Topic
from ottla.protocol import codec
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.share_acknowledge import (
    AcknowledgementBatch as Acknowledgement,
)
from ottla.protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from ottla.protocol.messages.share_fetch import (
    FetchPartition,
    FetchTopic,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from ottla.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from ottla.replication.partition import Partition
from ottla.runtime.clock import SystemClock
from ottla.runtime.node import Node
from ottla.server.context import Context
from ottla.server.handlers.share_acknowledge import share_acknowledge
from ottla.server.handlers.share_fetch import share_fetch
from ottla.server.handlers.share_group_heartbeat import share_group_heartbeat
from ottla.server.stepping import carry_on
from ottla.testing.disk import UnsyncedFiles

LONG_S = 30
Handler = Callable[[Any, Any], Coroutine[Any, Any, Any]]


class Connection:
    listener_name = "PLAINTEXT"
    dialled_host = "127.0.0.1"
    dialled_port = 9092
    client_host = "/127.0.0.1"
    address = "127.0.0.1"
    principal = ANONYMOUS

    def __init__(self) -> None:
        self.endings: dict[object, Callable[[], None]] = {}

    def lose(self) -> None:
        for end in self.endings.values():
            end()


class MovableClock:
    """The system's clock, and however far a test has moved it on."""

    def __init__(self) -> None:
        self._clock: Clock = SystemClock()
        self.ahead_ms = 0

    def wall_ms(self) -> int:
        return self._clock.wall_ms() + self.ahead_ms

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms() + self.ahead_ms


class SharingNode:
    def __init__(self, path: Path, **properties: str) -> None:
        given = {"log.dirs": str(path), "listeners": "PLAINTEXT://127.0.0.1:9092"}
        given |= {"share.coordinator.state.topic.num.partitions": "2", "offsets.topic.num.partitions": "2"}
        given |= {name.replace("_", "."): value for name, value in properties.items()}
        given = development_defaults(given) | given
        settings = broker_settings(given)
        self.clock = MovableClock()
        self.node = Node(given, settings, Listeners.parse(settings), clock=self.clock, files=UnsyncedFiles())

    async def __aenter__(self) -> SharingNode:
        await self.node.load()
        await self.node.join([("127.0.0.1", 9092)])
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.node.stop()

    def start(
        self, handler: Handler, request: Any, version: int, connection: Connection
    ) -> asyncio.Future[Any]:
        """Start a handler as a connection does: by hand until it waits."""
        received = codec.decode(type(request), version, codec.encode(request, version))
        steps = handler(received, Context(version, "test", connection, self.node))  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        try:
            waits_for = steps.send(None)
        except StopIteration as done:
            answered: asyncio.Future[Any] = loop.create_future()
            answered.set_result(done.value)
            return answered
        finally:
            self.node.replicas.write_pending()
        return loop.create_task(carry_on(steps, waits_for))

    async def call(
        self, handler: Handler, request: Any, version: int, connection: Connection | None = None
    ) -> Any:
        response = await self.start(handler, request, version, connection or Connection())
        return codec.decode(type(response), version, codec.encode(response, version))

    async def create(self, topic: str, partitions: int = 1) -> Uuid:
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        await self.node.quorum.submit(CreateTopicsRequest(topics=[wanted], timeout_ms=LONG_S * 1000), 7)
        await self.node.caught_up()
        return self.topic(topic).id

    async def configure(self, group: str, **configs: str) -> None:
        resource = AlterConfigsResource(
            resource_type=32,
            resource_name=group,
            configs=[
                AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
                for name, value in configs.items()
            ],
        )
        response = await self.node.quorum.submit(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert all(each.error_code == 0 for each in response.responses), response

    def topic(self, name: str) -> Topic:
        return self.node.image.topics[name]

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.node.replicas.get(topic, index)

    def produce(self, topic: str, *counts: int, index: int = 0) -> None:
        now_ms = self.clock.wall_ms()
        for count in counts:
            records = [Record(timestamp=now_ms, value=b"value") for _ in range(count)]
            self.partition(topic, index).append(write_batch(records), now_ms)
        self.node.replicas.write_pending()

    def state_logs(self) -> list[Partition]:
        return [each for each in self.node.replicas if each.partition.topic == SHARE_GROUP_STATE]


class Member:
    """A member of group g on a connection of its own."""

    def __init__(self, serving: SharingNode, name: str = "member", topic: str = "t") -> None:
        self.serving = serving
        self.name = name
        self.topic = topic
        self.connection = Connection()
        self.epoch = 0
        self.session_epoch = 0

    @property
    def topic_id(self) -> Uuid:
        return self.serving.topic(self.topic).id

    async def beat(self) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id="g",
            member_id=self.name,
            member_epoch=self.epoch,
            subscribed_topic_names=[self.topic] if self.epoch == 0 else None,
        )
        response: ShareGroupHeartbeatResponse = await self.serving.call(
            share_group_heartbeat, request, 1, self.connection
        )
        if not response.error_code:
            self.epoch = response.member_epoch
        return response

    async def join(self) -> Member:
        response = await self.beat()
        assert response.error_code == 0, response
        assert response.assignment is not None
        return self

    def start_fetch(self, *, wait_ms: int = 0, most: int = 500, **fields: Any) -> asyncio.Future[Any]:
        request = ShareFetchRequest(
            **{
                "group_id": "g",
                "member_id": self.name,
                "share_session_epoch": self.session_epoch,
                "max_wait_ms": wait_ms,
                "min_bytes": 1,
                "max_bytes": 1 << 20,
                "max_records": most,
                "batch_size": most,
                "topics": [
                    FetchTopic(topic_id=self.topic_id, partitions=[FetchPartition(partition_index=0)])
                ],
            }
            | fields
        )
        return self.serving.start(share_fetch, request, 2, self.connection)

    async def fetch(self, **how: Any) -> PartitionData:
        """What one fetch brings; it has time to load the partition."""
        response = self._went_well(await self.start_fetch(**{"wait_ms": 5_000} | how))
        partitions = [one for topic in response.responses for one in topic.partitions]
        return partitions[0] if partitions else PartitionData()

    def _went_well(self, response: ShareFetchResponse) -> ShareFetchResponse:
        assert response.error_code == 0, response
        self.session_epoch += 1
        return response

    async def acknowledge(self, first: int, last: int, *types: int) -> int:
        batch = Acknowledgement(first_offset=first, last_offset=last, acknowledge_types=list(types))
        request = ShareAcknowledgeRequest(
            group_id="g",
            member_id=self.name,
            share_session_epoch=self.session_epoch,
            topics=[
                AcknowledgeTopic(
                    topic_id=self.topic_id,
                    partitions=[AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])],
                )
            ],
        )
        response = await self.serving.call(share_acknowledge, request, 2, self.connection)
        assert response.error_code == 0, response
        self.session_epoch += 1
        ((answer,),) = [topic.partitions for topic in response.responses]
        return int(answer.error_code)


def offsets(data: PartitionData) -> list[int]:
    return [
        number for each in data.acquired_records for number in range(each.first_offset, each.last_offset + 1)
    ]


async def until(is_so: Callable[[], bool]) -> None:
    """Let the loop turn until something is so; the story as a whole has a limit."""
    for _ in iter(is_so, True):
        await asyncio.sleep(0)


def run(serving: SharingNode, story: Callable[[SharingNode], Coroutine[Any, Any, None]]) -> None:
    async def tell() -> None:
        async with serving:
            await asyncio.wait_for(story(serving), LONG_S)

    asyncio.run(tell())
