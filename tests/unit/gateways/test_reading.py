"""From fetched batches to the records that a reader should see."""

from __future__ import annotations

from ottla.gateways.reading import offset_after, visible_records
from ottla.protocol.batch import TRANSACTIONAL, Record, write_batch
from ottla.protocol.control import EndTransactionMarker, end_transaction_batch
from ottla.protocol.messages.fetch import AbortedTransaction


def batch(offset: int, *values: bytes, producer_id: int = -1) -> bytes:
    records = [Record(timestamp=1, value=value) for value in values]
    transactional = TRANSACTIONAL if producer_id >= 0 else 0
    return bytes(
        write_batch(
            records,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            attributes=transactional,
        )
    )


def marker(offset: int, *, producer_id: int, commit: bool) -> bytes:
    ending = EndTransactionMarker(producer_id, producer_epoch=0, coordinator_epoch=0, commit=commit)
    return bytes(end_transaction_batch(ending, timestamp=1, base_offset=offset))


def values(batches: bytes, *aborted: AbortedTransaction, offset: int = 0) -> list[bytes | None]:
    return [record.value for record in visible_records(batches, aborted, offset)]


def test_a_batch_that_begins_before_the_offset_is_read_from_the_offset_on() -> None:
    batches = batch(0, b"a", b"b", b"c") + batch(3, b"d")
    assert values(batches, offset=2) == [b"c", b"d"]
    assert offset_after(batches, 2) == 4


def test_nothing_read_means_reading_on_at_the_same_place() -> None:
    assert values(b"", offset=7) == []
    assert offset_after(b"", 7) == 7


def test_records_of_an_aborted_transaction_are_left_out_up_to_its_marker() -> None:
    batches = (
        batch(0, b"kept")
        + batch(1, b"aborted", producer_id=5)
        + batch(2, b"other", producer_id=6)
        + marker(3, producer_id=5, commit=False)
        + batch(4, b"again", producer_id=5)
        + marker(5, producer_id=5, commit=True)
        + marker(6, producer_id=6, commit=True)
    )
    aborted = AbortedTransaction(producer_id=5, first_offset=1)
    assert values(batches, aborted) == [b"kept", b"other", b"again"]
    assert offset_after(batches, 0) == 7


def test_an_abort_that_began_before_what_was_read_counts_too() -> None:
    batches = batch(10, b"aborted", producer_id=5) + marker(11, producer_id=5, commit=False)
    assert values(batches, AbortedTransaction(producer_id=5, first_offset=2), offset=10) == []
