"""A replica of a partition: what it does with answers that come late, and with who waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ottla.config.topic import TopicSettings
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import NotEnoughReplicasAfterAppend
from ottla.replication.following import Answered
from ottla.replication.isr import Standing
from ottla.replication.partition import MANY_WAITING, NO_LEADER, Partition
from ottla.replication.replicas import Replicas
from ottla.storage.log_directory import open_log_directories
from ottla.testing.disk import UnsyncedFiles

OURSELVES, OTHER = 1, 2
EPOCH = 5
TOPIC_ID = Uuid.parse("r6-V3gr2R3e7KizL8v4SxA")
NOW_MS = 1_700_000_000_000


class FakeClock:
    def wall_ms(self) -> int:
        return NOW_MS

    monotonic_ms = wall_ms


def partition(path: Path) -> Partition:
    [directory] = open_log_directories(
        [str(path)], clock=FakeClock(), node_id=OURSELVES, files=UnsyncedFiles()
    )
    directory.load(lambda topic: TopicSettings())
    name = TopicPartition("t", 0)
    log = directory.create_log(name, TOPIC_ID, TopicSettings())
    return Replicas(OURSELVES).add(name, TOPIC_ID, log, directory)


def take_state(of: Partition, leader: int, members: tuple[int, ...], min_insync_replicas: int = 1) -> None:
    of.take_state(leader, EPOCH, of.partition_epoch + 1, (1, 2), members, min_insync_replicas, 0)


def batch() -> bytearray:
    return write_batch([Record(timestamp=NOW_MS, value=b"v")])


def test_an_answer_of_the_leader_is_not_for_a_replica_that_was_removed(tmp_path: Path) -> None:
    removed = partition(tmp_path)
    take_state(removed, OTHER, (1, 2))
    asked = removed.ask()
    assert removed.is_still(asked)
    removed.stop_leading(NO_LEADER, removed.leader_epoch, removed.partition_epoch)
    assert not removed.take_answer(asked, Answered(batch(), 1, 0), NOW_MS)
    assert not removed.take_answer(asked, Answered(b"", 0, 0, diverging_epoch=4, diverging_end=0), NOW_MS)
    assert removed.log.end_offset == 0


def test_a_topic_that_asks_for_fewer_replicas_in_sync_commits_what_waited(tmp_path: Path) -> None:
    async def story() -> None:
        led = partition(tmp_path)
        take_state(led, OURSELVES, (1,), min_insync_replicas=2)
        led.append(batch(), NOW_MS, acks=1)
        assert led.log.high_watermark == 0
        led.configure(1)
        assert led.log.high_watermark == 1

    asyncio.run(story())


def test_a_topic_that_asks_for_more_replicas_in_sync_lets_nobody_wait_in_vain(tmp_path: Path) -> None:
    async def story() -> None:
        led = partition(tmp_path)
        take_state(led, OURSELVES, (1,), min_insync_replicas=1)
        led.isr.fetched(OTHER, 0, 0, -1, 0, 0)
        led.look_for_changes(0, 30_000, lambda broker: Standing(-1, True), fetching=OTHER)
        waiting = led.committed(led.append(batch(), NOW_MS).last_offset)
        assert waiting is not None  # for the follower that is proposed to be in sync
        led.configure(2)
        with pytest.raises(NotEnoughReplicasAfterAppend):
            await waiting

    asyncio.run(story())


def test_who_has_given_up_is_forgotten_while_the_high_watermark_stands_still(tmp_path: Path) -> None:
    async def story() -> None:
        led = partition(tmp_path)
        take_state(led, OURSELVES, (1, 2))
        last_offset = led.append(batch(), NOW_MS).last_offset
        patient = led.committed(last_offset)
        assert patient is not None
        for _ in range(10 * MANY_WAITING):
            impatient = led.committed(last_offset)
            assert impatient is not None
            impatient.cancel()
        assert len(led._committed) <= MANY_WAITING
        take_state(led, OURSELVES, (1,))
        await patient

    asyncio.run(story())
