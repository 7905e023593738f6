"""The offset map of compaction, compiled and in Python: each test runs on both."""

from __future__ import annotations

from types import ModuleType

import pytest

from ottla.protocol import _offset_map_py, kernel
from ottla.protocol.batch import Record, write_record
from ottla.protocol.kernel import (
    BAD_COUNT,
    BAD_HEADER_COUNT,
    BAD_HEADER_KEY,
    BAD_HEADER_VALUE,
    BAD_KEY,
    BAD_LENGTH,
    BAD_VALUE,
    BAD_VARINT,
    NO_FAULT,
    TRAILING_BYTES,
    WRONG_SIZE,
)
from tests import compiled

GOOD = "10 00 00 00 02 6b 02 76 00"  # length 8, no attributes, deltas 0 and 0, key "k", value "v", no headers
NOTHING = (0, None, False, 0)
GREATEST = 2**63 - 1


@pytest.fixture(params=["_offset_map", "_offset_map_py"])
def either(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "_offset_map":
        return compiled.kernel("_offset_map")
    return _offset_map_py


def record(key: bytes | None, value: bytes | None, offset_delta: int, timestamp_delta: int = 0) -> bytes:
    section = bytearray()
    write_record(section, Record(key=key, value=value), offset_delta, timestamp_delta)
    return bytes(section)


def keyed(*keys: bytes | None) -> bytes:
    """Records with these keys, at the offset deltas 0, 1, 2, ..."""
    return b"".join(record(key, b"v", delta) for delta, key in enumerate(keys))


def numbered(numbers: range) -> bytes:
    return keyed(*(b"key-%d" % number for number in numbers))


def test_the_last_record_of_each_key_is_kept_as_it_was(either: ModuleType) -> None:
    offsets = either.OffsetMap(10)
    records = [record(key, b"%d" % i, i, 10 - i) for i, key in enumerate([b"a", b"b", b"a", b"c", b"b"])]
    section = b"".join(records)
    assert offsets.add(section, 5, 100, 0) == (NO_FAULT, 5)
    assert len(offsets) == 3
    picked = (3, records[2] + records[3] + records[4], False, 8)
    assert offsets.retain(section, 5, 100, 104, False) == (NO_FAULT, -1, *picked)


def test_an_earlier_batch_loses_the_keys_of_a_later_one(either: ModuleType) -> None:
    offsets = either.OffsetMap(10)
    offsets.add(keyed(b"a", b"b"), 2, 50, 0)
    assert offsets.retain(keyed(b"a", b"b"), 2, 10, 51, False) == (NO_FAULT, -1, 0, b"", False, 0)
    assert offsets.retain(keyed(b"b", b"new"), 2, 10, 51, False)[2:4] == (1, record(b"new", b"v", 1))


def test_nothing_is_copied_if_all_is_kept(either: ModuleType) -> None:
    section = keyed(b"a", b"b")
    assert either.OffsetMap(0).retain(section, 2, 0, 9, False) == (NO_FAULT, -1, 2, None, False, 0)
    assert either.OffsetMap(0).retain(b"", 0, 0, 9, False) == (NO_FAULT, -1, *NOTHING)


def test_a_key_keeps_its_greatest_offset_in_whatever_order_batches_come(either: ModuleType) -> None:
    offsets = either.OffsetMap(1)
    for base_offset in (7, 9, 8):
        assert offsets.add(keyed(b"k"), 1, base_offset, 0) == (NO_FAULT, 1)
    assert len(offsets) == 1
    for base_offset, wanted in ((7, 0), (8, 0), (9, 1), (10, 1)):
        assert offsets.retain(keyed(b"k"), 1, base_offset, 99, False)[2] == wanted


def test_an_empty_key_is_a_key_and_a_null_key_is_none(either: ModuleType) -> None:
    offsets = either.OffsetMap(1)
    section = keyed(None, b"", None)
    assert offsets.add(section, 3, 0, 0) == (NO_FAULT, 3)
    assert len(offsets) == 1
    assert offsets.retain(section, 3, 0, 2, False)[2:4] == (1, record(b"", b"v", 1))
    # As in Kafka, what is past the part that the map is about stays even so.
    assert offsets.retain(section, 3, 0, 1, False)[2] == 2
    assert offsets.retain(section, 3, 0, -1, False)[2:4] == (3, None)


def test_records_before_the_start_offset_are_not_entered(either: ModuleType) -> None:
    offsets = either.OffsetMap(10)
    assert offsets.add(keyed(b"a", b"b", b"c"), 3, 100, 101) == (NO_FAULT, 3)
    assert len(offsets) == 2
    assert offsets.retain(keyed(b"a", b"b", b"c"), 3, 0, 102, False)[2] == 1


def test_a_delete_stays_until_deletes_are_dropped(either: ModuleType) -> None:
    offsets = either.OffsetMap(10)
    first, delete, empty = record(b"a", b"1", 0, 1), record(b"a", None, 1, 5), record(b"b", b"", 2, 3)
    section = first + delete + empty
    offsets.add(section, 3, 0, 0)
    assert offsets.retain(section, 3, 0, 2, False) == (NO_FAULT, -1, 2, delete + empty, True, 5)
    assert offsets.retain(section, 3, 0, 2, True) == (NO_FAULT, -1, 1, empty, False, 3)
    # Not if it is past the part that the map is about; and one that the map does not know is dropped as well.
    assert offsets.retain(section, 3, 0, -1, True) == (NO_FAULT, -1, 3, None, True, 5)
    assert either.OffsetMap(0).retain(delete, 1, 0, 2, True)[2] == 0


def test_timestamp_deltas_may_all_be_negative(either: ModuleType) -> None:
    section = record(b"a", b"", 0, -7) + record(b"b", b"", 1, -5)
    assert either.OffsetMap(0).retain(section, 2, 0, 9, False)[5] == -5
    assert either.OffsetMap(0).retain(record(None, b"", 0, 9) + section, 3, 0, 9, False)[5] == -5


def test_a_full_map_says_where_it_stopped(either: ModuleType) -> None:
    offsets = either.OffsetMap(2)
    section = keyed(b"a", None, b"b", b"a", b"c", b"a")
    assert offsets.add(section, 6, 0, 0) == (NO_FAULT, 4)
    assert len(offsets) == 2
    assert offsets.retain(keyed(b"a"), 1, 2, 99, False)[2] == 0
    assert offsets.retain(keyed(b"a"), 1, 3, 99, False)[2] == 1
    # Keys that it has are entered still.
    assert offsets.add(keyed(b"b", b"a"), 2, 10, 0) == (NO_FAULT, 2)
    assert offsets.add(keyed(b"z"), 1, 10, 11) == (NO_FAULT, 1)
    assert either.OffsetMap(0).add(section, 6, 0, 0) == (NO_FAULT, 0)


def test_keys_that_fill_a_map_to_the_last_slot_are_all_found(either: ModuleType) -> None:
    count, many = (10_000, 1_000) if either is _offset_map_py else (200_000, 20_000)
    offsets = either.OffsetMap(count)
    for first in range(0, count, many):
        section = numbered(range(first, first + many))
        assert offsets.add(section, many, first, 0) == (NO_FAULT, many)
    assert len(offsets) == count
    assert offsets.add(keyed(b"one more"), 1, count, 0) == (NO_FAULT, 0)
    for first in range(0, count, many):
        section = numbered(range(first, first + many))
        assert offsets.retain(section, many, first, count, False)[2:4] == (many, None)
        assert offsets.retain(section, many, first - 1, count, False)[2:4] == (0, b"")


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (BAD_VARINT, ""),
        (BAD_VARINT, "80 80 80 80 80 00 00 00"),
        (BAD_LENGTH, "12 00 00 00 02 6b 02 76 00"),
        (BAD_LENGTH, "fe ff ff ff 0f 00 00 00 02 6b"),
        (BAD_KEY, "10 00 00 00 0c 6b 02 76 00"),
        (BAD_KEY, "18 00 00 00 fe ff ff ff 0f 6b 02 76 00"),
        (BAD_VALUE, "10 00 00 00 02 6b 06 76 00"),
        (BAD_HEADER_COUNT, "10 00 00 00 02 6b 02 76 02"),
        (BAD_HEADER_KEY, "14 00 00 00 02 6b 02 76 02 06 00"),
        (BAD_HEADER_VALUE, "14 00 00 00 02 6b 02 76 02 00 02"),
        (WRONG_SIZE, "12 00 00 00 02 6b 02 76 00 00"),
    ],
)
def test_a_bad_record_is_named_with_its_index(either: ModuleType, fault: int, text: str) -> None:
    section = bytes.fromhex(GOOD + text)
    offsets = either.OffsetMap(10)
    assert offsets.add(section, 2, 7, 0) == (fault, 1)
    assert len(offsets) == 1  # What came before it is in the map.
    padding = bytes(16)  # What follows the section in a buffer must not save a record that is cut off.
    assert offsets.add(section + padding, 2, 7, 0, 0, len(section)) == (fault, 1)
    for base_offset in (7, 6):  # With and without a record dropped before it.
        assert offsets.retain(section, 2, base_offset, 99, False) == (fault, 1, *NOTHING)


def test_a_section_holds_as_many_records_as_it_says(either: ModuleType) -> None:
    offsets = either.OffsetMap(10)
    section = keyed(b"a", b"b")
    assert offsets.add(section, 1, 0, 0) == (TRAILING_BYTES, 1)
    assert offsets.retain(section, 1, 0, 9, False) == (TRAILING_BYTES, 1, *NOTHING)
    assert offsets.add(section, -1, 0, 0) == (BAD_COUNT, 0)
    assert offsets.retain(section, -1, 0, 9, False) == (BAD_COUNT, 0, *NOTHING)
    assert offsets.add(section, 2**31 - 1, 0, 0) == (BAD_VARINT, 2)
    assert offsets.retain(section, 2**31 - 1, 0, 9, False) == (BAD_VARINT, 2, *NOTHING)


def test_offsets_wrap_as_64_bit_integers_do(either: ModuleType) -> None:
    offsets = either.OffsetMap(10)
    assert offsets.add(keyed(b"a", b"b"), 2, GREATEST, 0) == (NO_FAULT, 2)
    assert len(offsets) == 1  # The second is at the least offset there is.
    assert offsets.add(record(b"c", b"", -3), 1, 2, -1) == (NO_FAULT, 1)
    assert offsets.retain(record(b"c", b"", -4), 1, 2, 0, False)[2] == 0
    assert offsets.retain(record(b"new", b"", -4), 1, 2, 0, False)[2] == 1


def test_a_section_is_read_where_it_lies(either: ModuleType) -> None:
    section = keyed(b"a", b"a", b"b")
    buffer = memoryview(bytearray(b"head" + section + b"tail"))
    offsets = either.OffsetMap(10)
    assert offsets.add(buffer, 3, 0, 0, 4, 4 + len(section)) == (NO_FAULT, 3)
    found = offsets.retain(buffer, 3, 0, 9, False, start=4, end=4 + len(section))
    assert found[2:4] == (2, record(b"a", b"v", 1) + record(b"b", b"v", 2))


def test_a_long_section_gives_the_same_as_a_short_one(either: ModuleType) -> None:
    # Past a size the compiled map lets other threads run meanwhile.
    records = [record(b"%d" % (i % 700), bytes(200), i, i) for i in range(1000)]
    section = b"".join(records)
    assert len(section) > 200_000
    offsets = either.OffsetMap(700)
    assert offsets.add(section, 1000, 5, 0) == (NO_FAULT, 1000)
    assert offsets.retain(section, 1000, 5, 2000, True) == (
        NO_FAULT,
        -1,
        700,
        b"".join(records[300:]),
        False,
        999,
    )


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (0, 6), (4, 3), (6, 6)])
def test_a_range_outside_the_buffer_is_refused(either: ModuleType, start: int, end: int) -> None:
    offsets = either.OffsetMap(10)
    with pytest.raises(ValueError, match="outside"):
        offsets.add(b"12345", 0, 0, 0, start, end)
    with pytest.raises(ValueError, match="outside"):
        offsets.retain(b"12345", 0, 0, 0, False, start, end)


@pytest.mark.parametrize("slots", [-1, 2**31])
def test_a_number_of_slots_that_cannot_be_is_refused(either: ModuleType, slots: int) -> None:
    with pytest.raises(ValueError, match="slots"):
        either.OffsetMap(slots)


def test_the_compiled_map_is_the_one_that_is_used() -> None:
    assert kernel.OffsetMap is compiled.kernel("_offset_map").OffsetMap


@pytest.mark.parametrize(
    ("length", "digest"),
    [
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1, "da87c1d86b99af44347659119b22fc45"),
        (7, "a1f1ebbed8dbc153c0b84aa61ff08239"),
        (8, "3b62a9ba6258f5610f83e264f31497b4"),
        (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
        (16, "6ee2a4ca67b054bbfd3315bf85230577"),
        (63, "5150d1772f50834a503e069a973fbd7c"),
    ],
)
def test_the_hash_is_siphash_as_its_authors_published_it(length: int, digest: str) -> None:
    siphash = compiled.kernel("_offset_map").siphash_128
    assert siphash(bytes(range(16)), bytes(range(length))).hex() == digest
