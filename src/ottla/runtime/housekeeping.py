"""What a broker does to its logs by the clock: retention, checkpoints, late flushes, forgetting, removing.

One task does it all, one chore after the other. With thousands of logs a chore is cut into slices, and
requests get their turn in between; what waits for the disk (checkpoints, removing files) runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ottla.config.broker import BrokerSettings
from ottla.core.clock import Clock
from ottla.runtime.flusher import Flusher
from ottla.storage.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, START_OFFSETS
from ottla.storage.files import is_of_the_disk
from ottla.storage.handles import shared_handles
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory, remove_directory

# Logs looked at before other work of the loop gets its turn.
SLICE: Final = 50
# How often to look for files to remove and logs to flush. The delays they keep are minutes, or never.
OFTEN_MS: Final = 1000
LONGEST_SLEEP_MS: Final = 60_000  # so that an interval that is made shorter counts within a minute

logger = logging.getLogger(__name__)


class Household(Protocol):
    """What a node has that needs keeping."""

    @property
    def settings(self) -> BrokerSettings: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def log_directories(self) -> Sequence[LogDirectory]: ...
    @property
    def flushers(self) -> Mapping[LogDirectory, Flusher]: ...


class Unsynced(NamedTuple):
    """Since when a log has had records after this recovery point, for flush.ms."""

    recovery_point: int
    since_ms: int


@dataclass(slots=True)
class Chore:
    run: Callable[[LogDirectory], Awaitable[None]]
    interval_ms: Callable[[BrokerSettings], int]  # asked every time: the settings may change
    due_ms: int


class Housekeeping:
    """Runs from `start` to `stop`. `step` does what is due now, for whoever drives the time."""

    def __init__(self, node: Household) -> None:
        self._node = node
        self._task: asyncio.Task[None] | None = None
        self._unsynced: dict[LogDirectory, dict[Log, Unsynced]] = {}
        now_ms = node.clock.monotonic_ms()
        # Kafka leaves a starting broker half a minute before it looks at retention.
        later_ms = now_ms + node.settings.log_initial_task_delay_ms
        self._chores = [
            Chore(self._remove, lambda settings: OFTEN_MS, now_ms),
            Chore(self._flush, lambda settings: OFTEN_MS, now_ms),
            Chore(
                self._checkpoint_high_watermarks,
                lambda settings: settings.replica_high_watermark_checkpoint_interval_ms,
                now_ms,
            ),
            Chore(
                self._checkpoint_recovery_points,
                lambda settings: settings.log_flush_offset_checkpoint_interval_ms,
                later_ms,
            ),
            Chore(
                self._checkpoint_start_offsets,
                lambda settings: settings.log_flush_start_offset_checkpoint_interval_ms,
                later_ms,
            ),
            Chore(
                self._enforce_retention, lambda settings: settings.log_retention_check_interval_ms, later_ms
            ),
            Chore(
                self._expire_producers,
                lambda settings: settings.producer_id_expiration_check_interval_ms,
                later_ms,
            ),
        ]

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Returns once nothing is under way on the loop; a checkpoint in a thread may still be written."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            wait_ms = await self.step()
            await asyncio.sleep(wait_ms / 1000)

    async def step(self) -> int:
        """Do what is due; how many milliseconds there are until something is again."""
        clock = self._node.clock
        for chore in self._chores:
            if chore.due_ms > clock.monotonic_ms():
                continue
            for directory in self._node.log_directories:
                if directory.error is None:
                    await self._do(chore, directory)
            chore.due_ms = clock.monotonic_ms() + max(1, chore.interval_ms(self._node.settings))
        wait_ms = min(chore.due_ms for chore in self._chores) - clock.monotonic_ms()
        return max(0, min(wait_ms, LONGEST_SLEEP_MS))

    async def _do(self, chore: Chore, directory: LogDirectory) -> None:
        try:
            await chore.run(directory)
        except OSError as error:
            directory.fail(error)
            if not is_of_the_disk(error):
                shared_handles(directory.files).make_room()  # for the next time that it is due
        except Exception:
            logger.exception("housekeeping failed directory=%s", directory.path)

    async def _for_each_log(self, directory: LogDirectory, act: Callable[[Log], object]) -> None:
        """Do something to every log, letting requests in now and then."""
        for count, (partition, log) in enumerate(list(directory.logs.items()), start=1):
            if directory.error is not None:
                return
            if directory.logs.get(partition) is log:  # otherwise it was deleted meanwhile
                try:
                    act(log)
                except OSError:
                    raise
                except Exception:
                    logger.exception("housekeeping failed partition=%s", partition)
            if count % SLICE == 0:
                await asyncio.sleep(0)

    # --- chores --------------------------------------------------------------------------

    async def _enforce_retention(self, directory: LogDirectory) -> None:
        now_ms = self._node.clock.wall_ms()
        await self._for_each_log(directory, lambda log: log.enforce_retention(now_ms))

    async def _expire_producers(self, directory: LogDirectory) -> None:
        now_ms = self._node.clock.wall_ms()
        expiration_ms = self._node.settings.producer_id_expiration_ms
        await self._for_each_log(directory, lambda log: log.producers.expire(now_ms, expiration_ms))

    async def _remove(self, directory: LogDirectory) -> None:
        """Files of deleted segments and directories of deleted partitions, once their delay is over."""
        now_ms = self._node.clock.wall_ms()
        await self._for_each_log(directory, lambda log: log.doomed and log.reap(now_ms))
        doomed = directory.take_doomed()
        try:
            while doomed:
                await asyncio.to_thread(remove_directory, directory.files, doomed[-1])
                doomed.pop()
        finally:
            directory.give_back_doomed(doomed)

    async def _checkpoint_high_watermarks(self, directory: LogDirectory) -> None:
        await asyncio.to_thread(directory.collect_checkpoint(HIGH_WATERMARKS).write)

    async def _checkpoint_recovery_points(self, directory: LogDirectory) -> None:
        await asyncio.to_thread(directory.collect_checkpoint(RECOVERY_POINTS).write)

    async def _checkpoint_start_offsets(self, directory: LogDirectory) -> None:
        await asyncio.to_thread(directory.collect_checkpoint(START_OFFSETS).write)

    async def _flush(self, directory: LogDirectory) -> None:
        """Sync logs that nobody waits for: full segments, and what flush.ms and flush.messages ask for.

        It bounds what recovery has to read after a crash. A sync that fails is the flusher's affair.
        """
        flusher = self._node.flushers[directory]
        now_ms = self._node.clock.monotonic_ms()
        before = self._unsynced.get(directory, {})
        unsynced: dict[Log, Unsynced] = {}
        flushing: list[asyncio.Future[None]] = []

        def look(log: Log) -> None:
            recovery_point, settings = log.recovery_point, log.settings
            messages = log.end_offset - recovery_point
            if not messages:
                return
            since = before.get(log)
            if since is None or since.recovery_point != recovery_point:
                since = Unsynced(recovery_point, now_ms)
            if (
                log.needs_flush
                or messages >= settings.flush_messages
                or now_ms - since.since_ms >= settings.flush_ms
            ):
                flushing.append(flusher.synced(log, log.end_offset))
            else:
                unsynced[log] = since

        await self._for_each_log(directory, look)
        self._unsynced[directory] = unsynced
        await asyncio.gather(*flushing, return_exceptions=True)
