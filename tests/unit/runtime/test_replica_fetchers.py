"""What a follower asks its leader for, while partitions come and go and answers are on their way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ottla.config.topic import TopicSettings
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.replication.partition import NO_LEADER, Partition
from ottla.replication.replicas import Replicas
from ottla.runtime.replica_fetchers import ReplicaFetchers
from ottla.storage.log_directory import open_log_directories
from ottla.testing.disk import UnsyncedFiles

OURSELVES, LEADER = 1, 2
EPOCH = 5
SESSION = 77
TOPIC_ID = Uuid.parse("r6-V3gr2R3e7KizL8v4SxA")
LONG_S = 30


class FakeClock:
    def wall_ms(self) -> int:
        return 1_700_000_000_000

    monotonic_ms = wall_ms


class Leader:
    """The broker that is asked: it answers when a test says so."""

    def __init__(self) -> None:
        self._asked: asyncio.Queue[tuple[FetchRequest, asyncio.Future[FetchResponse]]] = asyncio.Queue()

    async def ask_broker(
        self, broker_id: int, request: Any, response: Any, *, purpose: str, within: float
    ) -> Any:
        answer: asyncio.Future[FetchResponse] = asyncio.get_running_loop().create_future()
        if purpose == "replication":
            self._asked.put_nowait((request, answer))
        return await answer

    async def asked(self) -> tuple[FetchRequest, asyncio.Future[FetchResponse]]:
        return await asyncio.wait_for(self._asked.get(), LONG_S)


class Following:
    """As much of a node as fetchers need, with replicas of one topic."""

    def __init__(self, path: Path, partitions: int) -> None:
        [directory] = open_log_directories(
            [str(path)], clock=FakeClock(), node_id=OURSELVES, files=UnsyncedFiles()
        )
        directory.load(lambda topic: TopicSettings())
        self.replicas = Replicas(OURSELVES)
        self.leader = Leader()
        self.partitions = []
        for number in range(partitions):
            name = TopicPartition("t", number)
            log = directory.create_log(name, TOPIC_ID, TopicSettings())
            self.partitions.append(self.replicas.add(name, TOPIC_ID, log, directory))
        node: Any = SimpleNamespace(
            node_id=OURSELVES,
            broker_epoch=1,
            clock=FakeClock(),
            is_durable=False,
            replicas=self.replicas,
            channels=self.leader,
            settings=SimpleNamespace(
                replica_fetch_wait_max_ms=500,
                replica_fetch_min_bytes=1,
                replica_fetch_response_max_bytes=2**20,
                replica_fetch_max_bytes=2**20,
                replica_fetch_backoff_ms=20,
                replica_socket_timeout_ms=30_000,
            ),
        )
        self.fetchers = ReplicaFetchers(node)

    def follow(self, partition: Partition) -> None:
        partition.take_state(LEADER, EPOCH, partition.partition_epoch + 1, (1, 2), (1, 2), 1, 0)
        self.fetchers.follow(partition)

    def remove(self, partition: Partition) -> None:
        self.replicas.remove(partition.partition)
        partition.stop_leading(NO_LEADER, partition.leader_epoch, partition.partition_epoch)
        self.fetchers.follow(partition)


def run(path: Path, story: Callable[[Following], Awaitable[None]], partitions: int = 2) -> None:
    async def tell() -> None:
        following = Following(path, partitions)
        await story(following)
        await following.fetchers.close()

    asyncio.run(tell())


def named(request: FetchRequest) -> list[int]:
    return [partition.partition for topic in request.topics for partition in topic.partitions]


def nothing_new(*partitions: int) -> FetchResponse:
    answers = [PartitionData(partition_index=n, high_watermark=0, log_start_offset=0) for n in partitions]
    return FetchResponse(
        session_id=SESSION, responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=answers)]
    )


def test_a_request_of_the_session_names_what_has_changed(tmp_path: Path) -> None:
    async def story(following: Following) -> None:
        for partition in following.partitions:
            following.follow(partition)
        request, answer = await following.leader.asked()
        assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [0, 1])
        answer.set_result(nothing_new(0, 1))
        request, answer = await following.leader.asked()
        assert (request.session_id, request.session_epoch, named(request)) == (SESSION, 1, [])
        following.remove(following.partitions[0])
        answer.set_result(nothing_new())
        request, answer = await following.leader.asked()
        assert [(each.topic_id, each.partitions) for each in request.forgotten_topics_data] == [
            (TOPIC_ID, [0])
        ]

    run(tmp_path, story)


def test_a_partition_removed_during_its_first_request_is_taken_out_of_the_session(tmp_path: Path) -> None:
    """The leader would go on to answer for it, with an error, at once and for ever."""

    async def story(following: Following) -> None:
        for partition in following.partitions:
            following.follow(partition)
        _, answer = await following.leader.asked()
        following.remove(following.partitions[0])
        answer.set_result(nothing_new(0, 1))
        request, _ = await following.leader.asked()
        assert request.session_epoch == 1
        assert [(each.topic_id, each.partitions) for each in request.forgotten_topics_data] == [
            (TOPIC_ID, [0])
        ]

    run(tmp_path, story)
