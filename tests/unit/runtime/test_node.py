"""A node that follows the metadata log: what it does while it is behind, and when a disk fails under it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla import Broker
from ottla.core.ids import Uuid
from ottla.metadata.delta import Delta
from ottla.metadata.image import Image
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import KafkaStorageError, NotLeaderOrFollower, RequestTimedOut
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.runtime.metadata_publisher import SLICE
from ottla.runtime.node import Node
from ottla.storage.files import OsFiles
from ottla.testing.disk import FaultyFiles

NOW_MS = 1_700_000_000_000


def run(directories: str, story: Callable[[Node], Awaitable[None]]) -> None:
    async def tell() -> None:
        properties = {"log.dirs": directories, "ottla.durability": "kafka"}
        async with Broker(properties=properties) as broker:
            await story(broker.node)

    asyncio.run(tell())


async def create(node: Node, name: str, partitions: int) -> Uuid:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    response: Any = await node.quorum.submit(CreateTopicsRequest(topics=[topic]), 7)
    assert response.topics[0].error_code == 0
    return node.image.topics[name].id


async def delete(node: Node, name: str) -> None:
    response: Any = await node.quorum.submit(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]), 6)
    assert response.responses[0].error_code == 0


def batch() -> bytearray:
    return write_batch([Record(offset=0, timestamp=NOW_MS, key=None, value=b"x", headers=[])])


def test_nothing_is_written_to_a_topic_from_the_moment_that_it_is_deleted(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        await create(node, "t", 1)
        await node.caught_up()
        old = node.replicas.get("t", 0)
        seen = []

        def look(image: Image, delta: Delta) -> None:
            """The topic is gone from the metadata, the node has not got to it: a new one could be there."""
            if delta.deleted_topics:
                seen.append(node.replicas.get("t", 0))
                with pytest.raises(NotLeaderOrFollower):
                    old.append(batch(), NOW_MS)

        node.quorum.subscribe(look)
        await delete(node, "t")
        new_id = await create(node, "t", 1)
        await node.caught_up()
        assert seen == [old]
        assert old.log.end_offset == 0
        assert node.replicas.get("t", 0).topic_id == new_id
        assert node.replicas.get("t", 0).append(batch(), NOW_MS).base_offset == 0

    run(str(tmp_path), story)


def test_a_topic_that_is_deleted_while_it_is_made_leaves_nothing(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        await create(node, "large", 40 * SLICE)
        await delete(node, "large")
        await node.caught_up()
        assert len(node.replicas) == 0

    run(str(tmp_path), story)


def test_a_disk_that_fails_while_a_topic_is_deleted_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FaultyFiles(OsFiles())
    monkeypatch.setattr("ottla.runtime.node.OsFiles", lambda: files)

    async def story(node: Node) -> None:
        await create(node, "t", 8)
        await node.caught_up()
        good, bad = node.log_directories
        assert {partition.directory for partition in node.replicas} == {good, bad}
        files.fail("rename", f"{bad.path}/t-*-delete")
        await delete(node, "t")
        await node.caught_up()
        assert len(node.replicas) == 0
        assert (good.error, bad.error is None) == (None, False)
        assert not good.logs
        await create(node, "next", 4)
        await node.caught_up()
        assert {partition.directory for partition in node.replicas} == {good}

    run(f"{tmp_path}/one,{tmp_path}/two", story)


def test_a_disk_that_takes_no_new_epoch_is_offline_and_the_others_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = f"{tmp_path}/one,{tmp_path}/two"

    async def first(node: Node) -> None:
        await create(node, "t", 4)
        await node.caught_up()

    async def second(node: Node) -> None:
        good, bad = node.log_directories
        assert (good.error, bad.error is None) == (None, False)
        for partition in node.replicas:
            assert partition.is_leader is (partition.directory is good)

    run(directories, first)
    files = FaultyFiles(OsFiles())
    files.fail("open", f"{tmp_path}/two/t-*/leader-epoch-checkpoint*")
    monkeypatch.setattr("ottla.runtime.node.OsFiles", lambda: files)
    run(directories, second)


def test_a_partition_that_could_not_be_made_for_want_of_open_files_is_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FaultyFiles(OsFiles())
    monkeypatch.setattr("ottla.runtime.node.OsFiles", lambda: files)
    monkeypatch.setattr("ottla.runtime.metadata_publisher.MAKE_AGAIN_MS", 1)

    async def story(node: Node) -> None:
        files.fail("open", f"{tmp_path}/t-*", error=errno.EMFILE, times=1 << 30)
        await create(node, "t", 2)
        await node.caught_up()
        assert len(node.replicas) == 0
        files.faults.clear()
        while len(node.replicas) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert node.replicas.get("t", 1).append(batch(), NOW_MS).base_offset == 0
        assert node.log_directories[0].error is None

    run(str(tmp_path), story)


def test_what_could_not_be_written_for_want_of_open_files_is_written_in_a_later_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FaultyFiles(OsFiles())
    monkeypatch.setattr("ottla.runtime.node.OsFiles", lambda: files)

    async def story(node: Node) -> None:
        await create(node, "t", 1)
        await node.caught_up()
        partition = node.replicas.get("t", 0)
        partition.append(batch(), NOW_MS)
        partition.log.segments.close_files()
        fault = files.fail("open", f"{tmp_path}/t-0/*.log", error=errno.EMFILE, times=1 << 30)
        assert node.replicas.write_pending() == {partition}
        assert node.replicas.write_pending() == {partition}  # whoever asks for it in the next turn hears, too
        with pytest.raises(KafkaStorageError):
            partition.append(batch(), NOW_MS)
        files.faults.remove(fault)
        partition.append(batch(), NOW_MS)
        assert node.replicas.write_pending() == set()
        assert not node.replicas.dirty
        assert partition.log.high_watermark == 2
        assert len(partition.log.read(0, 1000, 2)) == 2 * len(batch())
        assert node.log_directories[0].error is None

    run(str(tmp_path), story)


def test_a_node_does_not_wait_for_ever_to_hear_of_its_registration(tmp_path: Path) -> None:
    async def tell() -> None:
        properties = {"log.dirs": str(tmp_path), "initial.broker.registration.timeout.ms": "50"}
        async with Broker(properties=properties) as broker:
            node = broker.node
            await node._registration_seen(node.broker_epoch)
            async with asyncio.timeout(10):
                with pytest.raises(RequestTimedOut, match="did not hear of it"):
                    await node._registration_seen(node.broker_epoch + 1)

    asyncio.run(tell())
