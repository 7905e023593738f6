"""Records as columns under any input: both twins agree, find every record, and noise is never a crash."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.arrow.decode import Decoder
from ottla.arrow.readers import Reader, aiokafka_reader, compiled_reader, python_reader
from ottla.protocol import _columns_py, _rows_py
from ottla.protocol.batch import (
    HEADER_SIZE,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Record,
    iter_batches,
    read_header,
    read_records,
    write_batch,
    write_crc,
)
from ottla.protocol.errors import CorruptMessage
from ottla.protocol.message_set import read_message_set, write_message_set

int64s = st.integers(-(2**63), 2**63 - 1)
timestamps = st.one_of(st.integers(0, 2**42), int64s, st.just(-1))
blobs = st.one_of(st.none(), st.binary(max_size=200))
headers = st.lists(st.tuples(st.text(max_size=8), blobs), max_size=3)
records = st.builds(Record, st.just(0), timestamps, blobs, blobs, headers)
record_lists = st.lists(records, max_size=12)
offsets = st.one_of(st.integers(0, 40), st.just(2**63 - 1))
uncompressed = st.just(0)
any_codec = st.integers(0, 4)
wanted_columns = st.integers(0, 63)
allocate = partial(pa.allocate_buffer, resizable=True)


@st.composite
def logs(draw: st.DrawFn, codecs: st.SearchStrategy[int] = uncompressed) -> bytes:
    """Batches as they follow one another in a log, with the gaps and the empty batches of compaction."""
    out = bytearray()
    offset = draw(st.integers(0, 10))
    for some in draw(st.lists(record_lists, max_size=4)):
        kept = []
        last = offset - 1
        for record in some:
            last += draw(st.integers(1, 3))
            kept.append(Record(last, record.timestamp, record.key, record.value, record.headers))
        last += draw(st.integers(0, 2))
        out += write_batch(
            kept,
            base_offset=offset,
            codec=draw(codecs),
            keep_offsets=True,
            last_offset_delta=max(last - offset, 0),
            log_append_time_ms=draw(st.one_of(st.none(), timestamps)),
        )
        offset = max(last, offset) + 1
    return bytes(out)


@st.composite
def mutated(draw: st.DrawFn, sources: st.SearchStrategy[bytes]) -> bytes:
    """Bytes with a few of them changed, removed or doubled, the CRC of the first batch made right or not."""
    data = bytearray(draw(sources))
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            break
        position = draw(st.integers(0, len(data) - 1))
        match draw(st.integers(0, 3)):
            case 0:
                data[position] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
            case 1:
                data[position] ^= 1 << draw(st.integers(0, 7))
            case 2:
                del data[position : position + draw(st.integers(1, 5))]
            case 3:
                data[position:position] = data[position : position + draw(st.integers(1, 5))]
    if draw(st.booleans()):
        with suppress(CorruptMessage):
            if read_header(data).size <= len(data):
                write_crc(data)
    return bytes(data)


@pytest.fixture(scope="module")
def compiled() -> ModuleType:
    return pytest.importorskip("ottla.protocol._columns", reason="the kernel is not compiled")  # type: ignore[no-any-return]


def plain(value: Any) -> Any:
    """Tuples of buffers as tuples of bytes, so that they can be compared."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value if value is None or isinstance(value, int) else bytes(memoryview(value))


def walk_and_add(module: Any, data: bytes, wanted: int, first: int, end: int, special: int) -> Any:
    """All that a twin has to say about some bytes."""
    columns = module.Columns(wanted, allocate)
    walked = module.walk(data, 0, first, end, special, True)
    added = columns.add(data, 0, walked[1], first, end)
    # The content after a fault is of no use, so that it is not compared.
    return walked, added, None if added[0] else plain(columns.take())


@settings(deadline=None, max_examples=400)
@given(
    data=st.one_of(logs(), mutated(logs()), st.binary(max_size=200)),
    wanted=wanted_columns,
    first=offsets,
    end=offsets,
)
def test_both_twins_make_equal_columns_of_any_bytes(
    compiled: ModuleType, data: bytes, wanted: int, first: int, end: int
) -> None:
    expected = walk_and_add(_columns_py, data, wanted, first, end, 7)
    assert walk_and_add(compiled, data, wanted, first, end, 7) == expected
    for verify, most in ((False, 2**31 - 1), (True, 100), (True, 1)):
        arguments = (data, 0, first, end, LOG_APPEND_TIME | 7, verify, most)
        assert compiled.walk(*arguments) == _columns_py.walk(*arguments)


@settings(deadline=None, max_examples=400)
@given(
    section=st.one_of(
        st.binary(max_size=100),
        mutated(record_lists.map(lambda some: bytes(write_batch(some)[HEADER_SIZE:]))),
        record_lists.map(lambda some: bytes(write_batch(some)[HEADER_SIZE:])),
    ),
    count=st.integers(-1, 15),
    base_offset=st.one_of(st.integers(0, 20), int64s),
    base_timestamp=int64s,
    timestamp_type=st.integers(-1, 1),
    wanted=wanted_columns,
    bounds=st.tuples(int64s, int64s),
)
def test_both_twins_make_equal_columns_of_any_section(
    compiled: ModuleType,
    section: bytes,
    count: int,
    base_offset: int,
    base_timestamp: int,
    timestamp_type: int,
    wanted: int,
    bounds: tuple[int, int],
) -> None:
    results = []
    for module in (compiled, _columns_py):
        columns = module.Columns(wanted, allocate)
        arguments = (section, count, base_offset, base_timestamp, timestamp_type, *bounds)
        # Twice, so that columns grow that are in use.
        found = columns.add_section(*arguments), columns.add_section(*arguments)
        results.append((found, None if found[0][0] else plain(columns.take())))
    assert results[0] == results[1]


def rows_of(record: Record, timestamp_type: int) -> dict[str, object]:
    return {
        "key": record.key,
        "value": record.value,
        "offset": record.offset,
        "timestamp": _columns_py.microseconds(record.timestamp),
        "timestampType": timestamp_type,
        "headers": [{"key": key, "value": value} for key, value in record.headers],
    }


def decoded_rows(batch: pa.RecordBatch) -> list[dict[str, object]]:
    batch.validate(full=True)
    found = batch.set_column(3, "timestamp", batch["timestamp"].cast(pa.int64()))
    return found.to_pylist()  # type: ignore[no-any-return]


COLUMNS = ["key", "value", "offset", "timestamp", "timestampType", "headers"]


READERS = [reader for reader in (compiled_reader(), aiokafka_reader(), python_reader()) if reader is not None]
every_reader = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)


@every_reader
@settings(deadline=None, max_examples=100)
@given(data=logs(any_codec), first=offsets, end=offsets, cut=st.integers(0, 300))
def test_a_decoder_finds_what_reading_every_record_finds(
    reader: Reader, data: bytes, first: int, end: int, cut: int
) -> None:
    data = data[: max(len(data) - cut, 0)]
    expected = []
    next_offset = first
    for header, batch in iter_batches(data):
        expected += [
            rows_of(record, int(header.is_log_append_time))
            for record in read_records(batch)
            if first <= record.offset < end
        ]
        next_offset = max(next_offset, header.last_offset + 1)
    decoder = Decoder("t", 0, columns=COLUMNS, reader=reader)
    assert decoded_rows(decoder.decode(data, start=first, end=end)) == expected
    assert decoder.next_offset == next_offset
    pieces = list(decoder.batches(data, start=first, end=end, batch_bytes=200))
    assert [row for piece in pieces for row in decoded_rows(piece)] == expected


@settings(deadline=None, max_examples=300)
@given(
    data=st.one_of(mutated(logs(any_codec)), st.binary(max_size=200)),
    read_committed=st.booleans(),
    aborted=st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 30)), max_size=3),
    first=offsets,
)
def test_damage_is_refused_or_read_but_never_a_crash(
    compiled: ModuleType, data: bytes, read_committed: bool, aborted: list[tuple[int, int]], first: int
) -> None:
    results: list[object] = []
    for reader in (compiled_reader(), python_reader()):
        assert reader is not None
        decoder = Decoder("t", 0, columns=COLUMNS, read_committed=read_committed, reader=reader)
        try:
            results.append(decoded_rows(decoder.decode(data, start=first, aborted=aborted)))
        except CorruptMessage as error:
            results.append(str(error))
        results.append(decoder.next_offset)
    assert results[:2] == results[2:]


@settings(deadline=None, max_examples=100)
@given(records=record_lists, magic=st.integers(0, 1), codec=st.integers(0, 3), first=offsets)
def test_old_formats_are_read_too(records: list[Record], magic: int, codec: int, first: int) -> None:
    for offset, record in enumerate(records):
        record.offset = 5 + offset
    data = bytes(write_message_set(records, magic, codec)) if records else b""
    expected = [rows_of(r, magic - 1) for r in read_message_set(data) if r.offset >= first]
    newer = write_batch([Record(value=b"new")], base_offset=5 + len(records), attributes=TRANSACTIONAL)
    decoder = Decoder("t", 0, columns=COLUMNS)
    found = decoded_rows(decoder.decode(data + newer, start=first))
    assert found[: len(expected)] == expected
    assert decoder.next_offset == max(first, 6 + len(records))


binary_columns = st.lists(blobs, max_size=20)


@settings(deadline=None, max_examples=200)
@given(keys=binary_columns, count=st.integers(1, 50), skip=st.integers(0, 3), large=st.booleans())
def test_both_twins_send_a_key_to_the_same_partition(
    compiled: ModuleType, keys: list[bytes | None], count: int, skip: int, large: bool
) -> None:
    column = pa.array(keys, pa.large_binary() if large else pa.binary())[skip:]
    validity, offsets, data = column.buffers()
    source = _rows_py.BinarySource(len(column), column.offset, validity, offsets, data or b"", large)
    expected = bytes(_rows_py.partition_keys(source, count, count - 1))
    assert bytes(compiled.partition_keys(source, count, count - 1)) == expected
    groups = plain(_rows_py.rows_by_partition(expected, count))
    assert plain(compiled.rows_by_partition(expected, count)) == groups
