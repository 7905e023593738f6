"""Group commit: who waits for which sync, and what happens when one fails."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ottla.config.topic import TopicSettings
from ottla.core.files import Files
from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.errors import KafkaStorageError
from ottla.runtime.flusher import Flusher
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory, open_log_directories
from ottla.testing.disk import FaultyFiles, UnsyncedFiles

TOPIC_ID = Uuid.parse("r6-V3gr2R3e7KizL8v4SxA")
LONG_S = 30


class FakeClock:
    def wall_ms(self) -> int:
        return 1_700_000_000_000

    monotonic_ms = wall_ms


class GatedFiles(UnsyncedFiles):
    """Syncs of `.log` files are counted, and wait at a gate while it is closed."""

    def __init__(self) -> None:
        self.syncs: list[str] = []
        self.gate = threading.Semaphore(0)
        self.arrived = threading.Semaphore(0)
        self.is_gated = False
        self.paths: dict[object, str] = {}

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        fd = super().open(path, flags, mode)
        self.paths[fd] = path
        return fd

    def fdatasync(self, fd: object) -> None:
        path = self.paths[fd]
        if path.endswith(".log"):
            self.syncs.append(Path(path).parent.name)
            if self.is_gated:
                self.arrived.release()
                assert self.gate.acquire(timeout=LONG_S)

    fsync = fdatasync

    async def somebody_syncs(self) -> None:
        assert await asyncio.to_thread(self.arrived.acquire, timeout=LONG_S)


def run(
    path: Path, files: Files, story: Callable[[LogDirectory, Flusher, list[Log]], Awaitable[None]]
) -> None:
    [directory] = open_log_directories([str(path)], clock=FakeClock(), node_id=1, files=files)
    directory.load(lambda topic: TopicSettings())
    logs = [directory.create_log(TopicPartition("t", n), TOPIC_ID, TopicSettings()) for n in range(4)]

    async def tell() -> None:
        flusher = Flusher(directory)
        await story(directory, flusher, logs)
        await flusher.close()

    asyncio.run(tell())
    directory.close()


def append(log: Log) -> int:
    log.append(write_batch([Record(timestamp=0, value=b"v")]), 0, FakeClock().wall_ms())
    return log.end_offset


def test_all_who_ask_in_one_turn_share_one_sync(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        waiting = [flusher.synced(logs[0], append(logs[0])) for _ in range(50)]
        await asyncio.gather(*waiting)
        assert files.syncs == ["t-0"]
        assert logs[0].recovery_point == 50

    run(tmp_path, files, story)


def test_who_comes_during_a_sync_shares_the_next(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        files.is_gated = True
        first = flusher.synced(logs[0], append(logs[0]))
        await files.somebody_syncs()
        later = [flusher.synced(logs[0], append(logs[0])) for _ in range(20)]
        files.gate.release()
        await first
        await files.somebody_syncs()
        assert not any(waiter.done() for waiter in later)
        assert logs[0].recovery_point == 1
        files.gate.release()
        await asyncio.gather(*later)
        assert files.syncs == ["t-0", "t-0"]
        files.is_gated = False

    run(tmp_path, files, story)


def test_who_asks_for_what_a_running_sync_covers_waits_for_that_one(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        append(logs[0])
        files.is_gated = True
        first = flusher.synced(logs[0], append(logs[0]))
        await files.somebody_syncs()
        second = flusher.synced(logs[0], 1)
        files.gate.release()
        await asyncio.gather(first, second)
        assert files.syncs == ["t-0"]
        files.is_gated = False

    run(tmp_path, files, story)


def test_what_is_synced_already_costs_nothing(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        end_offset = append(logs[0])
        await flusher.synced(logs[0], end_offset)
        assert flusher.synced(logs[0], end_offset).done()
        assert files.syncs == ["t-0"]

    run(tmp_path, files, story)


def test_logs_are_synced_side_by_side_and_each_wakes_its_own(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        files.is_gated = True
        waiting = [flusher.synced(log, append(log)) for log in logs]
        await files.somebody_syncs()
        await files.somebody_syncs()  # while the first is still at the gate
        files.gate.release()
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        for _ in range(3):
            files.gate.release()
        await asyncio.gather(*waiting)
        assert sorted(files.syncs) == ["t-0", "t-1", "t-2", "t-3"]
        files.is_gated = False

    run(tmp_path, files, story)


def test_a_waiter_that_gives_up_takes_nobody_with_it(tmp_path: Path) -> None:
    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        impatient = flusher.synced(logs[0], append(logs[0]))
        patient = flusher.synced(logs[0], append(logs[0]))
        impatient.cancel()
        await patient

    run(tmp_path, GatedFiles(), story)


def test_a_sync_that_fails_is_not_repeated_and_nobody_is_told_that_it_worked(tmp_path: Path) -> None:
    gated = GatedFiles()
    files = FaultyFiles(gated)

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        await flusher.synced(logs[0], append(logs[0]))
        heard: list[Exception] = []
        directory.on_offline(heard.append)
        files.fail(on="fsync", path="*t-1*.log", error=errno.EIO)
        failing = flusher.synced(logs[1], append(logs[1]))
        with pytest.raises(KafkaStorageError, match="Input/output error"):
            await failing
        assert logs[1].recovery_point == 0
        assert len(heard) == 1
        # The fault is over, as after a kernel that dropped the dirty pages. Still nothing is promised.
        for log in (logs[1], logs[0]):
            with pytest.raises(KafkaStorageError):
                flusher.synced(log, append(log))
        assert gated.syncs == ["t-0"]

    run(tmp_path, files, story)


def test_everybody_in_the_directory_fails_with_it_even_those_whose_sync_goes_on(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        files.is_gated = True
        syncing = flusher.synced(logs[0], append(logs[0]))
        await files.somebody_syncs()
        gathering = flusher.synced(logs[1], append(logs[1]))
        directory.fail(OSError(errno.ENOSPC, "No space left on device"))
        for waiter in (syncing, gathering):
            with pytest.raises(KafkaStorageError, match="No space left"):
                await waiter
        files.gate.release()
        files.is_gated = False

    run(tmp_path, files, story)


def test_pending_records_that_cannot_be_written_take_the_directory_offline(tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        files.fail(on="write", path="*t-0/*.log", error=errno.ENOSPC)
        waiting = [flusher.synced(log, append(log)) for log in logs]
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(outcome, KafkaStorageError)
        assert directory.error is not None

    run(tmp_path, files, story)


@pytest.mark.parametrize("path", ["*/t-0/*.log", "*/t-0/partition.metadata"])
def test_a_sync_that_can_open_no_more_files_is_late_and_nothing_else(path: str, tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        end_offset = append(logs[0])
        logs[0].write()
        for log in logs:
            log.segments.close_files()
        fault = files.fail(on="open", path=path, error=errno.EMFILE, times=1 << 30)
        late = flusher.synced(logs[0], end_offset)
        await flusher.synced(logs[1], append(logs[1]))
        assert not late.done()
        files.faults.remove(fault)
        await late
        assert logs[0].recovery_point == end_offset
        assert directory.error is None

    run(tmp_path, files, story)


MANY_FILES = """
import asyncio, resource, sys
from tests.unit.runtime.test_flusher import *

[directory] = open_log_directories([sys.argv[1]], clock=FakeClock(), node_id=1, files=UnsyncedFiles())
directory.load(lambda topic: TopicSettings())
logs = [directory.create_log(TopicPartition("t", n), TOPIC_ID, TopicSettings()) for n in range(30)]
for log in logs:
    append(log)
    log.roll(0)

async def tell():
    flusher = Flusher(directory)
    waiting = [flusher.synced(log, append(log)) for log in logs]
    # A complete segment has three files, the next one has one, and there are directories to open.
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    await asyncio.gather(*waiting)
    await flusher.close()

asyncio.run(tell())
assert directory.error is None
assert all(log.recovery_point == 2 for log in logs)
directory.close()
assert directory.error is None
print("all synced")
"""


def test_syncs_that_take_the_open_files_from_each_other_are_all_done(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", MANY_FILES, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert told.stdout == "all synced\n", told.stderr


def test_closing_finishes_what_was_asked_for(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        files.is_gated = True
        first = flusher.synced(logs[0], append(logs[0]))
        await files.somebody_syncs()
        second = flusher.synced(logs[0], append(logs[0]))
        closing = asyncio.create_task(flusher.close())
        files.is_gated = False
        files.gate.release()
        await closing
        assert first.done()
        assert second.done()
        assert logs[0].recovery_point == 2

    run(tmp_path, files, story)


def test_what_takes_the_place_of_truncated_batches_is_not_covered_by_a_sync_of_those(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        [log, *_] = logs
        append(log)
        append(log)
        files.is_gated = True
        first = flusher.synced(log, append(log))
        await files.somebody_syncs()
        files.is_gated = False
        log.truncate_to(1)
        files.is_gated = True
        second = flusher.synced(log, append(log))
        files.gate.release()
        await first
        await files.somebody_syncs()
        assert not second.done()
        files.gate.release()
        await second
        assert log.recovery_point == log.end_offset == 2
        files.is_gated = False

    run(tmp_path, files, story)
