"""Where a fetched range ends: whole batches, of all formats, up to an offset."""

from __future__ import annotations

import pytest

from ottla.client.blocking.fetch import whole_batches
from ottla.protocol.batch import Record, set_base_offset, write_batch
from ottla.protocol.errors import CorruptMessage
from ottla.protocol.message_set import write_message_set


def batches(*extents: tuple[int, int]) -> list[bytes]:
    """A batch for each base offset and count."""
    found = []
    for base_offset, count in extents:
        batch = write_batch([Record(0, 1, None, b"value")] * count)
        set_base_offset(batch, base_offset)
        found.append(bytes(batch))
    return found


def cut(data: bytes, position: int, end: int) -> tuple[int, int]:
    return whole_batches(memoryview(data), position, end)


def test_all_batches_before_the_end_count() -> None:
    one, two, three = batches((0, 3), (3, 1), (4, 2))
    data = one + two + three
    assert cut(data, 0, 100) == (len(data), 6)
    assert cut(data, 2, 6) == (len(data), 6)
    assert cut(data, 0, 5) == (len(data), 6)
    assert cut(data, 0, 4) == (len(one + two), 4)
    assert cut(data, 0, 2) == (len(one), 3)


def test_a_batch_that_is_cut_off_is_left_for_the_next_time() -> None:
    one, two = batches((0, 3), (3, 2))
    for length in (len(one) + 5, len(one) + 30, len(one + two) - 1):
        assert cut((one + two)[:length], 0, 100) == (len(one), 3)
    assert cut(one[:40], 0, 100) == (0, 0)
    assert cut(b"", 5, 100) == (0, 5)


def test_offsets_that_compaction_took_are_passed_over() -> None:
    one, two = batches((10, 2), (50, 2))
    assert cut(one + two, 5, 30) == (len(one), 30)
    assert cut(one + two, 5, 51) == (len(one + two), 52)
    assert cut(two, 12, 40) == (0, 40)
    assert cut(one, 15, 100) == (len(one), 15)  # what was wanted is behind it


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_older_message_sets_are_walked_by_the_offset_of_their_last_message(magic: int, codec: int) -> None:
    records = [Record(7 + number, 1, None, None) for number in range(4)]
    data = bytes(write_message_set(records, magic=magic, codec=codec))
    assert cut(data, 7, 100) == (len(data), 11)
    size, position = cut(data, 7, 9)
    assert position >= 9
    assert size == (len(data) if codec else len(data) // 2)


def test_what_is_no_batch_is_corrupt() -> None:
    (one,) = batches((0, 1))
    for damaged in (one[:16] + b"\x07" + one[17:], one[:8] + bytes(4) + one[12:]):
        with pytest.raises(CorruptMessage, match="follows offset 0"):
            cut(damaged, 0, 10)
