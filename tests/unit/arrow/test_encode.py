"""Arrow columns as record batches."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from ottla.arrow.encode import Encoder, encode, partition_keys, rows_by_partition, stamp
from ottla.client.partitioner import partition_of_key
from ottla.protocol import _rows_py
from ottla.protocol import columns as column_kernel
from ottla.protocol.batch import Record, crc_ok, read_header, read_records
from ottla.protocol.errors import InvalidRecord

NOW = 1_700_000_000_123
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def twins() -> list[ModuleType]:
    return [_rows_py, column_kernel] if column_kernel.compiled else [_rows_py]


@pytest.fixture(autouse=True, params=twins(), ids=lambda module: module.__name__.rpartition(".")[2])
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("Rows", "partition_keys", "rows_by_partition"):
        monkeypatch.setattr(column_kernel, name, getattr(request.param, name))


def records_of(batch: pa.RecordBatch, rows: Any = None, **options: Any) -> list[Record]:
    found: list[Record] = []
    for count, encoded in encode(batch, rows, now_ms=NOW, **options):
        assert crc_ok(encoded)
        assert read_header(encoded).record_count == count
        found += read_records(encoded)
    return found


def test_rows_become_records() -> None:
    batch = pa.record_batch(
        {
            "key": pa.array([b"k", None, b""]),
            "value": pa.array([None, b"v", b"w" * 300]),
            "headers": pa.array([[("a", b"1"), ("ü", None)], None, []], HEADERS),
            "ignored": pa.array([1, 2, 3]),
        }
    )
    assert records_of(batch) == [
        Record(0, NOW, b"k", None, [("a", b"1"), ("ü", None)]),
        Record(1, NOW, None, b"v"),
        Record(2, NOW, b"", b"w" * 300),
    ]


def test_a_column_that_is_not_there_is_null() -> None:
    assert records_of(pa.record_batch({"value": pa.array([b"v"])})) == [Record(0, NOW, None, b"v")]
    batch = pa.record_batch({"key": pa.nulls(1), "value": pa.array(["v"]), "headers": pa.nulls(1)})
    assert records_of(batch) == [Record(0, NOW, None, b"v")]


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.large_binary(),
        pa.string(),
        pa.large_string(),
        pa.binary_view(),
        pa.string_view(),
        pa.binary(2),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
def test_bytes_and_text_of_any_kind_are_taken(kind: pa.DataType) -> None:
    values = [b"ab", None, b"cd", b"ef", None, b"gh"]
    column = pa.array([value and value.decode() for value in values], pa.string())
    column = (
        column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(pa.binary()).cast(kind)
    )
    for part in (slice(None), slice(1, 5), slice(3, 3)):
        cut = column[part]
        assert [r.value for r in records_of(pa.record_batch({"value": cut, "key": cut}))] == values[part]
        expected = [5 if value is None else partition_of_key(value, 7) for value in values[part]]
        assert partition_keys(cut, 7, keyless=5).to_pylist() == expected


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())])),
        pa.large_list(pa.struct([("key", pa.string()), ("value", pa.string())])),
        pa.list_(pa.field("item", pa.struct([("key", pa.string()), ("value", pa.binary())]), nullable=False)),
    ],
    ids=str,
)
def test_headers_of_any_kind_are_taken(kind: pa.DataType) -> None:
    headers = [[("a", b"1")], None, [("b", None), ("c", b"")], []]
    column = pa.array(headers, HEADERS).cast(kind)
    for part in (slice(None), slice(1, 4), slice(2, 3)):
        batch = pa.record_batch({"headers": column[part]})
        assert [r.headers for r in records_of(batch)] == [each or [] for each in headers[part]]


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("s"), pa.int64()]
)
def test_timestamps_come_from_their_column(kind: pa.DataType) -> None:
    seconds = [NOW // 1000 * 1000, None, -5000]
    if pa.types.is_timestamp(kind):
        column = pa.array(seconds, pa.timestamp("ms", kind.tz)).cast(kind)
    else:
        column = pa.array(seconds, kind)
    batch = pa.record_batch({"value": pa.array(["a", "b", "c"]), "timestamp": column})
    assert [r.timestamp for r in records_of(batch)] == [NOW // 1000 * 1000, NOW, -5000]
    [(_, encoded)] = encode(batch, now_ms=NOW)
    assert read_header(encoded).max_timestamp == NOW


def test_what_is_finer_than_a_millisecond_is_cut_off() -> None:
    moments = [datetime(2023, 1, 1, 0, 0, 0, 1999, UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)]
    batch = pa.record_batch({"timestamp": pa.array(moments, pa.timestamp("us", "UTC"))})
    assert [r.timestamp for r in records_of(batch)] == [1672531200001, -1]


@pytest.mark.parametrize("codec", range(5))
def test_batches_are_cut_at_their_greatest_size(codec: int) -> None:
    batch = pa.record_batch({"value": pa.array([b"%d" % n + bytes(100) for n in range(50)])})
    found = Encoder(batch, now_ms=NOW).encode(codec=codec, max_bytes=1000)
    assert [count for count, _ in found] == [8] * 6 + [2]
    assert all(read_header(each).codec == codec for _, each in found)
    if codec == 0:
        assert all(900 < len(each) <= 1000 for _, each in found[:-1])
    assert [r.value for _, each in found for r in read_records(each)] == batch["value"].to_pylist()
    # What is larger has a batch of its own.
    assert [count for count, _ in Encoder(batch, now_ms=NOW).encode(codec=codec, max_bytes=50)] == [1] * 50


def test_rows_are_taken_in_the_order_of_their_numbers() -> None:
    batch = pa.record_batch({"value": pa.array([b"a", b"b", b"c", b"d"])})
    for rows in (pa.array([3, 0, 3]), array("q", [3, 0, 3]), pa.array([9, 3, 0, 3], pa.int32())[1:]):
        assert [r.value for r in records_of(batch, rows)] == [b"d", b"a", b"d"]
    assert records_of(batch, pa.array([], pa.int64())) == []
    for rows in (pa.array([0, 4]), pa.array([-1])):
        with pytest.raises(IndexError):
            records_of(batch, rows)


def test_rows_are_grouped_by_partition() -> None:
    groups = rows_by_partition(pa.array([2, 0, 2, 2, 0], pa.int32()), 4)
    assert {partition: rows.to_pylist() for partition, rows in groups.items()} == {0: [1, 4], 2: [0, 2, 3]}
    cut = rows_by_partition(pa.array([9, 1, 0], pa.int32())[1:], 2)
    assert {partition: rows.to_pylist() for partition, rows in cut.items()} == {0: [1], 1: [0]}
    assert rows_by_partition(pa.array([], pa.int32()), 3) == {}
    for partitions in ([0, 3], [-1]):
        with pytest.raises(IndexError, match="is for partition"):
            rows_by_partition(pa.array(partitions, pa.int32()), 3)
    with pytest.raises(InvalidRecord, match="a row has no partition"):
        rows_by_partition(pa.array([0, None], pa.int32()), 3)


def test_a_stamped_batch_is_its_producers() -> None:
    [(_, batch)] = encode(pa.record_batch({"value": pa.array([b"v"])}), now_ms=NOW, codec=3)
    before = read_records(batch)
    assert read_header(batch).producer_id == -1
    stamp(batch, 5, 2, 70, transactional=True)
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, 70)
    assert (header.is_transactional, header.codec) == (True, 3)
    assert crc_ok(batch) and read_records(batch) == before
    stamp(batch, 6, 0, 0)
    assert (read_header(batch).producer_id, read_header(batch).is_transactional) == (6, False)


def test_what_cannot_be_a_record_is_refused() -> None:
    for batch, words in (
        ({"value": pa.array([1])}, "the column value is int64; it has to be binary or a string"),
        ({"key": pa.array([[b"a"]])}, "the column key is list"),
        ({"timestamp": pa.array(["now"])}, "the column timestamp is string"),
        ({"headers": pa.array(["h"])}, "the column headers is string"),
        ({"headers": pa.array([[(None, b"v")]], HEADERS)}, "a header of row 0 has no key"),
        ({"headers": pa.array([[], [None]], HEADERS)}, "a header of row 1 has no key"),
    ):
        with pytest.raises(InvalidRecord, match=words):
            records_of(pa.record_batch(batch))


def test_a_key_goes_where_kafkas_own_producer_sends_it() -> None:
    # From the tests of Kafka's murmur2, the numbers as Java has them.
    hashes = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    found = partition_keys(pa.array(list(hashes)), 2**31 - 1).to_pylist()
    assert found == [(number & 0x7FFF_FFFF) % (2**31 - 1) for number in hashes.values()]
