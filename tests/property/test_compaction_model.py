"""A compacted log against a plain list: who reads it to its end knows the last value of every key."""

from __future__ import annotations

import shutil
import tempfile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.config.topic import TopicSettings
from ottla.core.types import TopicPartition
from ottla.protocol.batch import TRANSACTIONAL, Record, iter_batches, read_records, write_batch
from ottla.protocol.control import EndTransactionMarker, end_transaction_batch
from ottla.storage.cleaner import SLOT_BYTES
from ottla.storage.log import Log, Origin
from ottla.testing.disk import UnsyncedFiles
from tests.unit.storage.compacting import compact, records_of

NOW = 1_700_000_000_000
RETENTION_MS = 10_000
FILES = UnsyncedFiles()
SETTINGS = TopicSettings(
    cleanup_policy=("compact",),
    segment_bytes=1500,
    index_interval_bytes=150,
    delete_retention_ms=RETENTION_MS,
    file_delete_delay_ms=0,
)

keys = st.sampled_from([b"", b"a", b"b", b"c"])
values = st.one_of(st.none(), st.binary(max_size=80))
records = st.lists(st.tuples(keys, values, st.integers(-5_000, 5_000)), min_size=1, max_size=4)
codecs = st.sampled_from([0, 1, 4])


class CompactedLog(RuleBasedStateMachine):
    @initialize()
    def create(self) -> None:
        self.directory = tempfile.mkdtemp()
        self.now_ms = NOW
        self.log = self.open(clean=True)
        self.records: dict[int, Record] = {}
        self.aborted: set[int] = set()
        self.open_transactions: dict[int, list[int]] = {}
        self.sequences = dict.fromkeys((1, 2, 3), 0)

    def teardown(self) -> None:
        self.log.close_files()
        shutil.rmtree(self.directory)

    def open(self, *, clean: bool) -> Log:
        log = Log.open(
            self.directory + "/log",
            TopicPartition("t", 0),
            SETTINGS,
            files=FILES,
            now_ms=self.now_ms,
            clean_shutdown=clean,
        )
        log.advance_high_watermark(log.end_offset)
        return log

    def append(self, added: list[tuple[bytes, bytes | None, int]], **fields: int) -> list[int]:
        new = [Record(timestamp=self.now_ms + late, key=key, value=value) for key, value, late in added]
        first = self.log.append(write_batch(new, **fields), 0, self.now_ms).base_offset
        for offset, record in enumerate(new, start=first):
            record.offset = offset
            self.records[offset] = record
        self.log.advance_high_watermark(self.log.end_offset)
        return list(range(first, first + len(new)))

    @rule(added=records, codec=codecs)
    def put(self, added: list[tuple[bytes, bytes | None, int]], codec: int) -> None:
        self.append(added, codec=codec)

    @rule(added=records, producer=st.sampled_from([1, 2, 3]), codec=codecs)
    def produce(self, added: list[tuple[bytes, bytes | None, int]], producer: int, codec: int) -> None:
        """The first producer is idempotent, the others have transactions."""
        offsets = self.append(
            added,
            codec=codec,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences[producer],
            attributes=TRANSACTIONAL if producer > 1 else 0,
        )
        self.sequences[producer] += len(offsets)
        if producer > 1:
            self.open_transactions.setdefault(producer, []).extend(offsets)

    @precondition(lambda self: self.open_transactions)
    @rule(commit=st.booleans())
    def end(self, commit: bool) -> None:
        producer, offsets = self.open_transactions.popitem()
        if not commit:
            self.aborted.update(offsets)
        batch = end_transaction_batch(EndTransactionMarker(producer, 0, 0, commit), timestamp=self.now_ms)
        self.log.append(batch, 0, self.now_ms, origin=Origin.COORDINATOR)
        self.log.advance_high_watermark(self.log.end_offset)

    @rule(passed_ms=st.sampled_from([0, 1, RETENTION_MS - 1, RETENTION_MS]), roll=st.booleans())
    def compact(self, passed_ms: int, roll: bool) -> None:
        self.now_ms += passed_ms
        if roll:
            self.log.roll(self.now_ms)
        end_offset = self.log.end_offset
        compact(self.log, self.now_ms)
        self.log.reap(self.now_ms)
        assert self.log.end_offset == end_offset

    @rule(slots=st.integers(1, 3))
    def compact_with_little_memory(self, slots: int) -> None:
        self.log.roll(self.now_ms)
        compact(self.log, self.now_ms, memory=slots * SLOT_BYTES)

    @rule(clean=st.booleans())
    def reopen(self, clean: bool) -> None:
        end_offset, clean_up_to = self.log.end_offset, self.log.clean_up_to
        if clean:
            self.log.close(self.now_ms)
        else:
            self.log.write()
            self.log.close_files()
        self.log = self.open(clean=clean)
        self.log.clean_up_to = clean_up_to
        assert self.log.end_offset == end_offset

    @invariant()
    def all_that_is_there_was_written(self) -> None:
        for record in records_of(self.log):
            assert record == self.records[record.offset]

    @invariant()
    def a_reader_of_committed_records_knows_the_last_value_of_every_key(self) -> None:
        stable = self.log.last_stable_offset
        there = self.committed(stable)
        assert self.aborted.isdisjoint(there)
        for key in {record.key for record in self.records.values()}:
            mine = [
                record
                for offset, record in sorted(self.records.items())
                if record.key == key and offset < stable and offset not in self.aborted
            ]
            if not mine:
                continue
            found = [record for record in there.values() if record.key == key]
            if found:
                assert found[-1].offset == mine[-1].offset or (found[-1].value is mine[-1].value is None)
            else:
                assert mine[-1].value is None

    def committed(self, stable: int) -> dict[int, Record]:
        """What a consumer sees that is told of aborted transactions, and forgets each at its marker."""
        self.log.write()
        aborted = sorted(self.log.aborted_transactions(0, stable), key=lambda each: each.first_offset)
        out: set[int] = set()
        there: dict[int, Record] = {}
        offset = self.log.start_offset
        while offset < stable and (data := self.log.read(offset, 1000, stable)):
            for header, batch in iter_batches(data):
                offset = header.last_offset + 1
                while aborted and aborted[0].first_offset <= header.last_offset:
                    out.add(aborted.pop(0).producer_id)
                if header.is_control:
                    out.discard(header.producer_id)
                elif not (header.is_transactional and header.producer_id in out):
                    there.update((record.offset, record) for record in read_records(batch))
        return there

    @invariant()
    def producers_are_remembered(self) -> None:
        for producer_id, sequence in self.sequences.items():
            if sequence:
                producer = self.log.producers.get(producer_id)
                assert producer is not None and producer.last_sequence == sequence - 1

    @invariant()
    def the_time_index_finds_the_first_record_that_is_not_older(self) -> None:
        there = records_of(self.log)
        for record in there[:: max(1, len(there) // 3)]:
            found = self.log.offset_for_timestamp(record.timestamp, self.log.end_offset)
            assert found is not None
            assert found.offset <= record.offset


TestCompactedLog = CompactedLog.TestCase
TestCompactedLog.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
