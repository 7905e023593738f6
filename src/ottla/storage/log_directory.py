"""One log directory (`log.dirs` may name several): its lock, its identity, and the logs in it.

Everything that concerns a directory as a whole is here: whether its last use ended cleanly, which logs it
holds, the checkpoint files, deleted logs that wait for their files to go, and being offline. A directory goes
offline at its first failed write or sync and stays so until a restart: nothing is retried, every call
answers `KafkaStorageError`, and other directories go on. A process that has too many files open gets the same
answer, but from that one call only: nothing was changed, and the disk is as good as before.

Used on the loop's thread, except where a method says that it belongs in a worker thread.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

from ottla.config.topic import TopicSettings
from ottla.core.clock import Clock
from ottla.core.files import Files
from ottla.core.ids import Uuid
from ottla.core.types import CLUSTER_METADATA, TopicPartition
from ottla.protocol.errors import InconsistentTopicId, KafkaStorageError
from ottla.storage.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
    Checkpoint,
    Checkpoints,
    Offsets,
)
from ottla.storage.clean_shutdown import UNKNOWN_EPOCH, take_clean_shutdown, write_clean_shutdown
from ottla.storage.directory_names import Kind, parse_name, partition_name, suffixed_name
from ottla.storage.files import OS_FILES, is_of_the_disk, write_file
from ottla.storage.flush import Flush
from ottla.storage.handles import Handles, shared_handles
from ottla.storage.lock import DirectoryLock
from ottla.storage.log import DAY_MS, Log
from ottla.storage.meta_properties import (
    MetaProperties,
    MetaPropertiesError,
    agree,
    read_meta_properties,
    write_meta_properties,
)
from ottla.storage.partition_metadata import (
    PARTITION_METADATA,
    format_partition_metadata,
    read_partition_metadata,
)

# Names that are no partition and no surprise either.
EXPECTED = frozenset({"lost+found", "remote-log-index-cache"})
# How often it is said that no more files can be opened, if that is so for a while.
SAID_AGAIN_MS = 10_000

# A sync waits for the disk, and the disk takes several at once. How many logs keep their files open for it
# is bounded, too.
CLOSING_THREADS = 8
CLOSED_TOGETHER = 64

SettingsOf = Callable[[str], TopicSettings]

logger = logging.getLogger(__name__)


def open_log_directories(
    paths: Sequence[str],
    *,
    clock: Clock,
    node_id: int,
    cluster_id: str | None = None,
    files: Files = OS_FILES,
    recovery_threads: int = 2,
    producer_id_expiration_ms: int = DAY_MS,
) -> list[LogDirectory]:
    """Lock every directory, settle who they are, and find out how their last use ended. Loads no log yet.

    Missing directories are made, and get an identity that agrees with the others. Raises `DirectoryInUse`,
    `MetaPropertiesError` or `OSError`, and then holds nothing.
    """
    locks: dict[str, DirectoryLock] = {}
    try:
        for path in map(os.path.realpath, paths):
            Path(path).mkdir(parents=True, exist_ok=True)
            locks[path] = DirectoryLock(path)
        found = {path: _identify(path) for path in locks}
        identities = agree(found, node_id=node_id, cluster_id=cluster_id, new_id=new_uuid)
        for path, meta in identities.items():
            if meta != found[path]:
                write_meta_properties(files, path, meta, clock.wall_ms())
        return [
            LogDirectory(
                path,
                meta,
                locks[path],
                files,
                clock,
                recovery_threads=recovery_threads,
                producer_id_expiration_ms=producer_id_expiration_ms,
                neighbours=len(identities),
            )
            for path, meta in identities.items()
        ]
    except BaseException:
        for lock in locks.values():
            lock.release()
        raise


def _identify(path: str) -> MetaProperties | None:
    meta = read_meta_properties(path)
    if meta is None:
        with os.scandir(path) as entries:
            for entry in entries:
                if parse_name(entry.name)[0] is Kind.PARTITION and entry.is_dir():
                    # Another broker's, or of another program; taking it over would mix up two clusters.
                    raise MetaPropertiesError(f"{path} has partitions ({entry.name}) but no meta.properties")
    return meta


class LogDirectory:
    """Made by `open_log_directories`, then `load`ed, used, and `close`d."""

    def __init__(
        self,
        path: str,
        meta: MetaProperties,
        lock: DirectoryLock,
        files: Files,
        clock: Clock,
        *,
        recovery_threads: int,
        producer_id_expiration_ms: int,
        neighbours: int,
    ) -> None:
        if meta.directory_id is None:
            raise MetaPropertiesError(f"{path} has no directory.id")
        self.path = path
        self.id = meta.directory_id
        self.cluster_id = meta.cluster_id
        self.node_id = meta.node_id
        self.logs: dict[TopicPartition, Log] = {}
        # Partitions whose directory is there but could not be loaded, and why.
        self.unloadable: dict[TopicPartition, Exception] = {}
        # Partitions that are still to be loaded; the threads that load them take them out.
        self.loading: set[TopicPartition] = set()
        self.error: Exception | None = None
        self.files = files
        self._lock = lock
        self._clock = clock
        self._recovery_threads = recovery_threads
        self._neighbours = neighbours  # the log directories of this process, which share its open files
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._offline_listeners: list[Callable[[Exception], None]] = []
        self._doomed: list[tuple[int, str]] = []  # when to remove which directory
        self._deleted: WeakSet[Log] = WeakSet()
        # Partitions whose log was begun and could not be finished for want of open files.
        self._half_made: set[TopicPartition] = set()
        self._say_again_ms = 0
        self._is_loaded = False
        epoch = take_clean_shutdown(files, path)
        self.was_clean = epoch is not None
        self.previous_broker_epoch = UNKNOWN_EPOCH if epoch is None else epoch
        self.checkpoints = Checkpoints(path, files)

    # --- loading -------------------------------------------------------------------------

    def load(
        self,
        settings_of: SettingsOf,
        is_stray: Callable[[TopicPartition, Uuid | None], bool] = lambda partition, topic_id: False,
    ) -> None:
        """Open every log in the directory, repairing those that a crash left behind.

        `settings_of` answers a topic's settings. `is_stray` tells whether the cluster's metadata has no use
        for a partition with this topic id here: such a directory is put aside under another name, never
        deleted. A log that cannot be opened is noted in `unloadable`, and the others go on.
        """
        scanned = self._scan()
        self.loading.update(scanned)
        found = [partition for partition in scanned if not self._put_aside(partition, is_stray)]
        self.loading.intersection_update(found)
        settings = [settings_of(partition.topic) for partition in found]
        if self.was_clean:
            handles = self._new_handles(1)
            self._keep(found, (self._try_load(*each, handles) for each in zip(found, settings, strict=True)))
        else:
            # Directories that were made just before a kill are here and not yet on the disk.
            self.files.sync_directory(self.path)
            self._keep(found, self._recover(found, settings))
        if not self.checkpoints.has_recovery_points:
            self.collect_checkpoint(RECOVERY_POINTS).write()
        self._is_loaded = True

    def _recover(
        self, partitions: Sequence[TopicPartition], settings: Sequence[TopicSettings]
    ) -> list[Log | Exception]:
        """Open logs side by side: a recovery reads megabytes, mostly outside of the interpreter's lock."""
        threads = max(1, min(self._recovery_threads, len(partitions)))
        mine = threading.local()

        def begin() -> None:
            mine.handles = self._new_handles(threads)

        def load(partition: TopicPartition, settings: TopicSettings) -> Log | Exception:
            return self._try_load(partition, settings, mine.handles)

        with ThreadPoolExecutor(threads, thread_name_prefix="recovery", initializer=begin) as pool:
            return list(pool.map(load, partitions, settings))

    def _scan(self) -> list[TopicPartition]:
        """The partitions that have a directory here; directories of deleted ones are queued for removal."""
        partitions: list[TopicPartition] = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                kind, partition = parse_name(entry.name)
                if kind is Kind.OTHER:
                    if entry.is_dir() and not entry.name.startswith(".") and entry.name not in EXPECTED:
                        logger.warning("%s is not the directory of a partition; it is left alone", entry.path)
                elif not entry.is_dir(follow_symlinks=False):
                    logger.warning("%s is not a directory; it is left alone", entry.path)
                    if kind is Kind.PARTITION and partition is not None:
                        self.unloadable[partition] = NotADirectoryError(f"{entry.path} is not a directory")
                elif kind is Kind.DELETED:
                    self._doomed.append((0, entry.path))
                elif kind is Kind.PARTITION and partition is not None and partition.topic != CLUSTER_METADATA:
                    partitions.append(partition)
        return sorted(partitions)

    def _put_aside(
        self, partition: TopicPartition, is_stray: Callable[[TopicPartition, Uuid | None], bool]
    ) -> bool:
        directory = self._directory_of(partition)
        try:
            topic_id = read_partition_metadata(directory)
        except (ValueError, OSError):
            return False  # told when it is loaded
        if not is_stray(partition, topic_id):
            return False
        target = self._rename(partition, Kind.STRAY)
        logger.warning("%s belongs to no known topic (id %s); it is now %s", directory, topic_id, target)
        return True

    def _new_handles(self, threads: int) -> Handles:
        """Open files belong to one thread at a time. Loading is not done by the loop's, so it has its own."""
        most = shared_handles(self.files).limit
        return Handles(self.files, max(16, most // (1 + self._neighbours) // threads))

    def _try_load(
        self, partition: TopicPartition, settings: TopicSettings, handles: Handles
    ) -> Log | Exception:
        directory = self._directory_of(partition)
        try:
            log = Log.open(
                directory,
                partition,
                settings,
                files=self.files,
                now_ms=self._clock.wall_ms(),
                topic_id=read_partition_metadata(directory),
                recovery_point=self.checkpoints.recovery_points.get(partition, 0),
                start_offset=self.checkpoints.start_offsets.get(partition, 0),
                clean_shutdown=self.was_clean,
                handles=handles,
                producer_id_expiration_ms=self._producer_id_expiration_ms,
                # Without recovery points the whole log is checked, and it may have been compacted once.
                may_have_gaps=not self.checkpoints.has_recovery_points
                or partition in self.checkpoints.cleaner_offsets,
            )
        except Exception as error:
            if not is_of_the_disk(error):
                raise  # the start, and not the partition, is what has to be tried again
            return error
        finally:
            self.loading.discard(partition)
        high_watermark = self.checkpoints.high_watermarks.get(partition, 0)
        log.advance_high_watermark(min(max(high_watermark, log.start_offset), log.end_offset))
        clean_up_to = self.checkpoints.cleaner_offsets.get(partition)
        if clean_up_to is not None and clean_up_to <= log.end_offset:
            log.clean_up_to = clean_up_to
        if not self.was_clean and log.topic_id is not None:
            log.sync_with_next_flush(f"{directory}/{PARTITION_METADATA}")
        return log

    def _keep(self, partitions: Sequence[TopicPartition], opened: Iterable[Log | Exception]) -> None:
        for partition, log in zip(partitions, opened, strict=True):
            if isinstance(log, Log):
                self.logs[partition] = log
            else:
                logger.error("%s cannot be loaded: %r", self._directory_of(partition), log)
                self.unloadable[partition] = log

    # --- logs ----------------------------------------------------------------------------

    def log(self, partition: TopicPartition) -> Log | None:
        """The log of a partition, None if it has none here; `KafkaStorageError` if it cannot be used."""
        self.check_online()
        if partition in self.unloadable:
            raise KafkaStorageError(f"{partition} could not be loaded: {self.unloadable[partition]}")
        return self.logs.get(partition)

    def create_log(self, partition: TopicPartition, topic_id: Uuid, settings: TopicSettings) -> Log:
        """The log of a partition, made if it is not there.

        Nothing is synced here: creating thousands of partitions is quick, and a partition that a power loss
        takes back before its first synced record is made again from the cluster's metadata.
        """
        log = self.log(partition)
        if log is not None:
            if log.topic_id is not None and log.topic_id != topic_id:
                raise InconsistentTopicId(f"{partition} is here with topic id {log.topic_id}, not {topic_id}")
            return log
        directory = self._directory_of(partition)
        if os.path.lexists(directory) and partition not in self._half_made:
            raise KafkaStorageError(f"{directory} is in the way")
        if self.checkpoints.mention(partition):
            # They speak of a deleted partition of that name. After a crash the new one would be believed to
            # be synced that far, so they have to forget it first.
            self.write_checkpoints()
        try:
            log = shared_handles(self.files).with_room(lambda: self._make_log(partition, topic_id, settings))
        except OSError as error:
            raise self.fail(error) from error
        self.logs[partition] = log
        return log

    def _make_log(self, partition: TopicPartition, topic_id: Uuid, settings: TopicSettings) -> Log:
        directory = self._directory_of(partition)
        if partition in self._half_made:
            remove_directory(self.files, directory)
        self._half_made.add(partition)
        log = Log.open(
            directory,
            partition,
            settings,
            files=self.files,
            now_ms=self._clock.wall_ms(),
            topic_id=topic_id,
            clean_shutdown=True,
            producer_id_expiration_ms=self._producer_id_expiration_ms,
        )
        path = f"{directory}/{PARTITION_METADATA}"
        write_file(self.files, path, format_partition_metadata(topic_id), sync=False)
        log.sync_with_next_flush(path)
        self._half_made.remove(partition)
        return log

    def delete_log(self, partition: TopicPartition) -> None:
        """Forget a partition at once; its files go after `file.delete.delay.ms`, or at the next start."""
        self.check_online()
        log = self.logs.pop(partition, None)
        delay_ms = 0
        if log is not None:
            log.close_files()
            self._deleted.add(log)
            delay_ms = log.settings.file_delete_delay_ms
        elif self.unloadable.pop(partition, None) is None:
            return
        try:
            target = self._rename(partition, Kind.DELETED)
        except OSError as error:
            raise self.fail(error) from error
        self._doomed.append((self._clock.wall_ms() + delay_ms, target))

    def was_deleted(self, log: Log) -> bool:
        return log in self._deleted

    def take_doomed(self) -> list[str]:
        """Directories of deleted partitions whose time has come, for `remove_directory`."""
        now_ms = self._clock.wall_ms()
        due = [path for at, path in self._doomed if at <= now_ms]
        if due:
            self._doomed = [(at, path) for at, path in self._doomed if at > now_ms]
        return due

    def give_back_doomed(self, paths: Iterable[str]) -> None:
        """Those of `take_doomed` that could not be removed yet."""
        self._doomed += [(0, path) for path in paths]

    def _directory_of(self, partition: TopicPartition) -> str:
        return f"{self.path}/{partition_name(partition)}"

    def _rename(self, partition: TopicPartition, kind: Kind) -> str:
        target = f"{self.path}/{suffixed_name(partition, kind, os.urandom(16).hex())}"
        self.files.rename(self._directory_of(partition), target)
        return target

    # --- checkpoints and the end -----------------------------------------------------------

    def collect_checkpoint(self, *names: str) -> Checkpoint:
        """The offsets to remember as they are now; all files unless some are named."""
        wanted: dict[str, Callable[[], Offsets]] = {
            RECOVERY_POINTS: self._recovery_points,
            HIGH_WATERMARKS: self._high_watermarks,
            START_OFFSETS: self._start_offsets,
            CLEANER_OFFSETS: self._cleaner_offsets,
        }
        return self.checkpoints.collect({name: wanted[name]() for name in names or wanted})

    def write_checkpoints(self, *names: str) -> None:
        """Collect and write at once, syncing on this thread."""
        self.check_online()
        try:
            shared_handles(self.files).with_room(self.collect_checkpoint(*names).write)
        except OSError as error:
            raise self.fail(error) from error

    def _recovery_points(self) -> Offsets:
        points = self._of_unloadable(self.checkpoints.recovery_points)
        points.update((partition, log.recovery_point) for partition, log in self.logs.items())
        return points

    def _high_watermarks(self) -> Offsets:
        watermarks = self._of_unloadable(self.checkpoints.high_watermarks)
        watermarks.update((partition, log.high_watermark) for partition, log in self.logs.items())
        return watermarks

    def _start_offsets(self) -> Offsets:
        """Only of logs that start inside of their first segment: for the others its name says it."""
        starts = self._of_unloadable(self.checkpoints.start_offsets)
        for partition, log in self.logs.items():
            if log.start_offset > log.segments[0].base_offset:
                starts[partition] = log.start_offset
        return starts

    def _cleaner_offsets(self) -> Offsets:
        offsets = self._of_unloadable(self.checkpoints.cleaner_offsets)
        for partition, log in self.logs.items():
            if log.clean_up_to is not None:
                offsets[partition] = log.clean_up_to
        return offsets

    def _of_unloadable(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        """What is known of partitions that could not be loaded is kept for the day when they can."""
        return {partition: offsets[partition] for partition in self.unloadable if partition in offsets}

    def close(self, broker_epoch: int = UNKNOWN_EPOCH) -> None:
        """Sync and close every log, write the checkpoints and say that all is well. Blocks while it syncs.

        A broker that did not get as far as to be registered has appended nothing, so all is as it was: the
        next one shows the epoch of the run before. Without it the controller would take the logs for those of
        a crash, and forget that this broker may lead.
        """
        try:
            if self.error is not None:
                return
            if self._is_loaded:
                self._close_logs()
                self.collect_checkpoint().write()
            elif not self.was_clean:
                return
            if broker_epoch == UNKNOWN_EPOCH:
                broker_epoch = self.previous_broker_epoch
            if self.unloadable:
                return  # the next start has to look at them as this one should have
            # Last: a crash before this line is a crash.
            write_clean_shutdown(self.files, self.path, broker_epoch)
        except OSError as error:
            raise self.fail(error) from error
        finally:
            self._lock.release()

    def _close_logs(self) -> None:
        now_ms = self._clock.wall_ms()
        left = list(self.logs.values())
        with ThreadPoolExecutor(CLOSING_THREADS, thread_name_prefix="close") as pool:
            while left:
                flushes = self._begin_to_close(left, now_ms)
                short: list[tuple[Log, Flush]] = []
                for (log, flush), done in [(each, pool.submit(each[1].sync)) for each in flushes]:
                    error = done.exception()
                    if error is None:
                        log.flush_done(flush)
                    elif is_of_the_disk(error):
                        raise error
                    else:
                        short.append((log, flush))
                # Together they have taken all the open files: now each gets them alone.
                for _, flush in short:
                    flush.release()
                for log, flush in short:
                    flush.pin_again()
                    log.handles.with_room(flush.sync)
                    log.flush_done(flush)
        for log in self.logs.values():
            log.close_files()

    def _begin_to_close(self, left: list[Log], now_ms: int) -> list[tuple[Log, Flush]]:
        """Take logs from `left`, as many as there may be open files for, and begin to flush them."""
        flushes: list[tuple[Log, Flush]] = []
        while left and len(flushes) < CLOSED_TOGETHER:
            log = left[-1]
            try:
                log.close_begin(now_ms)
                flush = log.flush_begin()
            except OSError as error:
                if is_of_the_disk(error) or not flushes:
                    raise
                break
            left.pop()
            if flush is not None:
                flushes.append((log, flush))
        return flushes

    # --- offline -------------------------------------------------------------------------

    def on_offline(self, listener: Callable[[Exception], None]) -> None:
        """`listener` is called once, with the reason, when the directory goes offline."""
        self._offline_listeners.append(listener)

    def fail(self, error: Exception) -> KafkaStorageError:
        """Take the directory offline, and answer what to raise: `raise directory.fail(error) from error`.

        On the loop's thread. The lock stays: what is in here is still ours. An error that is not of the disk
        is only turned into what to raise.
        """
        if not is_of_the_disk(error):
            now_ms = self._clock.monotonic_ms()
            if now_ms >= self._say_again_ms:
                self._say_again_ms = now_ms + SAID_AGAIN_MS
                logger.warning("requests are refused: more need more open files (ulimit -n) error=%s", error)
            return KafkaStorageError(f"{error}")
        if self.error is None:
            self.error = error
            for listener in self._offline_listeners:
                listener(error)
        return self.storage_error()

    def check_online(self) -> None:
        if self.error is not None:
            raise self.storage_error()

    def storage_error(self) -> KafkaStorageError:
        return KafkaStorageError(f"the log directory {self.path} is offline: {self.error}")

    # --- for DescribeLogDirs -------------------------------------------------------------

    def total_bytes(self) -> int:
        """Size of the volume that the directory is on."""
        return shutil.disk_usage(self.path).total

    def usable_bytes(self) -> int:
        """What is left on it for us."""
        return shutil.disk_usage(self.path).free


def remove_directory(files: Files, path: str) -> None:
    """Remove the directory of a deleted partition with all that is in it. Belongs in a worker thread.

    Follows no link, and does not mind if somebody else has removed it.
    """
    with suppress(FileNotFoundError):
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    remove_directory(files, entry.path)
                else:
                    files.unlink(entry.path)
        files.rmdir(path)


def new_uuid() -> Uuid:
    """A random id that Kafka would hand out too."""
    while True:
        drawn = Uuid.from_random(os.urandom(16))
        if drawn.is_usable:
            return drawn
