"""Which log is compacted, and what becomes of a compaction that cannot be finished."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.config.settings import replace
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, write_batch
from ottla.runtime.log_cleaner import LogCleaner
from ottla.storage.checkpoints import CLEANER_OFFSETS, read_offsets
from ottla.storage.log import Log
from tests.unit.runtime.test_housekeeping import SETTINGS, T0, House
from tests.unit.storage.compacting import pairs

T1 = TopicPartition("t", 1)
COMPACTED = replace(SETTINGS, cleanup_policy=("compact",), segment_bytes=1000, min_cleanable_dirty_ratio=0.5)


def compacted(house: House, partition: TopicPartition = T0, **changes: Any) -> Log:
    return house.create(partition, replace(COMPACTED, **changes))


def put(house: House, log: Log, keys: int, count: int, *, synced: bool = True) -> None:
    """Records of so many keys in turn, in several segments, and a new one for what comes next."""
    for number in range(count):
        record = Record(timestamp=house.clock.now_ms, key=b"%d" % (number % keys), value=b"v" * 50)
        log.append(write_batch([record]), 0, house.clock.now_ms)
    log.roll(house.clock.now_ms)
    log.advance_high_watermark(log.end_offset)
    if synced:
        log.flush()


def live(house: House, story: Callable[[LogCleaner], Awaitable[None]]) -> None:
    async def tell() -> None:
        cleaner = LogCleaner(house)
        await story(cleaner)
        await cleaner.stop()

    asyncio.run(tell())


def test_the_dirtiest_log_comes_first_and_one_that_is_clean_not_at_all(tmp_path: Path) -> None:
    house = House(tmp_path)
    clean, dirty = compacted(house), compacted(house, T1)
    plain = house.create(TopicPartition("t", 2), SETTINGS)
    put(house, clean, 40, 40)
    put(house, dirty, 4, 80)
    put(house, plain, 4, 80)
    before = plain.size

    async def story(cleaner: LogCleaner) -> None:
        assert await cleaner.step() and await cleaner.step()
        assert not await cleaner.step()
        put(house, clean, 2, 10)  # a fifth of the log, which is not enough
        put(house, dirty, 4, 80)
        assert await cleaner.step()
        assert not await cleaner.step()

    live(house, story)
    assert [offset for offset, _, _ in pairs(dirty)] == [156, 157, 158, 159]
    assert len(pairs(clean)) == 50
    assert plain.size == before


def test_what_is_not_synced_waits(tmp_path: Path) -> None:
    house = House(tmp_path)
    log = compacted(house)
    put(house, log, 1, 50, synced=False)

    async def story(cleaner: LogCleaner) -> None:
        assert not await cleaner.step()
        log.flush()
        assert await cleaner.step()

    live(house, story)


def test_the_next_start_knows_how_far_it_came(tmp_path: Path) -> None:
    house = House(tmp_path)
    log = compacted(house)
    put(house, log, 2, 50)

    async def story(cleaner: LogCleaner) -> None:
        assert await cleaner.step()

    live(house, story)
    assert read_offsets(f"{tmp_path}/a/{CLEANER_OFFSETS}") == {T0: 50}
    for directory in house.log_directories:
        directory.close()
    again = House(tmp_path).log_directories[0].logs[T0]
    assert again.clean_up_to == 50
    assert [offset for offset, _, _ in pairs(again)] == [48, 49]


def test_a_log_that_cannot_be_compacted_is_left_alone_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(tmp_path)
    damaged, sound = compacted(house), compacted(house, T1)
    put(house, damaged, 1, 80)
    put(house, sound, 1, 50)
    path = Path(damaged.segments[0].path(".log"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")

    async def story(cleaner: LogCleaner) -> None:
        while await cleaner.step():
            pass
        assert list(cleaner.uncleanable) == [damaged]

    live(house, story)
    assert "compaction failed" in caplog.text
    assert house.log_directories[0].error is None
    assert len(pairs(sound)) == 1


@pytest.mark.parametrize(("error", "goes_offline"), [(errno.ENOSPC, False), (errno.EIO, True)])
def test_a_full_disk_puts_compaction_off_and_a_broken_one_ends_it(
    tmp_path: Path, error: int, goes_offline: bool
) -> None:
    house = House(tmp_path)
    log = compacted(house)
    put(house, log, 2, 50)
    before = pairs(log)
    house.files.fail("write", "*.log.cleaned", error=error)

    async def story(cleaner: LogCleaner) -> None:
        await cleaner.step()
        assert (house.log_directories[0].error is not None) is goes_offline
        assert pairs(log)[-2:] == before[-2:]
        assert not house.names("t-0/*.cleaned")
        assert not await cleaner.step()
        if not goes_offline:
            house.clock.now_ms += 15_000
            assert await cleaner.step()
            assert len(pairs(log)) == 2

    live(house, story)


def test_a_swap_that_fails_takes_the_directory_offline(tmp_path: Path) -> None:
    house = House(tmp_path)
    log = compacted(house)
    put(house, log, 2, 50)
    house.files.fail("rename", "*.swap")

    async def story(cleaner: LogCleaner) -> None:
        await cleaner.step()

    live(house, story)
    assert log.failed
    assert house.log_directories[0].error is not None


def test_a_log_that_has_to_wait_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    house = House(tmp_path)
    dirtiest, other = compacted(house), compacted(house, T1)
    put(house, dirtiest, 1, 80)
    put(house, other, 20, 40)
    Path(dirtiest.segments[0].path(".log")).unlink()

    async def story(cleaner: LogCleaner) -> None:
        while await cleaner.step():
            pass

    live(house, story)
    assert house.log_directories[0].error is None
    assert len(pairs(other)) == 20


def test_what_compaction_left_out_is_no_loss_to_a_recovery_whatever_the_policy_is_by_then(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    log = compacted(house)
    put(house, log, 8, 80)

    async def story(cleaner: LogCleaner) -> None:
        assert await cleaner.step()

    live(house, story)
    left = pairs(log)
    for directory in house.log_directories:  # killed
        for each in directory.logs.values():
            each.close_files()
        directory._lock.release()
    # The settings of the house delete, they do not compact.
    again = House(tmp_path).log_directories[0].logs[T0]
    assert pairs(again) == left and len(left) == 8
    assert again.end_offset == 80


async def until_under_way(house: House, cleaning: asyncio.Future[bool]) -> None:
    while not house.names("t-0/*.log.cleaned"):
        assert not cleaning.done()
        await asyncio.sleep(0.001)


SLOWLY = {"log.cleaner.io.max.bytes.per.second": "6000"}


def test_a_log_may_be_deleted_while_it_is_compacted(tmp_path: Path) -> None:
    house = House(tmp_path, **SLOWLY)
    log = compacted(house)
    put(house, log, 2, 20)

    async def story(cleaner: LogCleaner) -> None:
        cleaning = asyncio.ensure_future(cleaner.step())
        await until_under_way(house, cleaning)
        house.log_directories[0].delete_log(T0)
        await cleaning

    live(house, story)
    assert house.log_directories[0].error is None


def test_a_stop_gives_a_compaction_up(tmp_path: Path) -> None:
    house = House(tmp_path, **SLOWLY)
    log = compacted(house)
    put(house, log, 20, 20)
    before = pairs(log)

    async def story(cleaner: LogCleaner) -> None:
        cleaning = asyncio.ensure_future(cleaner.step())
        await until_under_way(house, cleaning)
        await cleaner.stop()
        await cleaning

    live(house, story)
    assert pairs(log) == before
    assert not house.names("t-0/*.cleaned")
    for directory in house.log_directories:
        directory.close()
    assert pairs(House(tmp_path).log_directories[0].logs[T0]) == before


def test_no_cleaner_runs_where_it_is_turned_off(tmp_path: Path) -> None:
    house = House(tmp_path, **{"log.cleaner.enable": "false"})
    log = compacted(house)
    put(house, log, 2, 50)
    before = pairs(log)

    async def story(cleaner: LogCleaner) -> None:
        cleaner.start()
        for _ in range(20):
            await asyncio.sleep(0.001)

    live(house, story)
    assert pairs(log) == before
