"""Columns as records under any input: both twins write the same bytes, and they read back as what went in."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.arrow.decode import Decoder
from ottla.arrow.encode import encode, stamp
from ottla.protocol import _rows_py
from ottla.protocol import columns as column_kernel
from ottla.protocol.batch import read_header, set_base_offset

int64s = st.integers(-(2**63), 2**63 - 1)
blobs = st.one_of(st.none(), st.binary(max_size=300))
headers = st.one_of(st.none(), st.lists(st.tuples(st.text(max_size=8), blobs), max_size=3))
rows = st.tuples(blobs, blobs, st.one_of(st.none(), st.integers(-1, 2**42)), headers)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def compiled() -> ModuleType:
    return pytest.importorskip("ottla.protocol._columns", reason="the kernel is not compiled")  # type: ignore[no-any-return]


@settings(deadline=None, max_examples=150)
@given(
    table=st.lists(rows, max_size=20),
    part=st.tuples(st.integers(0, 5), st.integers(0, 20)),
    large=st.booleans(),
    codec=st.integers(0, 4),
    max_bytes=st.integers(0, 2000),
    chosen=st.one_of(st.none(), st.lists(st.integers(0, 19), max_size=10)),
)
def test_rows_read_back_and_both_twins_write_them_alike(
    compiled: ModuleType,
    table: list[tuple[Any, ...]],
    part: tuple[int, int],
    large: bool,
    codec: int,
    max_bytes: int,
    chosen: list[int] | None,
) -> None:
    kind = pa.large_binary() if large else pa.binary()
    columns = [[row[number] for row in table] for number in range(4)]
    batch = pa.record_batch(
        {
            "key": pa.array(columns[0], kind),
            "value": pa.array(columns[1], kind),
            "timestamp": pa.array(columns[2], pa.int64()),
            "headers": pa.array(columns[3], HEADERS),
        }
    ).slice(*part)
    expected = table[part[0] : part[0] + part[1]]
    numbers = None
    if chosen is not None:
        kept = [number for number in chosen if number < len(expected)]
        numbers, expected = pa.array(kept, pa.int64()), [expected[number] for number in kept]
    results = []
    for module in (_rows_py, compiled):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(column_kernel, "Rows", module.Rows)
            results.append(encode(batch, numbers, now_ms=7, codec=codec, max_bytes=max_bytes))
    assert results[0] == results[1]
    log = bytearray()
    offset = 0
    for count, encoded in results[1]:
        assert count == 1 or len(encoded) <= max(max_bytes, 61) or codec
        stamp(encoded, 1, 0, offset)
        set_base_offset(encoded, offset)
        offset += read_header(encoded).last_offset_delta + 1
        log += encoded
    found = Decoder("t", 0, headers=True).decode(log, start=0)
    assert found["offset"].to_pylist() == list(range(len(expected)))
    assert found["key"].to_pylist() == [row[0] for row in expected]
    assert found["value"].to_pylist() == [row[1] for row in expected]
    milliseconds = [7 if row[2] is None else row[2] for row in expected]
    assert found["timestamp"].cast(pa.int64()).to_pylist() == [1000 * number for number in milliseconds]
    pairs = [[(pair["key"], pair["value"]) for pair in each] for each in found["headers"].to_pylist()]
    assert pairs == [row[3] or [] for row in expected]


small_int32s = st.lists(st.one_of(st.integers(-2, 20), st.just(2**31 - 1)), max_size=8)


@settings(deadline=None, max_examples=300)
@given(
    count=st.integers(-1, 8),
    first=st.integers(-1, 3),
    validity=st.one_of(st.none(), st.binary(max_size=2)),
    offsets=small_int32s,
    lists=small_int32s,
    data=st.binary(max_size=20),
    large=st.booleans(),
    wanted=st.lists(st.one_of(st.integers(-1, 9), int64s), max_size=4),
    timestamp=int64s,
)
def test_columns_that_lie_are_refused_by_both_twins(
    compiled: ModuleType,
    count: int,
    first: int,
    validity: bytes | None,
    offsets: list[int],
    lists: list[int],
    data: bytes,
    large: bool,
    wanted: list[int],
    timestamp: int,
) -> None:
    width = 8 if large else 4
    packed = b"".join(number.to_bytes(width, "little", signed=True) for number in offsets)
    starts = b"".join(number.to_bytes(4, "little", signed=True) for number in lists)
    numbers = b"".join(number.to_bytes(8, "little", signed=True) for number in wanted)
    source = _rows_py.BinarySource(count, first, validity, packed, data, large)
    pairs = _rows_py.HeaderSource(count, first, validity, starts, source, source)
    results = []
    for module in (_rows_py, compiled):
        found: list[object] = []
        for rows in (numbers, None):
            try:
                made = module.Rows(count, source, source, None, pairs)
                found.append(made.write(rows, 0, 1000, timestamp))
            except (IndexError, _rows_py.HeaderWithoutKey) as error:
                found.append(type(error))
        try:
            found.append(bytes(module.partition_keys(source, 5, 9)))
        except IndexError:
            found.append(None)
        try:
            found.append([bytes(each) for each in module.rows_by_partition(starts, 5)])
        except IndexError:
            found.append(None)
        results.append(found)
    assert results[0] == results[1]
