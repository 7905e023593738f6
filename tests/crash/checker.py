"""What must be true of a log directory after a crash, whatever the crash left of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from struct import iter_unpack

from ottla.config.topic import TopicSettings
from ottla.core.files import Files
from ottla.core.ids import Uuid
from ottla.protocol.batch import Record, iter_batches, read_header, write_batch
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory, open_log_directories
from ottla.testing.disk import UnsyncedFiles
from tests.crash.workload import Created, Deleting, FakeClock, MayStart, Synced, Workload, Written

INDEXES = (".index", ".timeindex", ".txnindex")


@dataclass
class Promises:
    """What was noted up to some operation."""

    synced: dict[Uuid, int] = field(default_factory=dict)
    may_start: dict[Uuid, int] = field(default_factory=dict)
    deleting: set[Uuid] = field(default_factory=set)

    def note(self, what: object) -> None:
        match what:
            case Created(topic_id):
                self.may_start[topic_id] = 0
            case Synced(topic_id, end_offset):
                self.synced[topic_id] = max(end_offset, self.synced.get(topic_id, 0))
            case MayStart(topic_id, offset):
                self.may_start[topic_id] = offset
            case Deleting(topic_id):
                self.deleting.add(topic_id)
            case _:
                raise AssertionError(what)


@contextmanager
def recovered(root: str, settings: TopicSettings, files: Files | None = None) -> Iterator[LogDirectory]:
    """The directory as a starting broker makes it usable. Left as if that broker crashed in turn."""
    [directory] = open_log_directories(
        [root], clock=FakeClock(), node_id=1, files=files or UnsyncedFiles(), recovery_threads=1
    )
    try:
        directory.load(lambda topic: settings)
        assert not directory.unloadable, f"cannot be loaded: {directory.unloadable}"
        yield directory
    finally:
        for log in directory.logs.values():
            log.close_files()
        directory._lock.release()


def check(root: str, workload: Workload, promises: Promises, *, thorough: bool) -> None:
    """All that has to hold. `thorough` adds what takes longer: the indexes, and that recovery is final."""
    settings = workload.settings
    with recovered(root, settings) as directory:
        found = {log.topic_id: log for log in directory.logs.values() if log.topic_id is not None}
        for topic_id, end_offset in promises.synced.items():
            if topic_id not in promises.deleting and end_offset > promises.may_start[topic_id]:
                assert topic_id in found, f"{topic_id} is gone, though {end_offset} was synced"
        for topic_id, log in found.items():
            check_log(log, workload.written[topic_id], promises)
        before = {topic_id: contents(log) for topic_id, log in found.items()}
        if not thorough:
            check_appends(directory)
    if thorough:
        with recovered(root, settings) as directory:
            again = {
                log.topic_id: contents(log) for log in directory.logs.values() if log.topic_id is not None
            }
            assert again == before, "a second recovery finds something else"
            directory.close()
        check_indexes(root, settings, rebuilt_are_equal=workload.lives == 1)
        with recovered(root, settings) as directory:
            check_appends(directory)


def check_log(log: Log, written: Written, promises: Promises) -> None:
    may_start = promises.may_start.get(log.topic_id, 0)
    must_end = promises.synced.get(log.topic_id, 0)
    assert log.start_offset <= may_start, f"starts at {log.start_offset}, only {may_start} was given up"
    assert log.end_offset >= must_end, f"ends at {log.end_offset}, but {must_end} was synced"
    assert log.start_offset <= log.high_watermark <= log.end_offset
    expected = log.start_offset
    producers: dict[int, tuple[int, int, int]] = {}
    for base_offset, batch in contents(log):
        header = read_header(batch)
        assert base_offset <= expected <= header.last_offset, f"a gap: {base_offset} where {expected} was due"
        assert batch == written.batches[base_offset], f"the batch at {base_offset} is not what was written"
        if header.last_offset >= may_start:  # of what was given up and came back, the epoch may be forgotten
            epoch = log.epochs.epoch_for(header.last_offset)
            assert epoch == header.partition_leader_epoch, f"epoch {epoch} of the batch at {base_offset}"
        if header.producer_id >= 0 and not header.is_control:
            producers[header.producer_id] = header.producer_epoch, header.last_sequence, header.last_offset
        expected = header.last_offset + 1
    assert expected == log.end_offset, f"ends at {log.end_offset}, but the last batch at {expected}"
    for producer_id, last in producers.items():
        producer = log.producers.get(producer_id)
        assert producer is not None, f"producer {producer_id} is forgotten"
        assert (producer.epoch, producer.last_sequence, producer.last_offset) == last


def contents(log: Log) -> list[tuple[int, bytes]]:
    batches = []
    offset = log.start_offset
    while offset < log.end_offset:
        batch = bytes(log.read(offset, 1, log.end_offset))
        header = read_header(batch)
        assert header.size == len(batch), f"{len(batch)} bytes read at {offset}, the batch has {header.size}"
        batches.append((header.base_offset, batch))
        offset = header.last_offset + 1
    return batches


def check_appends(directory: LogDirectory) -> None:
    """Life goes on, and a producer that sends its last batch again is told where it went."""
    now_ms = FakeClock().now_ms
    for log in directory.logs.values():
        end_offset, epoch = log.end_offset, max(log.epochs.latest, 0)
        last = next((batch for _, batch in reversed(contents(log)) if is_sequenced(batch)), None)
        if last is not None:
            header = read_header(last)
            repeated = log.append(as_sent(last), epoch, header.max_timestamp)
            assert repeated.duplicate, f"the batch at {header.base_offset} is taken a second time"
            assert repeated.base_offset == header.base_offset
        batch = write_batch([Record(timestamp=now_ms, key=b"k", value=b"afterwards")])
        assert log.append(batch, epoch, now_ms).base_offset == end_offset
        log.flush()
        assert log.recovery_point == end_offset + 1
        assert contents(log)[-1][0] == end_offset


def is_sequenced(batch: bytes) -> bool:
    header = read_header(batch)
    return header.base_sequence >= 0 and not header.is_control


def as_sent(batch: bytes) -> bytearray:
    """A batch as its client sent it: without offset."""
    return bytearray(8) + batch[8:]


def check_indexes(root: str, settings: TopicSettings, *, rebuilt_are_equal: bool) -> None:
    """The indexes of a directory that was closed are right, and those that a rebuild would make.

    After a clean restart the rule of Kafka that makes index entries starts to count anew in the middle of a
    segment, so a rebuild from its beginning makes other entries, just as right.
    """
    found = indexes(root)
    for path in Path(root).glob("*[0-9]/*.log"):
        check_segment(path)
    for path in Path(root).glob("*/*"):
        if path.suffix in INDEXES:
            path.unlink()
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        Path(root, name).unlink(missing_ok=True)
    with recovered(root, settings) as directory:
        directory.close()
    rebuilt = indexes(root)
    if not rebuilt_are_equal:
        found, rebuilt = (
            {p: d for p, d in each.items() if p.endswith(".txnindex")} for each in (found, rebuilt)
        )
    assert found == rebuilt, f"differ: {[path for path in found if found[path] != rebuilt.get(path)]}"


def check_segment(log: Path) -> None:
    """Every entry of the offset and time index is true, and the greatest timestamp is in it."""
    base_offset = int(log.stem)
    data = log.read_bytes()
    positions: dict[int, int] = {}  # by last offset
    greatest: list[tuple[int, int]] = []  # timestamp and last offset, as they grew
    position = 0
    for header, batch in iter_batches(data):
        positions[header.last_offset] = position
        if not greatest or header.max_timestamp > greatest[-1][0]:
            greatest.append((header.max_timestamp, header.last_offset))
        position += len(batch)
    assert position == len(data), f"{log} ends in something that is no batch"
    entries = [(base_offset + a, b) for a, b in iter_unpack(">ii", log.with_suffix(".index").read_bytes())]
    assert entries == sorted(set(entries)), f"{log}: index entries out of order"
    for offset, position in entries:
        assert positions.get(offset) == position, f"{log}: the index has {offset} at {position}"
    times = [(a, base_offset + b) for a, b in iter_unpack(">qi", log.with_suffix(".timeindex").read_bytes())]
    assert set(times) <= set(greatest), f"{log}: time index {times} of {greatest}"
    assert times[-1:] == greatest[-1:], f"{log}: the greatest timestamp is not in the time index"


def indexes(root: str) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in Path(root).glob("*[0-9]/*")
        if path.suffix in INDEXES and path.stat().st_size
    }


def transaction_indexes(found: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in found.items() if path.endswith(".txnindex")}
