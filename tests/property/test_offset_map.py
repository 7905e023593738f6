"""Compaction's offset map under any input: both twins agree, and noise is never a crash."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol import _offset_map_py
from tests.compiled import kernel

int64s = st.integers(-(2**63), 2**63 - 1)
int32s = st.one_of(st.integers(-20, 20), st.integers(-(2**31), 2**31 - 1))
offsets = st.one_of(st.integers(-5, 40), st.integers(-5, 40), int64s)
# Few keys, so that many records have one in common.
keys = st.one_of(st.none(), st.sampled_from([b"", b"a", b"b", b"\0", b"\0\0"]), st.binary(max_size=40))
values = st.one_of(st.none(), st.binary(max_size=20))
headers = st.lists(st.tuples(st.binary(max_size=4), values), max_size=2)


def varint(number: int, longer: int = 0) -> bytes:
    """A zigzag varint, with that many bytes more than it needs."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F or longer > 0:
        if number <= 0x7F:
            longer -= 1
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


@st.composite
def records(draw: st.DrawFn, longer: int = 0) -> bytes:
    """One record, with varints that are that much longer than they need be."""

    def blob(data: bytes | None) -> bytes:
        return varint(draw(st.sampled_from([-1, -1, -3]))) if data is None else varint(len(data)) + data

    body = b"\0" + varint(draw(st.one_of(st.integers(-9, 9), int64s)), longer) + varint(draw(int32s), longer)
    body += blob(draw(keys)) + blob(draw(values))
    some = draw(headers)
    body += varint(len(some)) + b"".join(varint(len(key)) + key + blob(value) for key, value in some)
    return varint(len(body), longer // 2) + body


@st.composite
def sections(draw: st.DrawFn) -> tuple[bytes, int]:
    """A section and its count, of which one or the other may be wrong."""
    longer = draw(st.sampled_from([0] * 9 + [1, 4, 9]))  # The last of them is too long.
    some = draw(st.lists(records(longer), max_size=12))
    data = bytearray(b"".join(some))
    count = len(some)
    match draw(st.integers(0, 9)):
        case 0:
            count = draw(st.integers(-2, 20))
        case 1:
            del data[draw(st.integers(0, len(data))) :]
        case 2 | 3:
            for _ in range(draw(st.integers(1, 4))):
                if data:
                    position = draw(st.integers(0, len(data) - 1))
                    data[position] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF, data[position] ^ 1]))
        case 4:
            data += draw(st.binary(max_size=9))
            count += draw(st.integers(0, 1))
    return bytes(data), count


@pytest.fixture(scope="module")
def compiled() -> ModuleType:
    return kernel("_offset_map")


@settings(deadline=None, max_examples=400)
@given(
    slots=st.one_of(st.integers(0, 6), st.just(100)),
    added=st.lists(st.tuples(sections(), offsets, offsets), max_size=4),
    retained=st.lists(st.tuples(sections(), offsets, offsets, st.booleans()), min_size=1, max_size=3),
    around=st.tuples(st.binary(max_size=9), st.binary(max_size=9)),
)
def test_both_maps_give_equal_results_for_any_bytes(
    compiled: ModuleType,
    slots: int,
    added: list[tuple[tuple[bytes, int], int, int]],
    retained: list[tuple[tuple[bytes, int], int, int, bool]],
    around: tuple[bytes, bytes],
) -> None:
    left, right = compiled.OffsetMap(slots), _offset_map_py.OffsetMap(slots)
    before, after = around
    for (section, count), base_offset, start_offset in added:
        result = left.add(section, count, base_offset, start_offset)
        assert result == right.add(section, count, base_offset, start_offset)
        assert len(left) == len(right) <= slots
    # What was added is also what is looked for.
    checks = [(*one, False) for one in added] + retained
    for (section, count), base_offset, latest_offset, drop_deletes in checks:
        found = left.retain(section, count, base_offset, latest_offset, drop_deletes)
        assert found == right.retain(section, count, base_offset, latest_offset, drop_deletes)
        # Nothing outside the range plays a part.
        buffer = memoryview(bytearray(before + section + after))
        place = len(before), len(before) + len(section)
        assert left.retain(buffer, count, base_offset, latest_offset, drop_deletes, *place) == found
        fault, _, kept, picked, _, _ = found
        if fault == 0 and picked is not None:
            # What is kept is a section of that many records, and all of it is kept the next time.
            again = left.retain(picked, kept, base_offset, latest_offset, drop_deletes)
            assert again == (0, -1, kept, None, *found[4:])
