from __future__ import annotations

import pytest

from ottla.protocol.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from ottla.storage.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from ottla.storage.producer_state import LAST_SEQUENCE, AppendedBatch, Producers, sequence_after

PRODUCER = 7


class Partition:
    """Producers with the offsets that a log would give them."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.end_offset = 0

    def write(
        self,
        sequence: int,
        count: int = 1,
        *,
        epoch: int = 0,
        transactional: bool = False,
        producer: int = PRODUCER,
    ) -> AppendedBatch | None:
        last = sequence_after(sequence, count - 1)
        original = self.producers.check(producer, epoch, sequence, last, transactional)
        if original is None:
            self.producers.apply(
                producer,
                epoch,
                sequence,
                last,
                self.end_offset,
                self.end_offset + count - 1,
                1000 + self.end_offset,
                transactional,
            )
            self.end_offset += count
        return original

    def end(
        self,
        *,
        abort: bool = False,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        version: int = 0,
        producer: int = PRODUCER,
    ) -> int | None:
        """The last stable offset as the transaction index has it, None if there was nothing to end."""
        self.producers.check_marker(producer, epoch, coordinator_epoch, version)
        completed = self.producers.apply_marker(
            producer, epoch, coordinator_epoch, self.end_offset, 5000, aborted=abort
        )
        self.end_offset += 1
        return None if completed is None else self.producers.complete(completed)


def test_batches_follow_one_another() -> None:
    partition = Partition()
    assert partition.write(0, 3) is None
    assert partition.write(3, 2) is None
    with pytest.raises(OutOfOrderSequenceNumber):
        partition.write(6)
    assert partition.write(5) is None


def test_any_of_the_last_five_batches_is_a_duplicate() -> None:
    partition = Partition()
    for sequence in range(0, 14, 2):
        partition.write(sequence, 2)
    for sequence in range(4, 14, 2):
        original = partition.write(sequence, 2)
        assert original is not None
        assert (original.first_offset, original.last_offset) == (sequence, sequence + 1)
    for sequence, count in [(2, 2), (0, 2), (4, 1), (5, 2), (12, 3)]:
        with pytest.raises(OutOfOrderSequenceNumber):
            partition.write(sequence, count)


def test_after_the_greatest_sequence_comes_zero() -> None:
    partition = Partition()
    partition.write(LAST_SEQUENCE - 1, 2)
    assert partition.write(0, 2) is None
    assert partition.write(LAST_SEQUENCE - 1, 2) is not None
    other = Partition()
    other.write(LAST_SEQUENCE, 3)
    assert other.write(2) is None


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert Partition().write(42) is None


def test_an_unknown_producer_of_transactions_of_version_2_begins_at_zero() -> None:
    producers = Producers()
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.check(PRODUCER, 0, 42, 42, True, transaction_version=2)
    assert producers.check(PRODUCER, 0, 0, 0, True, transaction_version=2) is None


def test_an_old_epoch_is_fenced_and_a_new_one_begins_at_zero() -> None:
    partition = Partition()
    partition.write(0, epoch=3)
    with pytest.raises(InvalidProducerEpoch):
        partition.write(1, epoch=2)
    with pytest.raises(OutOfOrderSequenceNumber):
        partition.write(1, epoch=4)
    assert partition.write(0, epoch=4) is None
    with pytest.raises(InvalidProducerEpoch):
        partition.write(1, epoch=3)


def test_a_refused_batch_leaves_no_trace() -> None:
    partition = Partition()
    partition.write(0, 2, transactional=True)
    before = encode_snapshot(partition.producers)
    for act in (
        lambda: partition.write(9, transactional=True),
        lambda: partition.write(2),
        lambda: partition.write(1, epoch=5, transactional=True),
        lambda: partition.end(epoch=-1),
    ):
        with pytest.raises((OutOfOrderSequenceNumber, InvalidTxnState, InvalidProducerEpoch)):
            act()
    assert encode_snapshot(partition.producers) == before
    assert partition.producers.first_unstable_offset() == 0


def test_an_open_transaction_holds_back_the_stable_offset_until_its_marker_is_replicated() -> None:
    partition = Partition()
    partition.write(0)
    partition.write(1, 2, transactional=True)
    assert partition.producers.first_unstable_offset() == 1
    assert partition.producers.has_open_transaction(PRODUCER, 0)
    assert not partition.producers.has_open_transaction(PRODUCER, 1)
    partition.end()
    assert not partition.producers.has_open_transaction(PRODUCER, 0)
    assert partition.producers.first_unstable_offset() == 1
    partition.producers.replicated(3)
    assert partition.producers.first_unstable_offset() == 1
    partition.producers.replicated(4)
    assert partition.producers.first_unstable_offset() is None


def test_an_abort_notes_where_the_next_open_transaction_begins() -> None:
    partition = Partition()
    partition.write(0, transactional=True, producer=1)
    partition.write(0, transactional=True, producer=2)
    partition.write(0, transactional=True, producer=3)
    assert partition.end(producer=2, abort=True) == 0
    assert partition.end(producer=1, abort=True) == 2
    assert partition.end(producer=3, abort=True) == partition.end_offset


def test_a_marker_without_records_ends_nothing() -> None:
    partition = Partition()
    assert partition.end(producer=99) is None
    producer = partition.producers.get(99)
    assert producer is not None
    assert (producer.epoch, producer.last_sequence, producer.last_offset) == (0, -1, -1)


def test_an_old_coordinator_is_fenced() -> None:
    partition = Partition()
    partition.write(0, transactional=True)
    partition.end(coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFenced):
        partition.end(coordinator_epoch=4)
    partition.end(coordinator_epoch=5)


def test_a_marker_of_version_2_brings_a_new_epoch() -> None:
    partition = Partition()
    partition.write(0, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        partition.end(epoch=0, version=2)
    assert partition.end(epoch=1, version=2) is not None
    assert partition.end(epoch=1, version=2) is None
    with pytest.raises(InvalidProducerEpoch):
        partition.write(1, epoch=0, transactional=True)
    assert partition.write(0, epoch=1, transactional=True) is None


def test_the_coordinators_own_batches_have_no_sequence() -> None:
    producers = Producers()
    for offset in range(3):
        assert producers.check(1, 0, -1, -1, True, sequenced=False) is None
        producers.apply(1, 0, -1, -1, offset, offset, 0, True)
    assert producers.first_unstable_offset() == 0


def test_silent_producers_are_forgotten_unless_they_have_a_transaction() -> None:
    partition = Partition()
    partition.write(0, producer=1)
    partition.write(0, producer=2, transactional=True)
    partition.write(0, producer=3)
    assert partition.producers.expire(2001, expiration_ms=1000) == 1
    assert [producer.id for producer in partition.producers] == [2, 3]
    assert partition.write(17, producer=1) is None


def test_a_snapshot_keeps_the_last_batch_of_each_producer() -> None:
    partition = Partition()
    for sequence in (0, 2, 4):
        partition.write(sequence, 2, transactional=True)
    partition.end(producer=9, coordinator_epoch=4)
    data = encode_snapshot(partition.producers)
    assert len(data) == 10 + 2 * 46
    assert data[:2] == b"\x00\x01"
    producers = Producers(decode_snapshot(data), partition.end_offset)
    assert encode_snapshot(producers) == data
    assert producers.first_unstable_offset() == 0
    assert producers.check(PRODUCER, 0, 4, 5, True) == (4, 5, 5, 1, 1004)
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.check(PRODUCER, 0, 2, 3, True)
    assert producers.check(PRODUCER, 0, 6, 6, True) is None


def test_a_snapshot_of_a_sequence_that_wrapped_knows_its_first_sequence() -> None:
    partition = Partition()
    partition.write(LAST_SEQUENCE - 1, 4)
    restored = Producers(decode_snapshot(encode_snapshot(partition.producers)))
    assert restored.check(PRODUCER, 0, LAST_SEQUENCE - 1, 1, False) is not None


@pytest.mark.parametrize("position", [0, 3, 7, 30, 55])
def test_a_damaged_snapshot_is_refused(position: int) -> None:
    partition = Partition()
    partition.write(0)
    data = bytearray(encode_snapshot(partition.producers))
    data[position] ^= 0x40
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(bytes(data))
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(bytes(data[:position]))


def test_a_snapshot_of_nobody_has_ten_bytes() -> None:
    assert len(encode_snapshot([])) == 10
    assert decode_snapshot(encode_snapshot([])) == []
