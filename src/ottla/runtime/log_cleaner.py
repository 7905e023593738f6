"""Compacts logs by the clock: the dirtiest first, one after the other, each in a worker thread.

`storage.cleaner` does the work and `storage.log` takes in what comes of it. Here is which log is next, how
much of the machine it gets, and what becomes of one that cannot be compacted: it is left alone until the next
start, and the others go on.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
import time
from contextlib import suppress
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from ottla.core.types import TopicPartition
from ottla.runtime.housekeeping import Household
from ottla.runtime.threads import to_the_end
from ottla.storage.checkpoints import CLEANER_OFFSETS, RECOVERY_POINTS
from ottla.storage.cleaner import Cleaner
from ottla.storage.cleaning import Cleanable
from ottla.storage.files import is_of_the_disk
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory

# A thread that is busy in Python keeps the loop waiting, so it steps back after this long, for this long.
TURN_SECONDS: Final = 0.001
REST_SECONDS: Final = 0.0002
# How long the loop looks for the dirtiest log before requests get their turn.
SLICE: Final = 50
# The files of a compaction are new: if there is no room for them, nothing has happened to the log. And
# those it reads may be gone, because retention was faster.
NOT_OF_THE_LOG: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENOENT})

logger = logging.getLogger(__name__)


class GivenUp(Exception):
    """A compaction is no longer wanted, or the log has changed under it."""


class Candidate(NamedTuple):
    directory: LogDirectory
    log: Log
    dirty_ratio: float


class LogCleaner:
    """Runs from `start` to `stop`. `step` compacts one log, for whoever drives the time."""

    def __init__(self, node: Household) -> None:
        self._node = node
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = threading.Event()
        # By name: a partition that is deleted and made again has the same directory.
        self._under_way: set[TopicPartition] = set()
        self.uncleanable: WeakSet[Log] = WeakSet()
        # When one that could not be compacted this time gets another turn; the others go first.
        self._not_before: WeakKeyDictionary[Log, int] = WeakKeyDictionary()
        # Of the dirtiest log, when it was last looked for.
        self.max_dirty_ratio = 0.0

    def start(self) -> None:
        settings = self._node.settings
        if settings.log_cleaner_enable:
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._run()) for _ in range(settings.log_cleaner_threads)]

    async def stop(self) -> None:
        """Returns once no thread works on a log any more, which does not take long."""
        self._stopping.set()
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            try:
                more = await self.step()
            except Exception:
                logger.exception("the log cleaner has a fault and goes on")
                more = False
            if not more:
                await asyncio.sleep(self._node.settings.log_cleaner_backoff_ms / 1000)

    async def step(self) -> bool:
        """Compact the dirtiest log, if one is dirty enough; whether there may be another."""
        candidate = await self._dirtiest()
        if candidate is None:
            return False
        directory, log, _ = candidate
        if log.partition in self._under_way:
            return True  # while we were looking at others
        self._under_way.add(log.partition)
        try:
            await self._clean(directory, log)
        except Exception as error:
            self._failed(directory, log, error)
        finally:
            self._under_way.discard(log.partition)
        return True

    async def _dirtiest(self) -> Candidate | None:
        found: Candidate | None = None
        greatest = 0.0
        count = 0
        for directory in self._node.log_directories:
            for log in list(directory.logs.values()):
                count += 1
                if count % SLICE == 0:
                    await asyncio.sleep(0)
                if directory.error is not None or not self._may_have_a_turn(log):
                    continue
                cleanable = self._look_at(directory, log)
                if cleanable is None:
                    continue
                ratio = cleanable.dirty_ratio
                greatest = max(greatest, ratio)
                is_due = cleanable.is_due(log.settings.min_cleanable_dirty_ratio)
                if is_due and (found is None or ratio > found.dirty_ratio):
                    found = Candidate(directory, log, ratio)
        self.max_dirty_ratio = greatest
        return found

    def _may_have_a_turn(self, log: Log) -> bool:
        return (
            log.partition not in self._under_way
            and log not in self.uncleanable
            and self._not_before.get(log, 0) <= self._node.clock.monotonic_ms()
        )

    def _look_at(self, directory: LogDirectory, log: Log) -> Cleanable | None:
        try:
            return log.cleanable(self._node.clock.wall_ms())
        except Exception as error:
            self._failed(directory, log, error)
            return None

    async def _clean(self, directory: LogDirectory, log: Log) -> None:
        settings = self._node.settings
        now_ms = self._node.clock.wall_ms()
        cleanable = log.cleanable(now_ms)
        if cleanable is None or not cleanable.dirty_bytes:
            raise GivenUp("the log has changed meanwhile")
        job = log.cleaning_job(cleanable, now_ms)
        threads = max(1, settings.log_cleaner_threads)
        memory = (
            settings.log_cleaner_dedupe_buffer_size * settings.log_cleaner_io_buffer_load_factor / threads
        )
        pace = Pace(self._stopping, settings.log_cleaner_io_max_bytes_per_second / threads)
        cleaner = Cleaner(directory.files, job, memory=int(memory), pause=pace)
        began = time.monotonic()
        await to_the_end(cleaner.map_keys)
        if cleaner.latest_offset < job.first_dirty:
            raise ValueError("log.cleaner.dedupe.buffer.size is too small for the keys of a single batch")
        # A recovery then knows that what it finds missing below is no loss.
        await to_the_end(directory.collect_checkpoint(RECOVERY_POINTS).write)
        for group in cleaner.groups():
            await to_the_end(cleaner.clean, group)
            if not self._is_wanted(directory, log) or not log.take_cleaned(job, group, now_ms):
                cleaner.discard(group)
                raise GivenUp("the log was changed or deleted meanwhile")
            await to_the_end(directory.files.sync_directory, job.directory)
        log.cleaned(job, cleaner.latest_offset + 1)
        await to_the_end(directory.collect_checkpoint(CLEANER_OFFSETS).write)
        logger.info(
            "compacted partition=%s offsets=%d..%d bytes=%d left=%d seconds=%.1f",
            log.partition,
            job.first_dirty,
            cleaner.latest_offset,
            sum(segment.size for segment in job.segments),
            cleaner.bytes_written,
            time.monotonic() - began,
        )

    def _is_wanted(self, directory: LogDirectory, log: Log) -> bool:
        return (
            directory.error is None
            and directory.logs.get(log.partition) is log
            and "compact" in log.settings.cleanup_policy
        )

    def _failed(self, directory: LogDirectory, log: Log, error: Exception) -> None:
        settings, clock = self._node.settings, self._node.clock
        self._not_before[log] = clock.monotonic_ms() + settings.log_cleaner_backoff_ms
        if isinstance(error, GivenUp) or not self._is_wanted(directory, log):
            logger.info("compaction given up partition=%s reason=%s", log.partition, error)
        elif not isinstance(error, OSError):
            logger.error(
                "compaction failed, the log stays as it is partition=%s", log.partition, exc_info=error
            )
            self.uncleanable.add(log)
        elif not log.failed and (error.errno in NOT_OF_THE_LOG or not is_of_the_disk(error)):
            logger.warning("compaction is put off partition=%s error=%s", log.partition, error)
        else:
            directory.fail(error)


class Pace:
    """How a compaction shares the machine. Called in its thread with every few bytes that were read."""

    __slots__ = ("_began", "_bytes", "_bytes_per_second", "_stopping", "_turn")

    def __init__(self, stopping: threading.Event, bytes_per_second: float) -> None:
        self._stopping = stopping
        self._bytes_per_second = bytes_per_second
        self._began = self._turn = time.monotonic()
        self._bytes = 0

    def __call__(self, size: int) -> None:
        self._bytes += size
        now = time.monotonic()
        ahead = self._bytes / self._bytes_per_second - (now - self._began)
        if self._stopping.wait(ahead) if ahead > 0 else self._stopping.is_set():
            raise GivenUp("the broker stops")
        if now - self._turn > TURN_SECONDS:
            time.sleep(REST_SECONDS)
            self._turn = time.monotonic()
