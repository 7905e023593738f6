"""A log against a plain list of batches, whatever is done to it and however it is stopped."""

from __future__ import annotations

import shutil
import struct
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.config.settings import replace
from ottla.config.topic import TopicSettings
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, iter_batches, read_records, write_batch
from ottla.protocol.errors import OffsetOutOfRange
from ottla.storage.log import Log
from ottla.testing.disk import UnsyncedFiles

NOW = 1_700_000_000_000
FILES = UnsyncedFiles()
SETTINGS = TopicSettings(
    segment_bytes=4000, index_interval_bytes=400, segment_ms=100_000, file_delete_delay_ms=0
)

batches = st.tuples(st.integers(1, 4), st.integers(0, 700), st.integers(-30_000, 30_000))


def open_log(directory: str, *, clean: bool, recovery_point: int = 0, start_offset: int = 0) -> Log:
    return Log.open(
        directory,
        TopicPartition("t", 0),
        SETTINGS,
        files=FILES,
        now_ms=NOW,
        clean_shutdown=clean,
        recovery_point=recovery_point,
        start_offset=start_offset,
    )


class LogModel(RuleBasedStateMachine):
    @initialize()
    def create(self) -> None:
        self.directory = tempfile.mkdtemp()
        self.log = open_log(self.directory + "/log", clean=True)
        # Of each batch: its first offset, the offset after it, its timestamp and its value.
        self.batches: list[tuple[int, int, int, bytes]] = []
        self.start_offset = self.end_offset = self.appended = 0

    def teardown(self) -> None:
        self.log.close_files()
        shutil.rmtree(self.directory)

    @rule(added=st.lists(batches, min_size=1, max_size=12), epoch_later=st.booleans())
    def append(self, added: list[tuple[int, int, int]], epoch_later: bool) -> None:
        epoch = max(0, self.log.epochs.latest) + epoch_later
        for count, size, late in added:
            self.appended += 1
            timestamp = NOW + 1000 * self.appended + late
            value = b"%d." % self.appended + bytes(size)
            data = write_batch([Record(timestamp=timestamp, value=value)] * count)
            assert self.log.append(data, epoch, NOW + 10**9).base_offset == self.end_offset
            self.batches.append((self.end_offset, self.end_offset + count, timestamp, value))
            self.end_offset += count

    @rule()
    def write(self) -> None:
        self.log.write()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end_offset

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW)

    @rule(data=st.data(), max_bytes=st.sampled_from([1, 900, 3000, 100_000]))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(self.start_offset - 1, self.end_offset + 1))
        if not self.start_offset <= offset <= self.end_offset:
            try:
                self.log.read(offset, max_bytes, self.end_offset)
            except OffsetOutOfRange:
                return
            raise AssertionError(f"{offset} is not in {self.log}")
        ends = [end for _, end, _, _ in self.batches if end > offset] or [self.end_offset]
        end_offset = data.draw(st.sampled_from(ends))
        found = self.log.read(offset, max_bytes, end_offset)
        headers = [header for header, _ in iter_batches(found)]
        assert sum(header.size for header in headers) == len(found)
        expected = [batch for batch in self.batches if batch[1] > offset and batch[1] <= end_offset]
        assert [(h.base_offset, h.last_offset + 1) for h in headers] == [
            b[:2] for b in expected[: len(headers)]
        ]
        assert bool(headers) == bool(expected)
        assert len(found) <= max_bytes or len(headers) == 1

    @rule(wanted=st.integers(-5, 5))
    @precondition(lambda self: self.batches)
    def find_time(self, wanted: int) -> None:
        timestamp = self.batches[len(self.batches) // 2][2] + wanted
        visible = [batch for batch in self.batches if batch[1] > self.start_offset]
        expected = next((batch for batch in visible if batch[2] >= timestamp), None)
        found = self.log.offset_for_timestamp(timestamp, self.end_offset)
        if expected is None:
            assert found is None
        else:
            assert found is not None
            assert (found.offset, found.timestamp) == (max(expected[0], self.start_offset), expected[2])
        greatest = max(visible, key=lambda batch: batch[2], default=None)
        latest = self.log.max_timestamp()
        # What was deleted counts until its segment is gone, as in Kafka; then it may hide what is left.
        assert latest is None or (greatest is not None and latest.timestamp <= greatest[2])

    @rule(data=st.data())
    @precondition(lambda self: self.batches)
    def truncate(self, data: st.DataObject) -> None:
        first, last = self.log.segments[0].base_offset, self.end_offset
        boundaries = [base for base, *_ in self.batches if base >= max(first, self.start_offset)]
        offset = data.draw(st.sampled_from([*boundaries, last]))
        self.log.truncate_to(offset)
        self.batches = [batch for batch in self.batches if batch[1] <= offset]
        self.end_offset = offset
        assert self.log.recovery_point <= offset

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.log.advance_high_watermark(self.end_offset)
        self.start_offset = data.draw(st.integers(self.start_offset, self.end_offset))
        self.log.delete_records(self.start_offset)

    @rule(keep_bytes=st.integers(0, 20_000))
    def retain(self, keep_bytes: int) -> None:
        self.log.advance_high_watermark(self.end_offset)
        self.log.settings = replace(SETTINGS, retention_bytes=keep_bytes, retention_ms=-1)
        self.log.enforce_retention(NOW)
        self.log.reap(NOW)
        self.log.settings = SETTINGS
        first = self.log.segments[0].base_offset
        assert self.log.size - self.log.segments[0].size < max(keep_bytes, 1)
        self.start_offset = max(self.start_offset, first)
        self.batches = [batch for batch in self.batches if batch[0] >= first]

    @rule()
    def stop_and_start(self) -> None:
        self.log.close(NOW)
        self.log = open_log(self.log.directory, clean=True, start_offset=self.start_offset)
        assert self.log.recovery_point == self.end_offset

    @rule(from_start=st.booleans())
    def kill_and_start(self, from_start: bool) -> None:
        self.log.write()
        self.log.close_files()
        recovery_point = 0 if from_start else self.log.recovery_point
        self.log = open_log(
            self.log.directory, clean=False, recovery_point=recovery_point, start_offset=self.start_offset
        )

    @rule(lost=st.integers(1, 3000), garbage=st.binary(max_size=200))
    def power_off_and_start(self, lost: int, garbage: bytes) -> None:
        """The end of the last file was not synced: some of it is gone, something else is there instead."""
        self.log.write()
        active, recovery_point = self.log.segments.active, self.log.recovery_point
        synced = 0 if recovery_point <= active.base_offset else active.position_of(recovery_point)
        self.log.close_files()
        path = Path(active.log.handle.path)
        data = path.read_bytes()
        kept = max(synced, len(data) - lost)
        path.write_bytes(data[:kept] + garbage)
        self.log = open_log(
            self.log.directory, clean=False, recovery_point=recovery_point, start_offset=self.start_offset
        )
        assert self.log.end_offset >= recovery_point
        self.end_offset = self.log.end_offset
        self.batches = [batch for batch in self.batches if batch[1] <= self.end_offset]
        self.start_offset = self.log.start_offset

    @invariant()
    def offsets_agree(self) -> None:
        log = self.log
        assert (log.start_offset, log.end_offset) == (self.start_offset, self.end_offset)
        assert log.start_offset <= log.high_watermark <= log.end_offset
        assert log.recovery_point <= log.end_offset

    @invariant()
    def every_record_is_there(self) -> None:
        offset, found = self.start_offset, []
        while offset < self.end_offset:
            for header, data in iter_batches(self.log.read(offset, 2500, self.end_offset)):
                values = {record.value for record in read_records(data)}
                found.append((header.base_offset, header.last_offset + 1, header.max_timestamp, *values))
                offset = header.last_offset + 1
        assert found == [batch for batch in self.batches if batch[1] > self.start_offset]

    @invariant()
    def indexes_point_at_their_batches(self) -> None:
        self.log.write()
        for segment in self.log.segments:
            by_last_offset = {batch.last_offset: batch for batch in segment.log.walk()}
            offsets = segment.offset_index.entries()
            assert all(by_last_offset[offset].position == position for offset, position in offsets)
            assert offsets == sorted(set(offsets))
            times = segment.time_index.entries()
            assert all(by_last_offset[offset].max_timestamp == timestamp for timestamp, offset in times)
            assert times == sorted(times) and len({timestamp for timestamp, _ in times}) == len(times)
            greatest = max((batch.max_timestamp for batch in by_last_offset.values()), default=-1)
            assert segment.greatest_timestamp()[0] == greatest


TestLogModel = LogModel.TestCase
TestLogModel.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def indexes_by_the_rule(data: bytes, interval: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Entries (offset, position) and (timestamp, offset) of a closed segment."""
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    since = position = 0
    latest = (-1, 0)
    for header, _ in iter_batches(data):
        if header.max_timestamp > latest[0]:
            latest = (header.max_timestamp, header.last_offset)
        if since > interval:
            offsets.append((header.last_offset, position))
            if not times or latest[0] > times[-1][0]:
                times.append(latest)
            since = 0
        since += header.size
        position += header.size
    if not times or latest[0] > times[-1][0]:
        times.append(latest)
    return offsets, times


@settings(max_examples=40, deadline=None)
@given(
    added=st.lists(batches, min_size=1, max_size=60),
    segment_bytes=st.integers(3500, 20_000),
    interval=st.integers(0, 3000),
)
def test_indexes_equal_a_rebuild_by_kafkas_rule(
    added: list[tuple[int, int, int]], segment_bytes: int, interval: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        chosen = replace(SETTINGS, segment_bytes=segment_bytes, index_interval_bytes=interval)
        log = Log.open(directory, TopicPartition("t", 0), chosen, files=FILES, now_ms=NOW)
        for number, (count, size, late) in enumerate(added):
            record = Record(timestamp=NOW + 1000 * number + late, value=bytes(size))
            log.append(write_batch([record] * count), 0, NOW)
        log.close(NOW)
        live = {path.name: path.read_bytes() for path in Path(directory).iterdir()}
        for segment in log.segments:
            name, base = f"{segment.base_offset:020d}", segment.base_offset
            offsets, times = indexes_by_the_rule(live[name + ".log"], interval)
            assert live[name + ".index"] == b"".join(
                struct.pack(">ii", at - base, pos) for at, pos in offsets
            )
            assert live[name + ".timeindex"] == b"".join(
                struct.pack(">qi", ms, at - base) for ms, at in times
            )
        Log.open(directory, TopicPartition("t", 0), chosen, files=FILES, now_ms=NOW).close_files()
        assert {path.name: path.read_bytes() for path in Path(directory).iterdir()} == live


def checksummed(log: bytes) -> bytes:
    """Batches without what no checksum covers, in Kafka's format as in ours: base offset and leader epoch."""
    kept, position = bytearray(), 0
    while position < len(log):
        size = 12 + struct.unpack_from(">i", log, position + 8)[0]
        kept += log[position + 8 : position + 12] + log[position + 16 : position + size]
        position += size
    return bytes(kept)


@settings(max_examples=60, deadline=None)
@given(
    added=st.lists(batches, min_size=1, max_size=40),
    damage=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 3000),
)
@example(
    # A base offset, which no checksum covers, that reaches beyond the start of the next segment.
    added=[(2, 161, 0), (4, 700, 0), (1, 633, 0), (4, 64, 0), (4, 536, 0), (4, 0, 0), (1, 545, 0)],
    damage=[(148900, 1)],
    cut=0,
)
def test_recovering_twice_is_recovering_once_whatever_was_damaged(
    added: list[tuple[int, int, int]], damage: list[tuple[int, int]], cut: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = open_log(directory, clean=True)
        for number, (count, size, late) in enumerate(added):
            record = Record(timestamp=NOW + 1000 * number + late, value=bytes(size))
            fields = (
                {"producer_id": number % 3, "producer_epoch": 0, "base_sequence": 0} if number < 3 else {}
            )
            log.append(write_batch([record] * count, **fields), number // 10, NOW)
        log.write()
        log.close_files()
        written = b"".join(path.read_bytes() for path in sorted(Path(directory).glob("*.log")))
        paths = sorted(Path(directory).iterdir())
        for position, byte in damage:
            path = paths[position % len(paths)]
            data = bytearray(path.read_bytes())
            if data:
                data[position % len(data)] = byte
                path.write_bytes(data)
        data = paths[0].with_name(f"{log.segments.active.base_offset:020d}.log").read_bytes()
        log_path = paths[0].with_name(f"{log.segments.active.base_offset:020d}.log")
        log_path.write_bytes(data[: max(0, len(data) - cut)])
        open_log(directory, clean=False).close_files()
        once = {path.name: path.read_bytes() for path in Path(directory).iterdir()}
        log = open_log(directory, clean=False)
        assert {path.name: path.read_bytes() for path in Path(directory).iterdir()} == once
        left = b"".join(once[name] for name in sorted(once) if name.endswith(".log"))
        assert checksummed(written).startswith(checksummed(left))
        log.close(NOW)
