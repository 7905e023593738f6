"""The record kernel, compiled and in Python: each test runs on both."""

from __future__ import annotations

from array import array
from types import ModuleType

import pytest

from ottla.protocol import _kernel_py, kernel
from ottla.protocol.batch import HEADER_SIZE, Record, write_batch
from ottla.protocol.kernel import (
    BAD_BATCH_LENGTH,
    BAD_COUNT,
    BAD_HEADER_COUNT,
    BAD_HEADER_KEY,
    BAD_HEADER_VALUE,
    BAD_KEY,
    BAD_LENGTH,
    BAD_MAGIC,
    BAD_VALUE,
    BAD_VARINT,
    COMPRESSED,
    NO_FAULT,
    TRAILING_BYTES,
    TRUNCATED,
    WRONG_SIZE,
)
from tests import compiled

GOOD = "10 00 00 00 02 6b 02 76 00"  # length 8, no attributes, deltas 0 and 0, key "k", value "v", no headers


@pytest.fixture(params=["_kernel", "_kernel_py"])
def either(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "_kernel":
        return compiled.kernel()
    return _kernel_py


def section_of(*records: Record) -> bytearray:
    return write_batch(records)[HEADER_SIZE:]


def test_a_good_section_is_summed_up(either: ModuleType) -> None:
    section = section_of(
        Record(timestamp=100, key=b"a", value=b"1"),
        Record(timestamp=300, key=None, value=b"2", headers=[("h", b"x"), ("n", None)]),
        Record(timestamp=50, key=b"", value=None),
        Record(timestamp=300, key=None, value=b""),
    )
    assert either.scan(section, 4, 100) == (-1, NO_FAULT, 50, 300, 1, 1, True)


def test_a_record_without_timestamp_counts_for_neither_bound(either: ModuleType) -> None:
    assert either.scan(section_of(Record(timestamp=-1, key=b"k")), 1, -1) == (
        -1,
        NO_FAULT,
        -1,
        -1,
        -1,
        -1,
        True,
    )
    section = section_of(Record(timestamp=-1, key=b"k"), Record(timestamp=7, key=b"k"))
    assert either.scan(section, 2, -1)[2:5] == (7, 7, 1)


def test_offsets_with_gaps_are_not_sequential(either: ModuleType) -> None:
    batch = write_batch([Record(offset=3), Record(offset=9, timestamp=8)], keep_offsets=True)
    assert either.scan(batch, 2, -1, HEADER_SIZE) == (-1, NO_FAULT, 8, 8, 9, 0, False)


def test_an_empty_section_holds_no_records(either: ModuleType) -> None:
    assert either.scan(b"", 0) == (-1, NO_FAULT, -1, -1, -1, -1, True)
    assert either.columns(b"", 0) == (NO_FAULT, -1, tuple(array("q") for _ in range(10)))


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (BAD_VARINT, ""),
        (BAD_VARINT, "80"),
        (BAD_VARINT, "80 80 80 80 80 00 00 00"),
        (BAD_LENGTH, "12 00 00 00 02 6b 02 76 00"),
        (BAD_LENGTH, "00 00 00 00 02 6b 02 76 00"),
        (BAD_LENGTH, "01 00 00 00 02 6b 02 76 00"),
        (BAD_LENGTH, "fe ff ff ff 0f 00 00 00 02 6b"),
        (BAD_VARINT, "02 00"),
        (BAD_VARINT, "18 00 80 80 80 80 80 80 80 80 80 80 01"),
        (BAD_VARINT, "10 00 00 80 80 80 80 80 00"),
        (BAD_KEY, "10 00 00 00 0c 6b 02 76 00"),
        (BAD_KEY, "18 00 00 00 fe ff ff ff 0f 6b 02 76 00"),
        (BAD_VALUE, "10 00 00 00 02 6b 06 76 00"),
        (BAD_VARINT, "10 00 00 00 02 6b 04 76 00"),
        (BAD_HEADER_COUNT, "10 00 00 00 02 6b 02 76 01"),
        (BAD_HEADER_COUNT, "10 00 00 00 02 6b 02 76 02"),
        (BAD_HEADER_COUNT, "18 00 00 00 02 6b 02 76 fe ff ff ff 0f"),
        (BAD_HEADER_KEY, "14 00 00 00 02 6b 02 76 02 01 00"),
        (BAD_HEADER_KEY, "14 00 00 00 02 6b 02 76 02 06 00"),
        (BAD_HEADER_VALUE, "14 00 00 00 02 6b 02 76 02 00 02"),
        (WRONG_SIZE, "12 00 00 00 02 6b 02 76 00 00"),
        (WRONG_SIZE, "12 00 00 00 02 6b 02 76 00 02"),
    ],
)
def test_a_bad_record_is_named_with_its_index(either: ModuleType, fault: int, text: str) -> None:
    section = bytes.fromhex(GOOD + text)
    assert either.scan(section, 2)[:2] == (1, fault)
    assert either.first_at_or_after(section, 2, 0, 1)[0] == fault
    padding = bytes(16)  # What follows the section in a buffer must not save a record that is cut off.
    assert either.scan(section + padding, 2, 0, 0, len(section))[:2] == (1, fault)
    if len(section) >= 14:
        assert either.columns(section, 2) == (fault, 1, ())


def test_bytes_after_the_last_record_are_a_fault(either: ModuleType) -> None:
    section = bytes.fromhex(GOOD) + b"\0"
    assert either.scan(section, 1)[:2] == (1, TRAILING_BYTES)
    assert either.columns(section, 1) == (TRAILING_BYTES, 1, ())


def test_a_negative_count_is_a_fault(either: ModuleType) -> None:
    assert either.scan(b"", -1)[:2] == (0, BAD_COUNT)
    assert either.columns(b"", -1) == (BAD_COUNT, 0, ())


def test_a_count_that_cannot_be_true_allocates_nothing(either: ModuleType) -> None:
    assert either.columns(bytes.fromhex(GOOD), 2**31 - 1) == (BAD_COUNT, 0, ())


def test_lengths_below_minus_one_are_null_as_in_kafka(either: ModuleType) -> None:
    section = bytes.fromhex("0c 00 00 00 05 05 00")  # key and value lengths of -3
    assert either.scan(section, 1)[:6] == (-1, NO_FAULT, 0, 0, 0, 0)
    fault, _, columns = either.columns(section, 1)
    assert fault == NO_FAULT
    assert (columns[5][0], columns[7][0]) == (-1, -1)


def test_varints_longer_than_needed_are_read(either: ModuleType) -> None:
    section = bytes.fromhex("2a 00 84 80 80 80 80 80 80 80 80 00 82 80 00 81 80 80 80 70 01 00")
    assert either.scan(section, 1)[:2] == (-1, NO_FAULT)
    fault, _, columns = either.columns(section, 1)
    assert fault == NO_FAULT
    # The fifth byte of the key length has bits that no int32 has room for; they are dropped.
    assert [column[0] for column in columns[2:6]] == [1, 2, 20, -1]


def test_timestamps_wrap_as_64_bit_integers_do(either: ModuleType) -> None:
    section = section_of(Record(timestamp=0), Record(timestamp=2))
    assert either.scan(section, 2, 2**63 - 1)[2:4] == (-(2**63) + 1, 2**63 - 1)


def test_columns_say_where_everything_is(either: ModuleType) -> None:
    prefix = b"frame"
    section = section_of(
        Record(timestamp=5, key=b"key", value=b"value", headers=[("h", b"1")]), Record(timestamp=9, value=b"")
    )
    buffer = memoryview(bytearray(prefix + section + b"next"))
    fault, index, columns = either.columns(buffer, 2, len(prefix), len(prefix) + len(section))
    starts, ends, offsets, timestamps, keys, key_lengths, values, value_lengths, headers, counts = columns
    assert (fault, index) == (NO_FAULT, -1)
    assert starts[0] == len(prefix)
    assert ends[0] == starts[1]
    assert ends[1] == len(prefix) + len(section)
    assert list(offsets) == [0, 1]
    assert list(timestamps) == [0, 4]
    assert bytes(buffer[keys[0] : keys[0] + key_lengths[0]]) == b"key"
    assert bytes(buffer[values[0] : values[0] + value_lengths[0]]) == b"value"
    assert bytes(buffer[headers[0] : ends[0]]) == b"\x02h\x021"
    assert list(counts) == [1, 0]
    assert (key_lengths[1], value_lengths[1]) == (-1, 0)
    assert all(memoryview(column).format == "q" for column in columns)


def test_the_first_record_at_or_after_a_timestamp_is_found(either: ModuleType) -> None:
    records = [Record(timestamp=t) for t in (100, 400, 200, 400)]
    section = section_of(*records)
    find = either.first_at_or_after
    assert find(section, 4, 100, 0) == (NO_FAULT, 0, 0, 100)
    assert find(section, 4, 100, 150) == (NO_FAULT, 1, 1, 400)
    assert find(section, 4, 100, 150, 2) == (NO_FAULT, 2, 2, 200)
    assert find(section, 4, 100, 400, 2) == (NO_FAULT, 3, 3, 400)
    assert find(section, 4, 100, 401) == (NO_FAULT, -1, -1, -1)


def test_a_batch_is_checked_in_one_call(either: ModuleType) -> None:
    batch = write_batch(
        [Record(timestamp=10, key=b"k"), Record(timestamp=30)],
        base_offset=7,
        leader_epoch=3,
        producer_id=1000,
        producer_epoch=5,
        base_sequence=11,
        attributes=0x10,
    )
    frame = bytearray(b"head") + batch + b"more"
    crc = int.from_bytes(batch[17:21], "big")
    expected = (
        NO_FAULT,
        -1,
        7,
        len(batch) - 12,
        3,
        2,
        crc,
        0x10,
        1,
        10,
        30,
        1000,
        5,
        11,
        2,
        10,
        30,
        1,
        1,
        True,
    )
    assert either.check_batch(memoryview(frame), 4) == expected
    assert either.check_batch(frame, 4, 4 + len(batch)) == expected
    assert either.check_batch(bytes(batch)) == expected


def test_a_fault_in_a_batch_comes_with_its_header(either: ModuleType) -> None:
    batch = write_batch([Record(key=b"k")], base_offset=7)
    batch[-1] = 1  # minus one headers
    assert either.check_batch(batch)[:3] == (BAD_HEADER_COUNT, 0, 7)


def test_a_compressed_batch_has_only_its_header_read(either: ModuleType) -> None:
    checked = either.check_batch(write_batch([Record(key=b"k")], codec=1, base_offset=7))
    assert checked[:3] == (COMPRESSED, -1, 7)
    assert checked[14] == 1


def test_what_is_not_a_whole_batch_is_told_apart(either: ModuleType) -> None:
    batch = write_batch([Record(key=b"k")])
    assert either.check_batch(b"")[0] == TRUNCATED
    assert either.check_batch(batch[:-1])[0] == TRUNCATED
    assert either.check_batch(batch, 0, 60)[0] == TRUNCATED
    assert either.check_batch(batch[:16] + b"\x01" + batch[17:])[0] == BAD_MAGIC
    assert either.check_batch(batch[:8] + b"\x00\x00\x00\x30" + batch[12:])[0] == BAD_BATCH_LENGTH
    assert either.check_batch(batch[:8] + b"\xff\xff\xff\xff" + batch[12:])[0] == BAD_BATCH_LENGTH
    assert either.check_batch(batch[:8] + b"\x7f\xff\xff\xff" + batch[12:])[0] == TRUNCATED


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (0, 6), (4, 3), (6, 6)])
def test_a_range_outside_the_buffer_is_refused(either: ModuleType, start: int, end: int) -> None:
    for call in (
        lambda: either.scan(b"12345", 0, 0, start, end),
        lambda: either.columns(b"12345", 0, start, end),
        lambda: either.check_batch(b"12345", start, end),
        lambda: either.first_at_or_after(b"12345", 0, 0, 0, 0, start, end),
    ):
        with pytest.raises(ValueError, match="outside"):
            call()


def test_a_long_section_gives_the_same_as_a_short_one(either: ModuleType) -> None:
    # Past a size the compiled kernel lets other threads run meanwhile.
    section = section_of(*(Record(timestamp=i, key=b"k", value=bytes(1100)) for i in range(1000)))
    assert len(section) > 1_100_000
    assert either.scan(section, 1000, 0) == (-1, NO_FAULT, 0, 999, 999, -1, True)
    assert list(either.columns(section, 1000)[2][2]) == list(range(1000))


def test_every_fault_has_words() -> None:
    assert kernel.describe(BAD_KEY, 4) == "record 4: its key is out of bounds"
    assert kernel.describe(TRUNCATED) == "the batch is cut off"
    assert all(kernel.describe(fault) for fault in range(BAD_COUNT, BAD_BATCH_LENGTH + 1))
