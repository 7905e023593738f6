"""Fetched batches as Arrow columns: what is kept, what is left out, what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from ottla.arrow.decode import Decoder
from ottla.arrow.readers import Reader, aiokafka_reader, compiled_reader, python_reader
from ottla.protocol.batch import TRANSACTIONAL, Record, write_batch, write_crc
from ottla.protocol.control import EndTransactionMarker, end_transaction_batch
from ottla.protocol.errors import CorruptMessage, MessageTooLarge

NOW = 1_700_000_000_123
READERS = [reader for reader in (compiled_reader(), aiokafka_reader(), python_reader()) if reader is not None]


@pytest.fixture(params=READERS, ids=lambda reader: reader.name)
def reader(request: pytest.FixtureRequest) -> Reader:
    return request.param  # type: ignore[no-any-return]


def batch(base_offset: int, *values: bytes, codec: int = 0, producer: int = -1) -> bytearray:
    return write_batch(
        [Record(timestamp=NOW, key=b"k", value=value) for value in values],
        base_offset=base_offset,
        codec=codec,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        attributes=TRANSACTIONAL if producer >= 0 else 0,
    )


def marker(base_offset: int, producer: int, *, commit: bool) -> bytearray:
    ends = EndTransactionMarker(producer, 0, 0, commit)
    return end_transaction_batch(ends, timestamp=NOW, base_offset=base_offset)


def offsets(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [offset for each in batches for offset in each["offset"].to_pylist()]


def test_every_column_is_filled(reader: Reader) -> None:
    records = [
        Record(timestamp=NOW, key=b"k", value=b"v", headers=[("h", b"1"), ("é", None)]),
        Record(timestamp=-1, value=b""),
        Record(timestamp=NOW + 1, key=b""),
    ]
    data = write_batch(records, base_offset=7) + write_batch(
        records[:1], base_offset=10, log_append_time_ms=5
    )
    found = Decoder("orders", 3, headers=True, reader=reader).decode(data, start=0)
    found.validate(full=True)
    assert found.to_pydict() == {
        "key": [b"k", None, b"", b"k"],
        "value": [b"v", b"", None, b"v"],
        "topic": ["orders"] * 4,
        "partition": [3] * 4,
        "offset": [7, 8, 9, 10],
        "timestamp": [
            datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
            # As Spark's connector has it, which knows no record without a time.
            datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
            datetime(2023, 11, 14, 22, 13, 20, 124000, UTC),
            datetime(1970, 1, 1, 0, 0, 0, 5000, UTC),
        ],
        "timestampType": [0, 0, 0, 1],
        "headers": [
            [{"key": "h", "value": b"1"}, {"key": "é", "value": None}],
            [],
            [],
            [{"key": "h", "value": b"1"}, {"key": "é", "value": None}],
        ],
    }


def test_only_the_columns_that_were_asked_for_are_filled(reader: Reader) -> None:
    found = Decoder("t", 0, columns=["value", "partition"], reader=reader).decode(
        batch(0, b"a", b"b"), start=0
    )
    assert found.to_pydict() == {"value": [b"a", b"b"], "partition": [0, 0]}
    nothing = Decoder("t", 0, columns=[], reader=reader).decode(batch(0, b"a", b"b"), start=0)
    assert (nothing.num_columns, nothing.num_rows) == (0, 2)


def test_a_header_key_that_is_not_text_is_read_as_java_reads_it(reader: Reader) -> None:
    data = write_batch([Record(headers=[("a\udcff\udcfeb", b"v")])])
    found = Decoder("t", 0, columns=["headers"], reader=reader).decode(data, start=0)
    found.validate(full=True)
    assert found.to_pydict() == {"headers": [[{"key": "a\ufffd\ufffdb", "value": b"v"}]]}


@pytest.mark.parametrize("codec", range(5))
def test_offsets_outside_the_range_are_left_out(reader: Reader, codec: int) -> None:
    data = b"".join(batch(base, b"1", b"2", b"3", codec=codec) for base in range(0, 12, 3))
    decoder = Decoder("t", 0, reader=reader)
    assert offsets([decoder.decode(data, start=4, end=8)]) == [4, 5, 6, 7]
    assert decoder.next_offset == 12
    assert offsets([decoder.decode(data, start=11)]) == [11]
    assert offsets([decoder.decode(data, start=50)]) == []
    assert decoder.next_offset == 50


def test_a_batch_that_is_cut_off_is_left_for_the_next_time(reader: Reader) -> None:
    data = batch(0, b"a") + batch(1, b"b") + batch(2, b"c", codec=1)
    decoder = Decoder("t", 0, reader=reader)
    size = len(batch(0, b"a"))
    for end in range(len(data)):
        assert len(decoder.decode(data[:end], start=0)) == min(end // size, 2)
        assert decoder.next_offset == min(end // size, 2)


def test_what_compaction_leaves_is_read(reader: Reader) -> None:
    gaps = [Record(offset, NOW, b"k", b"v") for offset in (2, 5, 6)]
    data = write_batch(gaps, base_offset=0, keep_offsets=True, last_offset_delta=9)
    data += write_batch([], base_offset=10, last_offset_delta=4)
    decoder = Decoder("t", 0, reader=reader)
    assert offsets([decoder.decode(data, start=0)]) == [2, 5, 6]
    assert decoder.next_offset == 15


def test_aborted_transactions_are_left_out_until_their_marker(reader: Reader) -> None:
    data = b"".join(
        [
            batch(0, b"plain"),
            batch(1, b"aborted", producer=1),
            batch(2, b"committed", producer=2, codec=3),
            batch(3, b"aborted", producer=1, codec=4),
            marker(4, 1, commit=False),
            batch(5, b"committed", producer=1),
            marker(6, 2, commit=True),
            marker(7, 1, commit=True),
            batch(8, b"aborted", producer=2),
            batch(9, b"plain"),
            marker(10, 2, commit=False),
        ]
    )
    aborted = [(2, 8), (1, 1)]
    decoder = Decoder("t", 0, read_committed=True, reader=reader)
    assert offsets([decoder.decode(data, start=0, aborted=aborted)]) == [0, 2, 5, 9]
    assert decoder.next_offset == 11
    # From the middle the broker lists what has not ended before.
    assert offsets([decoder.decode(data, start=3, aborted=aborted)]) == [5, 9]
    assert offsets([Decoder("t", 0, reader=reader).decode(data, start=0)]) == [0, 1, 2, 3, 5, 8, 9]


def test_a_response_that_is_decoded_in_pieces_loses_nothing(reader: Reader) -> None:
    pieces = [
        batch(0, b"aborted", producer=1) + marker(1, 1, commit=False),
        batch(2, b"committed", producer=1) + marker(3, 1, commit=True),
        batch(4, b"aborted", producer=1),
        batch(5, b"aborted", producer=1) + marker(6, 1, commit=False) + batch(7, b"plain"),
    ]
    aborted = [(1, 0), (1, 4)]
    decoder = Decoder("t", 0, read_committed=True, reader=reader)
    found = []
    for piece in pieces:
        found += offsets([decoder.decode(piece, start=decoder.next_offset, aborted=aborted)])
    assert found == [2, 7]
    # The same decoder may begin again.
    assert offsets([decoder.decode(b"".join(pieces), start=0, aborted=aborted)]) == [2, 7]


def test_a_marker_that_compaction_has_emptied_ends_nothing(reader: Reader) -> None:
    empty = bytearray(write_batch([], base_offset=1, last_offset_delta=0, producer_id=1, attributes=0x30))
    data = batch(0, b"aborted", producer=1) + empty + batch(2, b"aborted", producer=1)
    decoder = Decoder("t", 0, read_committed=True, reader=reader)
    assert offsets([decoder.decode(data, start=0, aborted=[(1, 0)])]) == []


def test_a_producer_that_is_not_transactional_is_never_aborted(reader: Reader) -> None:
    idempotent = write_batch([Record(value=b"v")], producer_id=1, producer_epoch=0, base_sequence=0)
    decoder = Decoder("t", 0, read_committed=True, reader=reader)
    assert offsets([decoder.decode(idempotent, start=0, aborted=[(1, 0)])]) == [0]


@pytest.mark.parametrize("codec", [0, 3])
def test_a_wrong_crc_is_refused_where_it_is_read(reader: Reader, codec: int) -> None:
    data = batch(0, b"a", codec=codec) + batch(1, b"value", codec=codec)
    data[-10] ^= 1
    with pytest.raises(CorruptMessage, match="orders-2, the batch at offset 1: the CRC does not fit"):
        Decoder("orders", 2, reader=reader).decode(data, start=0)
    assert offsets([Decoder("orders", 2, reader=reader).decode(data, start=0, end=1)]) == [0]


def test_the_crc_is_not_looked_at_where_that_is_asked_for(reader: Reader) -> None:
    data = batch(0, b"value")
    data[-2] = ord("X")
    found = Decoder("t", 0, verify_crc=False, reader=reader).decode(data, start=0)
    assert found["value"].to_pylist() == [b"valuX"]


def test_damage_is_named(reader: Reader) -> None:
    decoder = Decoder("t", 0, reader=reader)
    data = batch(5, b"a" * 20, b"b")
    data[60] = 3  # the record count
    write_crc(data)
    with pytest.raises(
        CorruptMessage, match="t-0, the batch at offset 5: record 2: a varint in it is cut off"
    ):
        decoder.decode(data, start=0)
    data = batch(5, b"a", b"b", codec=4)
    data[61:] = bytes(len(data) - 61)
    write_crc(data)
    with pytest.raises(CorruptMessage, match="offset 5: records cannot be decompressed as zstd"):
        decoder.decode(data, start=0)
    data = batch(5, b"a")
    data[16] = 3
    with pytest.raises(CorruptMessage, match="offset 5: there is no batch"):
        decoder.decode(data, start=0)
    # A failure leaves nothing behind.
    assert offsets([decoder.decode(batch(0, b"a"), start=0)]) == [0]


def test_much_comes_in_several_batches(reader: Reader) -> None:
    for codec in (0, 4):
        data = b"".join(batch(base, bytes(1000), bytes(1000), codec=codec) for base in range(0, 20, 2))
        decoder = Decoder("t", 0, reader=reader)
        found = list(decoder.batches(data, start=1, batch_bytes=5000))
        assert offsets(found) == list(range(1, 20))
        assert [len(each) for each in found] == [3, 4, 4, 4, 4]
        assert [len(each) for each in decoder.batches(b"", start=3)] == [0]


def test_more_than_an_arrow_batch_holds_is_refused_as_one(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.arrow.decode.MOST_BYTES", 3000)
    data = b"".join(batch(base, bytes(2000), codec=4) for base in range(3))
    with pytest.raises(MessageTooLarge, match="t-0: the records from offset 0 on decompress to more"):
        Decoder("t", 0, reader=reader).decode(data, start=0)


def test_timestamps_beyond_what_arrow_counts_are_the_nearest(reader: Reader) -> None:
    data = write_batch([Record(timestamp=2**63 - 1), Record(timestamp=-(2**63))])
    found = Decoder("t", 0, columns=["timestamp"], reader=reader).decode(data, start=0)
    assert found["timestamp"].cast(pa.int64()).to_pylist() == [9223372036854775000, -9223372036854775000]
