"""Group commit: one sync of a log serves every request that waits for it.

A sync takes milliseconds, an append microseconds. So appends gather while a sync runs, and the next sync
covers them all. Per log directory there is one round at a time:

1. on the loop: collect what is unsynced in every log that somebody waits for (`Log.flush_begin`);
2. in the kernel: sync those logs, side by side (`KernelSync`); where it cannot, and for logs of which more
   than one file is to be synced, in a few threads (`Flush.sync`);
3. on the loop again: as each log's sync is done, note it (`Log.flush_done`) and wake who waited for it;
4. when all are done, start over with whoever came meanwhile.

A sync that fails is never tried again: the kernel may have dropped the pages and would report success the
second time. The directory goes offline, and everybody who waits is told. One that could not even begin,
because no more files can be opened, has not failed: it is late, and so are the answers that wait for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ottla.protocol.errors import KafkaError, KafkaStorageError, UnknownTopicOrPartition
from ottla.runtime.threads import to_the_end
from ottla.storage.files import is_of_the_disk
from ottla.storage.flush import Flush
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from ottla.storage.kernel_sync import KernelSync

# Enough for a few busy logs to share one journal commit of the file system. More threads sync no faster.
SYNC_THREADS = 3
# When to try again what needs more open files than there are.
AGAIN_MS = 50

Waiters = list[asyncio.Future[None]]


class Syncing(NamedTuple):
    flush: Flush
    waiters: Waiters


def open_kernel_sync() -> KernelSync | None:
    try:
        from ottla.storage import kernel_sync  # when the first sync is due: a start is not to wait for ctypes
    except ImportError:
        return None  # Python can be built without ctypes

    return kernel_sync.open_kernel_sync()


class Synced(NamedTuple):
    log: Log
    flush: Flush
    failure: Exception | None


class Flusher:
    """Syncs the logs of one directory on demand. Used on the loop's thread only."""

    def __init__(
        self,
        directory: LogDirectory,
        *,
        threads: int = SYNC_THREADS,
        open_kernel: Callable[[], KernelSync | None] = open_kernel_sync,
    ) -> None:
        self._directory = directory
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sync")
        self._open_kernel: Callable[[], KernelSync | None] | None = open_kernel  # None when that is done
        self._kernel: KernelSync | None = None
        # By file descriptor, which belongs to one log only as long as its flush keeps it open.
        self._in_kernel: dict[int, tuple[Log, Flush]] = {}
        # As many waiters as there are unanswered requests, which the connections bound.
        self._waiting: dict[Log, Waiters] = {}
        self._syncing: dict[Log, Syncing] = {}
        self._is_busy = False
        # Whether the round under way is short of open files, and the syncs that were begun all the same.
        self._is_short = False
        self._put_off: deque[tuple[Log, Flush]] = deque()
        # Syncs that are done and were not taken note of yet, and whether the loop knows that there are any.
        self._done: deque[Synced] = deque()
        self._is_told = False
        self._idle: asyncio.Future[None] | None = None
        directory.on_offline(self._abandon)

    def synced(self, log: Log, end_offset: int) -> asyncio.Future[None]:
        """A future that is done once everything below `end_offset` is safe from a power loss.

        It fails with `KafkaStorageError` when the directory goes offline first, and with
        `UnknownTopicOrPartition` when the log is deleted. `end_offset` is in the log.
        """
        self._directory.check_online()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if end_offset <= log.recovery_point:
            done.set_result(None)
            return done
        syncing = self._syncing.get(log)
        if syncing is not None and log.is_covered_by(syncing.flush, end_offset):
            syncing.waiters.append(done)
            return done
        self._waiting.setdefault(log, []).append(done)
        if not self._is_busy:
            self._is_busy = True
            # Not at once: whoever else appends in this turn of the loop shares the sync.
            loop.call_soon(self._begin_round)
        return done

    async def close(self) -> None:
        """Finish what is asked for, then let the threads go."""
        if self._is_busy:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        self._pool.shutdown()
        kernel, self._kernel = self._kernel, None
        if kernel is None:
            return
        asyncio.get_running_loop().remove_reader(kernel.eventfd)
        await to_the_end(kernel.close)  # in a thread: it takes the kernel a while
        for _, flush in self._in_kernel.values():  # of a directory that failed meanwhile
            flush.release()
        self._in_kernel.clear()

    def _begin_round(self) -> None:
        loop = asyncio.get_running_loop()
        waiting, self._waiting = self._waiting, {}
        self._is_short = False
        flushes: deque[tuple[Log, Flush]] = deque()
        for log, waiters in waiting.items():
            try:
                self._directory.check_online()
                flush = log.flush_begin()
            except OSError as error:
                told = self._directory.fail(error)
                if is_of_the_disk(error):
                    _tell(waiters, told)
                else:
                    self._is_short = True
                    self._waiting[log] = waiters
                continue
            except KafkaStorageError as error:
                _tell(waiters, self._reason(log) or error)
                continue
            except Exception as error:  # a mistake of ours, and nobody knows what it left on the disk
                _tell(waiters, self._directory.fail(error))
                continue
            if flush is None:
                _wake(waiters)
            else:
                self._syncing[log] = Syncing(flush, waiters)
                flushes.append((log, flush))
        self._begin_in_kernel(flushes, loop)
        for _ in range(min(self._threads, len(flushes))):
            self._pool.submit(self._sync, flushes, loop)
        if not self._syncing:
            self._end_round()

    def _begin_in_kernel(self, flushes: deque[tuple[Log, Flush]], loop: asyncio.AbstractEventLoop) -> None:
        """Take from `flushes` what the kernel syncs by itself."""
        alone = {fd: each for each in flushes if (fd := each[1].only_file) is not None}
        if not alone:
            return
        if self._open_kernel is not None:
            try:
                self._kernel, self._open_kernel = self._open_kernel(), None
            except OSError:
                return  # no more files can be opened; the next round asks again
            if self._kernel is not None:
                loop.add_reader(self._kernel.eventfd, self._take_from_kernel)
        if self._kernel is None:
            return
        fds = list(alone)
        taken = {fd: alone[fd] for fd in fds[: self._kernel.begin(fds)]}
        self._in_kernel.update(taken)
        rest = [each for each in flushes if each[1].only_file not in taken]
        flushes.clear()
        flushes.extend(rest)

    def _take_from_kernel(self) -> None:
        assert self._kernel is not None
        try:
            done = self._kernel.take_done()
        except OSError as failure:  # nobody will ever know what is on the disk
            asyncio.get_running_loop().remove_reader(self._kernel.eventfd)
            self._directory.fail(failure)
            self._end_round()
            return
        for fd, error in done:
            log, flush = self._in_kernel.pop(fd)
            if error is not None:
                flush.fail()
            self._finished(log, flush, error)

    def _sync(self, flushes: deque[tuple[Log, Flush]], loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: sync logs until none is left."""
        while True:
            try:
                log, flush = flushes.popleft()
            except IndexError:
                return
            failure: Exception | None = None
            try:
                if self._directory.error is None:
                    flush.sync()
            except Exception as error:
                failure = error  # whatever it was, we do not know what reached the disk
            self._done.append(Synced(log, flush, failure))
            if not self._is_told:
                # What is done before the loop gets round to it is taken with it.
                self._is_told = True
                with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                    loop.call_soon_threadsafe(self._take_done)

    def _take_done(self) -> None:
        self._is_told = False  # first: what is done from here on is told again
        while self._done:
            self._finished(*self._done.popleft())

    def _finished(self, log: Log, flush: Flush, failure: Exception | None) -> None:
        deleted = self._reason(log)
        if failure is not None and deleted is None:
            self._directory.fail(failure)
            if not is_of_the_disk(failure):
                self._put_off_sync(log, flush)
                return
        syncing = self._syncing.pop(log, None)
        if syncing is None:  # the directory has failed, and its waiters know
            flush.release()
        elif deleted is not None:
            flush.release()
            _tell(syncing.waiters, deleted)
        else:
            try:
                log.flush_done(flush)
            except Exception as error:  # the disk's, or a mistake of ours: what the log says is not certain
                _tell(syncing.waiters, self._directory.fail(error))
            else:
                _wake(syncing.waiters)
        if not self._syncing:
            self._end_round()

    def _put_off_sync(self, log: Log, flush: Flush) -> None:
        """Give back the open files of a sync that needs one more than there are."""
        flush.release()
        self._put_off.append((log, flush))
        if len(self._put_off) == 1:
            asyncio.get_running_loop().call_later(AGAIN_MS / 1000, self._sync_one_put_off)

    def _sync_one_put_off(self) -> None:
        """One after the other: it may be that they have taken the files from each other."""
        loop = asyncio.get_running_loop()
        log, flush = self._put_off.popleft()
        if self._put_off:
            loop.call_later(AGAIN_MS / 1000, self._sync_one_put_off)
        try:
            flush.pin_again()
        except OSError as error:
            if is_of_the_disk(error):
                flush.fail()
            self._finished(log, flush, error)
        else:
            log.handles.make_room()
            self._pool.submit(self._sync, deque([(log, flush)]), loop)

    def _reason(self, log: Log) -> KafkaError | None:
        """A log that was deleted under its waiters is no fault of the disk, whatever its sync ran into."""
        return UnknownTopicOrPartition() if self._directory.was_deleted(log) else None

    def _end_round(self) -> None:
        if self._is_short and self._waiting:
            asyncio.get_running_loop().call_later(AGAIN_MS / 1000, self._begin_round)
            return
        if self._waiting:
            self._begin_round()
            return
        self._is_busy = False
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def _abandon(self, error: Exception) -> None:
        """The directory is offline. No ack leaves for anything that was not synced before."""
        abandoned = [waiters for _, waiters in self._syncing.values()] + list(self._waiting.values())
        self._syncing.clear()
        self._waiting.clear()
        for waiters in abandoned:
            _tell(waiters, self._directory.storage_error())


def _tell(waiters: Waiters, error: KafkaError) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_exception(error)


def _wake(waiters: Waiters) -> None:
    for waiter in waiters:
        if not waiter.done():  # a request that timed out has cancelled its own
            waiter.set_result(None)
