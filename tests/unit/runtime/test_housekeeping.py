"""What is done to logs by the clock."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

from ottla.config.broker import BrokerSettings
from ottla.config.settings import load, replace
from ottla.config.topic import TopicSettings
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, write_batch
from ottla.runtime.flusher import Flusher
from ottla.runtime.housekeeping import SLICE, Housekeeping
from ottla.storage.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory, open_log_directories
from ottla.testing.disk import FaultyFiles, UnsyncedFiles

TOPIC_ID = Uuid.parse("r6-V3gr2R3e7KizL8v4SxA")
T0 = TopicPartition("t", 0)
SETTINGS = replace(TopicSettings(), segment_bytes=300)


class FakeClock:
    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


class House:
    def __init__(self, path: Path, **settings: str) -> None:
        self.clock = FakeClock()
        self.settings = load(
            BrokerSettings, {name.replace("_", "."): text for name, text in settings.items()}
        )
        self.files = FaultyFiles(UnsyncedFiles())
        self.log_directories = open_log_directories(
            [str(path / "a"), str(path / "b")], clock=self.clock, node_id=1, files=self.files
        )
        self.flushers: dict[LogDirectory, Flusher] = {}
        for directory in self.log_directories:
            directory.load(lambda topic: SETTINGS)

    def create(self, partition: TopicPartition = T0, settings: TopicSettings = SETTINGS) -> Log:
        return self.log_directories[0].create_log(partition, TOPIC_ID, settings)

    def append(self, log: Log, count: int = 1, **batch: int) -> None:
        for _ in range(count):
            record = Record(timestamp=self.clock.now_ms, value=b"v" * 50)
            log.append(write_batch([record], **batch), 0, self.clock.now_ms)
        log.write()
        log.advance_high_watermark(log.end_offset)

    def live(self, story: Callable[[Housekeeping], Awaitable[None]]) -> None:
        async def tell() -> None:
            self.flushers = {directory: Flusher(directory) for directory in self.log_directories}
            await story(Housekeeping(self))
            for flusher in self.flushers.values():
                await flusher.close()

        asyncio.run(tell())
        for directory in self.log_directories:
            directory.close()

    def names(self, pattern: str) -> list[str]:
        return sorted(path.name for path in Path(self.log_directories[0].path).glob(pattern))


def test_the_next_step_is_due_when_the_next_chore_is(tmp_path: Path) -> None:
    house = House(tmp_path)

    async def story(housekeeping: Housekeeping) -> None:
        assert await housekeeping.step() == 1000
        house.clock.now_ms += 400
        assert await housekeeping.step() == 600

    house.live(story)


def test_old_segments_go_at_the_retention_check_and_their_files_after_the_delay(tmp_path: Path) -> None:
    house = House(tmp_path)
    log = house.create(settings=replace(SETTINGS, retention_ms=60_000, file_delete_delay_ms=5_000))
    house.append(log, 20)

    async def story(housekeeping: Housekeeping) -> None:
        house.clock.now_ms += 29_999
        await housekeeping.step()
        house.clock.now_ms += 300_000
        await housekeeping.step()
        assert log.start_offset == 20
        assert house.names("t-0/*.deleted")
        house.clock.now_ms += 4_000
        await housekeeping.step()
        assert house.names("t-0/*.deleted")
        house.clock.now_ms += 2_000
        await housekeeping.step()
        assert not house.names("t-0/*.deleted")

    house.live(story)


def test_deleted_partitions_lose_their_directory_after_the_delay(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.append(house.create(settings=replace(SETTINGS, file_delete_delay_ms=5_000)))
    house.log_directories[0].delete_log(T0)

    async def story(housekeeping: Housekeeping) -> None:
        await housekeeping.step()
        assert len(house.names("t-0.*-delete")) == 1
        house.clock.now_ms += 6_000
        await housekeeping.step()
        assert not house.names("t-0.*")

    house.live(story)


def test_high_watermarks_are_checkpointed_every_five_seconds_and_recovery_points_every_minute(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    log = house.create(settings=TopicSettings())
    path = house.log_directories[0].path

    async def story(housekeeping: Housekeeping) -> None:
        house.append(log, 3)
        await housekeeping.step()
        assert read_offsets(f"{path}/{HIGH_WATERMARKS}") == {T0: 3}
        house.append(log, 2)
        house.clock.now_ms += 4_999
        await housekeeping.step()
        assert read_offsets(f"{path}/{HIGH_WATERMARKS}") == {T0: 3}
        house.clock.now_ms += 1
        await housekeeping.step()
        assert read_offsets(f"{path}/{HIGH_WATERMARKS}") == {T0: 5}
        assert read_offsets(f"{path}/{RECOVERY_POINTS}") == {}
        await house.flushers[house.log_directories[0]].synced(log, 5)
        house.clock.now_ms += 60_000
        await housekeeping.step()
        assert read_offsets(f"{path}/{RECOVERY_POINTS}") == {T0: 5}

    house.live(story)


def test_full_segments_are_synced_though_nobody_waits(tmp_path: Path) -> None:
    house = House(tmp_path)
    log = house.create()
    house.append(log, 1)

    async def story(housekeeping: Housekeeping) -> None:
        await housekeeping.step()
        assert log.recovery_point == 0  # it is all in the active segment
        house.append(log, 10)
        house.clock.now_ms += 1000
        await housekeeping.step()
        assert log.recovery_point == 11

    house.live(story)


def test_flush_messages_and_flush_ms_are_kept(tmp_path: Path) -> None:
    house = House(tmp_path)
    counted = house.create(T0, replace(TopicSettings(), flush_messages=3))
    timed = house.create(TopicPartition("t", 1), replace(TopicSettings(), flush_ms=5_000))

    async def story(housekeeping: Housekeeping) -> None:
        house.append(counted, 2)
        house.append(timed, 2)
        await housekeeping.step()
        assert (counted.recovery_point, timed.recovery_point) == (0, 0)
        house.append(counted, 1)
        house.clock.now_ms += 4_000
        await housekeeping.step()
        assert (counted.recovery_point, timed.recovery_point) == (3, 0)
        house.clock.now_ms += 1_000
        await housekeeping.step()
        assert timed.recovery_point == 2

    house.live(story)


def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    house = House(tmp_path, producer_id_expiration_ms="1000")
    log = house.create()
    house.append(log, producer_id=7, producer_epoch=0, base_sequence=0)

    async def story(housekeeping: Housekeeping) -> None:
        assert log.producers.get(7) is not None
        house.clock.now_ms += 30_000
        await housekeeping.step()
        assert log.producers.get(7) is None

    house.live(story)


def test_a_directory_that_fails_is_left_alone_and_the_other_is_kept(tmp_path: Path) -> None:
    house = House(tmp_path)
    first, second = house.log_directories
    house.append(house.create())
    other = second.create_log(TopicPartition("u", 0), TOPIC_ID, SETTINGS)
    house.append(other, 2)
    house.files.fail(on="fsync", path=f"{first.path}/replication*", error=errno.EIO)

    async def story(housekeeping: Housekeeping) -> None:
        await housekeeping.step()
        assert isinstance(first.error, OSError)
        assert second.error is None
        house.append(other, 3)
        house.clock.now_ms += 5_000
        await housekeeping.step()
        assert read_offsets(f"{second.path}/{HIGH_WATERMARKS}") == {TopicPartition("u", 0): 5}

    house.live(story)


def test_too_many_open_files_put_a_checkpoint_off(tmp_path: Path) -> None:
    house = House(tmp_path)
    directory = house.log_directories[0]
    house.append(house.create())
    house.files.fail(on="open", path=f"{directory.path}/replication*", error=errno.EMFILE)

    async def story(housekeeping: Housekeeping) -> None:
        await housekeeping.step()
        assert directory.error is None
        house.clock.now_ms += 5_000
        await housekeeping.step()
        assert read_offsets(f"{directory.path}/{HIGH_WATERMARKS}") == {T0: 1}

    house.live(story)


def test_with_many_logs_others_get_their_turn(tmp_path: Path) -> None:
    house = House(tmp_path)
    for number in range(3 * SLICE):
        house.create(TopicPartition("t", number))

    async def story(housekeeping: Housekeeping) -> None:
        turns = 0

        async def other_work() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(other_work())
        await housekeeping._enforce_retention(house.log_directories[0])
        assert turns >= 3
        other.cancel()

    house.live(story)


def test_it_starts_and_stops(tmp_path: Path) -> None:
    house = House(tmp_path)

    async def story(housekeeping: Housekeeping) -> None:
        housekeeping.start()
        await asyncio.sleep(0)
        await housekeeping.stop()
        await housekeeping.stop()

    house.live(story)
