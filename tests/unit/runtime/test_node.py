"""A node that follows the metadata log: what it does while it is behind, and when a disk fails under it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla import Broker
from ottla.core.ids import Uuid
from ottla.metadata.delta import Delta
from ottla.metadata.image import Image
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import NotLeaderOrFollower
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.runtime.node import SLICE, Node
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
