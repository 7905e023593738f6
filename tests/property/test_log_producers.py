"""Idempotent and transactional producers of a log, against what a client and a reader may expect."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.config.topic import TopicSettings
from ottla.core.types import TopicPartition
from ottla.protocol.batch import TRANSACTIONAL, Record, write_batch
from ottla.protocol.control import EndTransactionMarker, end_transaction_batch
from ottla.protocol.errors import InvalidProducerEpoch, InvalidTxnState, KafkaError, OutOfOrderSequenceNumber
from ottla.storage.log import Appended, Log, Origin
from ottla.testing.disk import UnsyncedFiles

NOW = 1_700_000_000_000
FILES = UnsyncedFiles()
SETTINGS = TopicSettings(segment_bytes=1500, index_interval_bytes=200)
LAST = 2**31 - 1

producers = st.integers(0, 2)
counts = st.integers(1, 3)


@dataclass
class Sent:
    sequence: int
    count: int
    offset: int


@dataclass
class Producer:
    id: int
    epoch: int = 0
    # Near the end of the sequence numbers, so that they wrap.
    next_sequence: int = LAST - 4
    sent: list[Sent] = field(default_factory=list)
    # How many of the last batches the log has to remember: five, but a restart keeps only one for sure.
    remembered: int = 0
    first_offset: int | None = None


@dataclass
class Transaction:
    producer: int
    first_offset: int
    marker: int
    aborted: bool


class ProducersModel(RuleBasedStateMachine):
    @initialize()
    def create(self) -> None:
        self.directory = tempfile.mkdtemp()
        self.log = self.open(clean=True)
        self.producers = [Producer(number) for number in range(3)]
        self.over: list[Transaction] = []
        self.end_offset = 0

    def teardown(self) -> None:
        self.log.close_files()
        shutil.rmtree(self.directory)

    def open(self, *, clean: bool, recovery_point: int = 0) -> Log:
        return Log.open(
            self.directory + "/log",
            TopicPartition("t", 0),
            SETTINGS,
            files=FILES,
            now_ms=NOW,
            clean_shutdown=clean,
            recovery_point=recovery_point,
        )

    def send(
        self,
        producer: Producer,
        sequence: int,
        count: int,
        *,
        epoch: int | None = None,
        transactional: bool = False,
    ) -> Appended:
        data = write_batch(
            [Record(timestamp=NOW, value=b"v" * 50)] * count,
            producer_id=producer.id,
            producer_epoch=producer.epoch if epoch is None else epoch,
            base_sequence=sequence,
            attributes=TRANSACTIONAL if transactional else 0,
        )
        return self.log.append(data, 0, NOW)

    def refused(self, error: type[KafkaError], act: Callable[[], object]) -> None:
        try:
            act()
        except error:
            return
        raise AssertionError(f"{error.__name__} expected")

    @rule(number=producers, count=counts, transactional=st.booleans())
    def next_batch(self, number: int, count: int, transactional: bool) -> None:
        producer = self.producers[number]
        transactional |= producer.first_offset is not None
        appended = self.send(producer, producer.next_sequence, count, transactional=transactional)
        assert (appended.base_offset, appended.duplicate) == (self.end_offset, False)
        producer.sent.append(Sent(producer.next_sequence, count, self.end_offset))
        producer.remembered = min(5, producer.remembered + 1)
        producer.next_sequence = (producer.next_sequence + count) % (LAST + 1)
        if transactional and producer.first_offset is None:
            producer.first_offset = self.end_offset
        self.end_offset += count

    @rule(number=producers, back=st.integers(1, 8))
    def resend(self, number: int, back: int) -> None:
        producer = self.producers[number]
        if back > len(producer.sent):
            return
        sent = producer.sent[-back]
        transactional = producer.first_offset is not None
        try:
            appended = self.send(producer, sent.sequence, sent.count, transactional=transactional)
        except OutOfOrderSequenceNumber:
            assert back > producer.remembered
        else:
            assert back <= 5
            assert appended.duplicate
            assert (appended.base_offset, appended.last_offset) == (sent.offset, sent.offset + sent.count - 1)

    @rule(number=producers, skipped=st.integers(1, 3))
    @precondition(lambda self: any(producer.sent for producer in self.producers))
    def skip_sequences(self, number: int, skipped: int) -> None:
        producer = self.producers[number]
        if producer.sent:
            sequence = (producer.next_sequence + skipped) % (LAST + 1)
            self.refused(
                OutOfOrderSequenceNumber, lambda: self.send(producer, sequence, 1, transactional=True)
            )

    @rule(number=producers)
    def leave_transaction(self, number: int) -> None:
        producer = self.producers[number]
        if producer.first_offset is not None:
            self.refused(InvalidTxnState, lambda: self.send(producer, producer.next_sequence, 1))

    @rule(number=producers)
    def begin_new_epoch(self, number: int) -> None:
        producer = self.producers[number]
        if producer.first_offset is None and producer.sent:
            self.refused(
                OutOfOrderSequenceNumber, lambda: self.send(producer, 3, 1, epoch=producer.epoch + 1)
            )
            producer.epoch += 1
            producer.next_sequence, producer.sent, producer.remembered = 0, [], 0
            self.next_batch(number, 1, False)
            self.refused(InvalidProducerEpoch, lambda: self.send(producer, 0, 1, epoch=producer.epoch - 1))

    @rule(number=producers, commit=st.booleans(), bump=st.booleans())
    def end_transaction(self, number: int, commit: bool, bump: bool) -> None:
        producer = self.producers[number]
        if bump:
            producer.epoch += 1
            producer.next_sequence, producer.sent, producer.remembered = 0, [], 0
        marker = EndTransactionMarker(producer.id, producer.epoch, 0, commit)
        data = end_transaction_batch(marker, timestamp=NOW)
        version = 2 if bump else 0
        appended = self.log.append(data, 0, NOW, origin=Origin.COORDINATOR, transaction_version=version)
        assert appended.base_offset == self.end_offset
        if producer.first_offset is not None:
            self.over.append(Transaction(number, producer.first_offset, self.end_offset, not commit))
            producer.first_offset = None
        if not producer.sent:
            producer.next_sequence = 0
        self.end_offset += 1

    @rule(data=st.data())
    def replicate(self, data: st.DataObject) -> None:
        self.log.advance_high_watermark(data.draw(st.integers(0, self.end_offset)))

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        if clean:
            self.log.close(NOW)
        else:
            self.log.flush()
            self.log.close_files()
        self.log = self.open(clean=clean, recovery_point=self.log.recovery_point)
        self.log.advance_high_watermark(self.end_offset)
        for producer in self.producers:
            producer.remembered = min(1, producer.remembered)

    @invariant()
    def the_last_stable_offset_is_before_all_that_is_not_decided(self) -> None:
        watermark = self.log.high_watermark
        open_since = [p.first_offset for p in self.producers if p.first_offset is not None]
        undecided = [transaction.first_offset for transaction in self.over if transaction.marker >= watermark]
        assert self.log.last_stable_offset == min([watermark, *open_since, *undecided])
        assert self.log.end_offset == self.end_offset

    @invariant()
    def readers_learn_of_every_abort_in_their_range(self) -> None:
        stable = self.log.last_stable_offset
        aborted = {(t.producer, t.first_offset) for t in self.over if t.aborted}
        for start in {0, stable // 2, stable}:
            found = self.log.aborted_transactions(start, stable)
            wanted = {
                (t.producer, t.first_offset)
                for t in self.over
                if t.aborted and t.marker >= start and t.first_offset < stable
            }
            assert wanted <= set(found) <= aborted
            assert len(found) == len(set(found))


TestProducersModel = ProducersModel.TestCase
TestProducersModel.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
