"""Group commit on files of the operating system: what the kernel syncs by itself, and what threads do."""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from ottla.config.topic import TopicSettings
from ottla.core.types import TopicPartition
from ottla.protocol.errors import KafkaStorageError
from ottla.runtime import flusher as flusher_module
from ottla.runtime.flusher import Flusher
from ottla.storage.files import OsFiles
from ottla.storage.kernel_sync import CALLS, Done, KernelSync
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory, open_log_directories
from tests.unit.runtime.test_flusher import TOPIC_ID, FakeClock, append
from tests.unit.storage.test_kernel_sync import opened_kernel

LONG_S = 30

Story = Callable[[LogDirectory, Flusher, list[Log]], Awaitable[None]]


class WatchedKernel(KernelSync):
    """Counts what it is asked for. It takes no more than `room`, and can say that a sync has failed, or say
    nothing of any but the first."""

    def __init__(self) -> None:
        super().__init__(CALLS[platform.machine()])
        self.asked: list[int] = []
        self.room = 1000
        self.fails = False
        self.says = 1000
        self.may_close = threading.Event()
        self.may_close.set()
        self.is_closed = threading.Event()

    def begin(self, fds: Sequence[int]) -> int:
        self.asked.append(len(fds))
        return super().begin(fds[: self.room])

    def take_done(self) -> list[Done]:
        done = super().take_done()[: self.says]
        self.says -= len(done)
        if self.fails:
            return [Done(fd, OSError(errno.EIO, os.strerror(errno.EIO))) for fd, _ in done]
        return done

    def close(self) -> None:
        assert self.may_close.wait(LONG_S)
        super().close()
        self.is_closed.set()


@pytest.fixture
def kernel() -> WatchedKernel:
    opened_kernel().close()
    return WatchedKernel()


def run(path: Path, open_kernel: Callable[[], KernelSync | None], story: Story) -> None:
    """Logs whose names are on the disk already, so that there is one file of each to sync."""
    [directory] = open_log_directories([str(path)], clock=FakeClock(), node_id=1, files=OsFiles())
    directory.load(lambda topic: TopicSettings())
    logs = [directory.create_log(TopicPartition("t", n), TOPIC_ID, TopicSettings()) for n in range(4)]
    for log in logs:
        append(log)
        log.flush()

    async def tell() -> None:
        flusher = Flusher(directory, open_kernel=open_kernel)
        await story(directory, flusher, logs)
        await flusher.close()

    asyncio.run(tell())
    directory.close()


def sync_threads() -> int:
    return sum(thread.name.startswith("sync") for thread in threading.enumerate())


def test_logs_are_synced_with_one_call_and_no_thread(tmp_path: Path, kernel: WatchedKernel) -> None:
    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        before = sync_threads()
        await asyncio.gather(*(flusher.synced(log, append(log)) for log in logs))
        assert kernel.asked == [4]
        assert sync_threads() == before
        assert [log.recovery_point for log in logs] == [2] * 4

    run(tmp_path, lambda: kernel, story)


def test_who_comes_while_the_kernel_syncs_is_synced_next(tmp_path: Path, kernel: WatchedKernel) -> None:
    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        first = flusher.synced(logs[0], append(logs[0]))
        await asyncio.sleep(0)  # a turn of the loop, which begins the round
        assert kernel.asked == [1]
        await asyncio.gather(first, flusher.synced(logs[0], append(logs[0])))
        assert kernel.asked == [1, 1]
        assert logs[0].recovery_point == 3

    run(tmp_path, lambda: kernel, story)


def test_threads_sync_what_the_kernel_does_not_take(tmp_path: Path, kernel: WatchedKernel) -> None:
    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        kernel.room = 1
        await asyncio.gather(*(flusher.synced(log, append(log)) for log in logs))
        assert kernel.asked == [4]
        assert [log.recovery_point for log in logs] == [2] * 4

    run(tmp_path, lambda: kernel, story)


def test_threads_sync_a_log_with_more_than_one_file(tmp_path: Path, kernel: WatchedKernel) -> None:
    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        logs[0].sync_with_next_flush(str(tmp_path / "meta.properties"))
        await asyncio.gather(*(flusher.synced(log, append(log)) for log in logs[:2]))
        assert kernel.asked == [1]
        assert [log.recovery_point for log in logs] == [2, 2, 1, 1]

    run(tmp_path, lambda: kernel, story)


def test_threads_sync_everything_where_the_kernel_does_not(tmp_path: Path) -> None:
    tries: list[None] = []

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        for end_offset in (2, 3):
            await asyncio.gather(*(flusher.synced(log, append(log)) for log in logs))
            assert [log.recovery_point for log in logs] == [end_offset] * 4
        assert len(tries) == 1

    run(tmp_path, lambda: tries.append(None), story)


def test_threads_sync_everything_where_python_has_no_ctypes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("ottla.storage.kernel_sync")
    monkeypatch.setitem(sys.modules, "ottla.storage.kernel_sync", None)

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        async with asyncio.timeout(LONG_S):
            await flusher.synced(logs[0], append(logs[0]))

    run(tmp_path, flusher_module.open_kernel_sync, story)


def test_the_loop_goes_on_while_the_kernel_closes(tmp_path: Path, kernel: WatchedKernel) -> None:
    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        await flusher.synced(logs[0], append(logs[0]))
        kernel.may_close.clear()
        closing = asyncio.create_task(flusher.close())
        await asyncio.sleep(0)
        assert not closing.done()
        kernel.may_close.set()
        await closing
        assert kernel.is_closed.is_set()

    run(tmp_path, lambda: kernel, story)


def test_files_that_the_kernel_syncs_are_kept_until_it_closes(tmp_path: Path, kernel: WatchedKernel) -> None:
    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        kernel.fails, kernel.says = True, 1
        waiting = [flusher.synced(log, append(log)) for log in logs]
        await asyncio.gather(*waiting, return_exceptions=True)
        handles = [log.segments.active.log.handle for log in logs]
        for handle in handles:
            handle.close()  # when nobody needs it any more
        assert sum(handle.fd >= 0 for handle in handles) == 3
        await flusher.close()
        assert kernel.is_closed.is_set()
        assert [handle.fd for handle in handles] == [-1] * 4

    run(tmp_path, lambda: kernel, story)


def test_a_sync_that_fails_in_the_kernel_is_not_repeated(tmp_path: Path, kernel: WatchedKernel) -> None:
    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        kernel.fails = True
        waiting = [flusher.synced(log, append(log)) for log in logs]
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(outcome, KafkaStorageError)
            assert "Input/output error" in str(outcome)
        assert directory.error is not None
        assert any(log.failed for log in logs)
        assert [log.recovery_point for log in logs] == [1] * 4
        with pytest.raises(KafkaStorageError):
            flusher.synced(logs[0], logs[0].end_offset)
        assert kernel.asked == [4]

    run(tmp_path, lambda: kernel, story)


def test_everybody_is_told_when_the_kernel_no_longer_says_what_is_done(
    tmp_path: Path, kernel: WatchedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> list[Done]:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    async def story(directory: LogDirectory, flusher: Flusher, logs: list[Log]) -> None:
        monkeypatch.setattr(kernel, "take_done", refuse)
        with pytest.raises(KafkaStorageError, match="Invalid argument"):
            await flusher.synced(logs[0], append(logs[0]))

    run(tmp_path, lambda: kernel, story)
