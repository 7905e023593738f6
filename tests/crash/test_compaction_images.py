"""Power may go in the middle of a compaction: the last record of a key that was synced is still there.

As in `test_crash_images`: a life of a compacted log is recorded, and what the disk may hold after each of
its operations is recovered and checked. A failure names the seed, the operation and the image, which are the
same every time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from ottla.config.topic import TopicSettings
from ottla.core.types import TopicPartition
from ottla.protocol.batch import TRANSACTIONAL, Record, iter_batches, read_records, write_batch
from ottla.protocol.control import EndTransactionMarker, end_transaction_batch
from ottla.storage.checkpoints import CLEANER_OFFSETS
from ottla.storage.log import Log, Origin
from ottla.storage.log_directory import LogDirectory, new_uuid, open_log_directories
from ottla.testing.disk import Disk, Image, Note, RecordingFiles, write_image
from tests.crash.checker import recovered
from tests.crash.workload import FakeClock
from tests.unit.storage.compacting import compact

IMAGES = int(os.environ.get("OTTLA_CRASH_IMAGES", "4800")) // 8
IMAGES_PER_SEED = 200
SEEDS = range(max(1, IMAGES // IMAGES_PER_SEED))
STEPS = 120
KEYS = [b"key %d" % number for number in range(6)]
ORDERS = TopicPartition("orders", 0)
SETTINGS = TopicSettings(
    cleanup_policy=("compact",),
    segment_bytes=2_000,
    index_interval_bytes=200,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=5_000,
    file_delete_delay_ms=3_000,
)


@dataclass
class Life:
    """What was appended, by offset; the offsets of records of aborted transactions; how far it was synced."""

    records: dict[int, Record] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)

    def live(self, files: RecordingFiles, seed: int) -> None:
        rng, clock = Random(seed), FakeClock()
        [directory] = open_log_directories([files.root], clock=clock, node_id=1, files=files)
        directory.load(lambda topic: SETTINGS)
        log = directory.create_log(ORDERS, new_uuid(), SETTINGS)
        sequences = dict.fromkeys(range(1, 5), 0)
        open_since: dict[int, list[int]] = {}
        for _ in range(STEPS):
            clock.now_ms += rng.randrange(400)
            match rng.choices(
                ("put", "idempotent", "begin", "end", "roll", "flush", "compact", "reap"),
                (8, 4, 4, 4, 3, 4, 3, 1),
            )[0]:
                case "put":
                    self.append(log, rng, clock.now_ms, {})
                case "idempotent":
                    producer = rng.choice((1, 2))
                    self.produce(log, rng, clock.now_ms, producer, sequences, 0)
                case "begin":
                    producer = rng.choice((3, 4))
                    offsets = self.produce(log, rng, clock.now_ms, producer, sequences, TRANSACTIONAL)
                    open_since.setdefault(producer, []).extend(offsets)
                case "end" if open_since:
                    producer, offsets = open_since.popitem()
                    commit = rng.random() < 0.6
                    if not commit:
                        self.aborted.update(offsets)
                    marker = EndTransactionMarker(producer, 0, 0, commit)
                    batch = end_transaction_batch(marker, timestamp=clock.now_ms)
                    log.append(batch, 0, clock.now_ms, origin=Origin.COORDINATOR)
                case "roll":
                    log.roll(clock.now_ms)
                case "flush":
                    flush(log, files)
                case "compact":
                    compact_durably(directory, log, clock.now_ms, rng)
                case "reap":
                    log.reap(clock.now_ms)
            log.write()
            log.advance_high_watermark(log.end_offset)
        log.close_files()
        directory._lock.release()

    def produce(
        self, log: Log, rng: Random, now_ms: int, producer: int, sequences: dict[int, int], attributes: int
    ) -> list[int]:
        fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
        offsets = self.append(log, rng, now_ms, {**fields, "attributes": attributes})
        sequences[producer] += len(offsets)
        return offsets

    def append(self, log: Log, rng: Random, now_ms: int, fields: dict[str, int]) -> list[int]:
        records = [
            Record(
                timestamp=now_ms + number,
                key=rng.choice(KEYS),
                value=None if rng.random() < 0.2 else rng.randbytes(rng.randrange(1, 200)),
            )
            for number in range(rng.randint(1, 3))
        ]
        first = log.append(write_batch(records, **fields), 0, now_ms).base_offset
        for offset, record in enumerate(records, start=first):
            record.offset = offset
            self.records[offset] = record
        return list(range(first, first + len(records)))


def flush(log: Log, files: RecordingFiles) -> None:
    log.flush()
    files.note(log.end_offset)


def compact_durably(directory: LogDirectory, log: Log, now_ms: int, rng: Random) -> None:
    """As the runtime does; the checkpoint may come late."""
    if compact(log, now_ms, flush=False):
        directory.files.sync_directory(log.directory)
        if rng.random() < 0.7:
            directory.write_checkpoints(CLEANER_OFFSETS)


def check(root: str, life: Life, synced: int) -> None:
    with recovered(root, SETTINGS) as directory:
        log = directory.logs.get(ORDERS)
        if log is None:
            assert not synced, f"the log is gone, though {synced} was synced"
            return
        assert log.end_offset >= synced, f"ends at {log.end_offset}, but {synced} was synced"
        there = {record.offset: record for record in contents(log)}
        for offset, record in there.items():
            assert record == life.records[offset], f"the record at {offset} is not what was written"
        for key in KEYS:
            check_key(key, life, there, synced)
        # Life goes on, also for compaction.
        log.advance_high_watermark(log.end_offset)
        log.roll(FakeClock().now_ms)
        compact(log, FakeClock().now_ms)
        assert {record.offset for record in contents(log)} <= set(there)


def check_key(key: bytes, life: Life, there: dict[int, Record], synced: int) -> None:
    """Its last record that was synced is there, or a later one. A deletion may have done its work."""
    mine = [
        record
        for offset, record in sorted(life.records.items())
        if record.key == key and offset < synced and offset not in life.aborted
    ]
    if not mine:
        return
    last = mine[-1]
    if any(record.key == key and offset >= last.offset for offset, record in there.items()):
        return
    if last.value is not None:
        raise AssertionError(f"the last record of {key!r}, at {last.offset}, is gone")
    older = [record.offset for record in mine if record.offset in there and record.value is not None]
    assert not older, f"{key!r} was deleted at {last.offset} and is back at {older}"


def contents(log: Log) -> list[Record]:
    found: list[Record] = []
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, 1000, log.end_offset)
        if not data:
            # A power loss took the end of one segment and not the, empty, next one.
            ends = [batch.last_offset for segment in log.segments for batch in segment.log.walk()]
            assert max(ends, default=-1) < offset, f"nothing can be read at {offset}"
            break
        for header, batch in iter_batches(data):
            assert header.last_offset >= offset
            offset = header.last_offset + 1
            if not header.is_control:
                found += read_records(batch)
    return found


@pytest.fixture
def scratch() -> Iterator[Path]:
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="ottla-crash-", dir=memory if memory.is_dir() else None))
    yield path
    shutil.rmtree(path)


def moments(scratch: Path, life: Life, seed: int) -> Iterator[tuple[int, int, Disk, int]]:
    """After each operation of a life: its number, of how many, the disk, and how far it was synced."""
    (scratch / "live").mkdir()
    files = RecordingFiles(str(scratch / "live"))
    life.live(files, seed)
    disk, synced = Disk(), 0
    for number, operation in enumerate(files.operations, start=1):
        disk.apply(operation)
        if isinstance(operation, Note):
            assert isinstance(operation.what, int)
            synced = operation.what
        yield number, len(files.operations), disk, synced


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_a_crash_of_the_recovery_in_the_middle_of_a_swap_is_a_crash_like_any_other(
    seed: int, scratch: Path
) -> None:
    life = Life()
    met = 0
    for number, _, disk, synced in moments(scratch, life, seed):
        image = disk.kept()
        if not any(name.endswith(".swap") for name in image):
            continue
        met += 1
        if met % 7:
            continue
        first = scratch / "first"
        first.mkdir()
        write_image(image, str(first))
        recovery = RecordingFiles(str(first))
        begun = len(recovery.operations)
        with recovered(str(first), SETTINGS, recovery):
            pass
        shutil.rmtree(first)
        second = Disk()
        for step, repair in enumerate(recovery.operations):
            second.apply(repair)
            if step >= begun:
                what = f"seed {seed}, operation {number}, repair {step}"
                examine(scratch / "second", second.kept(), life, synced, what)
    assert met > 50


def examine(root: Path, image: Image, life: Life, synced: int, what: str) -> None:
    root.mkdir()
    write_image(image, str(root))
    try:
        check(str(root), life, synced)
    except Exception as error:
        raise AssertionError(f"{what}: {error!r}") from error
    shutil.rmtree(root)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_crash_takes_the_last_record_of_a_key(seed: int, scratch: Path) -> None:
    life = Life()
    drawn = 0
    for number, count, disk, synced in moments(scratch, life, seed):
        while drawn * count < IMAGES_PER_SEED * number:
            drawn += 1
            rng = Random(f"{seed}/{number}/{drawn}")
            image = (disk.kept(), disk.lost(), disk.image(rng))[drawn % 3]
            what = f"seed {seed}, operation {number}, image {drawn}"
            examine(scratch / "image", image, life, synced, what)
