"""Records under any input: what is written reads back, both kernels agree, and noise is never a crash."""

from __future__ import annotations

from contextlib import suppress
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol import _kernel_py
from ottla.protocol.batch import (
    HEADER_SIZE,
    Record,
    crc_ok,
    first_at_or_after,
    iter_batches,
    read_header,
    read_records,
    recompress,
    write_batch,
    write_crc,
)
from ottla.protocol.compression import compress, decompress
from ottla.protocol.control import read_control_records, read_end_transaction
from ottla.protocol.errors import CorruptMessage, InvalidRecord, MessageTooLarge, UnsupportedCompressionType
from ottla.protocol.message_set import down_convert, read_message_set, up_convert, write_message_set
from tests.compiled import kernel

REFUSED = (CorruptMessage, InvalidRecord, MessageTooLarge, UnsupportedCompressionType)
LIMIT = 1 << 20

int64s = st.integers(-(2**63), 2**63 - 1)
timestamps = st.one_of(st.integers(0, 2**42), int64s, st.just(-1))
blobs = st.one_of(st.none(), st.binary(max_size=300))
headers = st.lists(st.tuples(st.text(max_size=8), blobs), max_size=3)
records = st.builds(Record, st.just(0), timestamps, blobs, blobs, headers)
record_lists = st.lists(records, max_size=12)
codecs = st.integers(0, 4)


@st.composite
def mutated(draw: st.DrawFn, sources: st.SearchStrategy[bytes]) -> bytes:
    """Bytes with a few of them changed, removed or doubled."""
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
    return bytes(data)


sections = record_lists.map(lambda some: bytes(write_batch(some)[HEADER_SIZE:]))
any_sections = st.one_of(sections, mutated(sections), st.binary(max_size=200))


@pytest.fixture(scope="module")
def compiled() -> ModuleType:
    return kernel()


@settings(deadline=None, max_examples=400)
@given(
    section=any_sections,
    count=st.integers(-1, 15),
    base_timestamp=int64s,
    target=timestamps,
    first=st.integers(-2, 8),
    around=st.tuples(st.binary(max_size=12), st.binary(max_size=12)),
)
def test_both_kernels_give_equal_results_for_any_bytes(
    compiled: ModuleType,
    section: bytes,
    count: int,
    base_timestamp: int,
    target: int,
    first: int,
    around: tuple[bytes, bytes],
) -> None:
    scanned = compiled.scan(section, count, base_timestamp)
    assert scanned == _kernel_py.scan(section, count, base_timestamp)
    columns = compiled.columns(section, count)
    assert columns == _kernel_py.columns(section, count)
    search = compiled.first_at_or_after(section, count, base_timestamp, target, first)
    assert search == _kernel_py.first_at_or_after(section, count, base_timestamp, target, first)
    # A scan and the columns find the same sections good.
    assert (scanned[1] == 0) == (columns[0] == 0)
    # Nothing outside the range plays a part.
    before, after = around
    buffer = memoryview(bytearray(before + section + after))
    start, end = len(before), len(before) + len(section)
    assert compiled.scan(buffer, count, base_timestamp, start, end) == scanned
    assert compiled.first_at_or_after(buffer, count, base_timestamp, target, first, start, end) == search
    inside = compiled.columns(buffer, count, start, end)
    assert inside == _kernel_py.columns(buffer, count, start, end)
    assert inside[:2] == columns[:2]


@settings(deadline=None, max_examples=200)
@given(
    data=st.one_of(
        st.builds(lambda some, codec: bytes(write_batch(some, codec=codec)), record_lists, codecs),
        mutated(record_lists.map(lambda some: bytes(write_batch(some)))),
        st.binary(max_size=150),
    ),
    start=st.integers(0, 3),
)
def test_both_kernels_see_the_same_batch(compiled: ModuleType, data: bytes, start: int) -> None:
    buffer = bytes(start) + data
    assert compiled.check_batch(buffer, start) == _kernel_py.check_batch(buffer, start)


@settings(deadline=None)
@given(records=record_lists, codec=codecs, base_offset=st.integers(0, 2**62))
def test_what_is_written_reads_back(records: list[Record], codec: int, base_offset: int) -> None:
    batch = write_batch(records, codec=codec, base_offset=base_offset)
    assert crc_ok(batch)
    found = read_records(batch)
    assert [(r.timestamp, r.key, r.value, r.headers) for r in found] == [
        (r.timestamp, r.key, r.value, r.headers) for r in records
    ]
    assert [r.offset for r in found] == list(range(base_offset, base_offset + len(records)))
    assert read_records(recompress(batch, (codec + 1) % 5)) == found
    assert write_batch(found, codec=codec, base_offset=base_offset, keep_offsets=True) == batch


@settings(deadline=None)
@given(
    records=st.lists(records, min_size=1, max_size=12),
    codec=codecs,
    target=timestamps,
    first=st.integers(0, 12),
)
def test_a_search_by_time_finds_what_looking_at_every_record_finds(
    records: list[Record], codec: int, target: int, first: int
) -> None:
    batch = write_batch(records, codec=codec)
    expected = next(
        ((i, r.timestamp) for i, r in enumerate(records) if i >= first and r.timestamp >= target), None
    )
    assert first_at_or_after(batch, target, first) == expected


@settings(deadline=None, max_examples=300)
@given(
    data=st.one_of(
        mutated(st.builds(lambda some, codec: bytes(write_batch(some, codec=codec)), record_lists, codecs)),
        st.binary(max_size=200),
    ),
    mend=st.booleans(),
)
def test_a_damaged_batch_is_refused_or_read_but_never_a_crash(data: bytes, mend: bool) -> None:
    batch = bytearray(data)
    with suppress(*REFUSED):
        if mend and read_header(batch).size <= len(batch):
            write_crc(batch)  # So that the damage is not found by the CRC alone.
        crc_ok(batch)
        read_records(batch, LIMIT)
        read_control_records(batch)
        read_end_transaction(batch)
        first_at_or_after(batch, 5, limit=LIMIT)
        recompress(batch, 0, limit=LIMIT)
        down_convert(batch, 1, limit=LIMIT)
    with suppress(CorruptMessage):
        assert sum(len(view) for _, view in iter_batches(batch)) <= len(batch)


@settings(deadline=None, max_examples=300)
@given(
    codec=st.integers(1, 4),
    data=st.binary(max_size=2000),
    noise=st.binary(max_size=100),
    limit=st.integers(0, 3000),
)
def test_a_stream_never_yields_more_than_its_limit(codec: int, data: bytes, noise: bytes, limit: int) -> None:
    compressed = bytes(compress(codec, data))
    if len(data) <= limit:
        assert bytes(decompress(codec, compressed, limit)) == data
    else:
        with pytest.raises(MessageTooLarge):
            decompress(codec, compressed, limit)
    for stream in (noise, compressed + noise, compressed[: len(noise)]):
        with suppress(InvalidRecord, MessageTooLarge):
            assert len(decompress(codec, stream, limit)) <= limit


@settings(deadline=None, max_examples=300)
@given(codec=st.integers(1, 4), stream=st.data())
def test_a_damaged_stream_is_refused_or_read_but_never_a_crash(codec: int, stream: st.DataObject) -> None:
    data = stream.draw(mutated(st.binary(max_size=500).map(lambda some: bytes(compress(codec, some)))))
    with suppress(InvalidRecord, MessageTooLarge):
        assert len(decompress(codec, data, LIMIT)) <= LIMIT


@settings(deadline=None)
@given(
    records=record_lists, magic=st.integers(0, 1), codec=st.integers(0, 3), base_offset=st.integers(0, 2**62)
)
def test_old_formats_keep_all_that_they_can(
    records: list[Record], magic: int, codec: int, base_offset: int
) -> None:
    batch = write_batch(records, codec=codec, base_offset=base_offset)
    kept = [Record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in read_records(batch)]
    converted = down_convert(batch, magic)
    assert read_message_set(converted) == kept
    assert bytes(write_message_set(kept, magic, codec)) == bytes(converted)
    if kept:
        back = read_records(up_convert(converted))
        assert [(r.timestamp, r.key, r.value) for r in back] == [(r.timestamp, r.key, r.value) for r in kept]
        assert read_header(up_convert(converted)).codec == codec


@settings(deadline=None, max_examples=300)
@given(
    data=st.one_of(
        mutated(
            st.builds(
                lambda some, magic, codec: bytes(write_message_set(some, magic, codec)),
                record_lists,
                st.integers(0, 1),
                st.integers(0, 3),
            )
        ),
        st.binary(max_size=200),
    )
)
def test_a_damaged_message_set_is_refused_or_read_but_never_a_crash(data: bytes) -> None:
    with suppress(*REFUSED):
        read_message_set(data, LIMIT)
        up_convert(data, limit=LIMIT)
