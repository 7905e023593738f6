from __future__ import annotations

import random
import struct
from bisect import bisect_right
from pathlib import Path

import pytest

from ottla.storage.files import OsFiles
from ottla.storage.handles import Handles
from ottla.storage.index_file import BLOCKS_KEPT, CorruptIndex
from ottla.storage.offset_index import OffsetIndex
from ottla.storage.time_index import TimeIndex
from ottla.storage.transaction_index import AbortedEntry, TransactionIndex

BASE = 1000


def offset_index(directory: Path, entries: int = 0) -> OffsetIndex:
    index = OffsetIndex(Handles(OsFiles()), str(directory / "x.index"), BASE)
    index.clear()
    for number in range(1, entries + 1):
        index.append(BASE + 10 * number, 4096 * number)
    return index


def time_index(directory: Path) -> TimeIndex:
    index = TimeIndex(Handles(OsFiles()), str(directory / "x.timeindex"), BASE)
    index.clear()
    return index


def test_an_offset_entry_is_the_relative_offset_and_the_position(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 2)
    index.write()
    assert (tmp_path / "x.index").read_bytes() == struct.pack(">iiii", 10, 4096, 20, 8192)


@pytest.mark.parametrize("entries", [0, 1, 5, 511, 512, 513, 1300])
@pytest.mark.parametrize("written", [True, False])
def test_a_floor_is_found_whether_entries_are_written_or_waiting(
    tmp_path: Path, entries: int, written: bool
) -> None:
    index = offset_index(tmp_path, entries)
    if written:
        index.write()
    assert len(index) == entries
    for number in {0, 1, 2, 3, 300, 510, 511, 512, 513, 1023, 1024, 1025, entries}:
        expected = min(number, entries)
        entry = (BASE + 10 * expected, 4096 * expected)
        assert index.floor(BASE + 10 * number + 9) == entry
        assert index.floor(BASE + 10 * number) == entry
        following = (entry[0] + 10, entry[1] + 4096) if expected < entries else (-1, -1)
        after = entry[1] + 2 * 4096 if expected + 1 < entries else -1
        assert index.around(BASE + 10 * number + 9) == (*entry, *following, after)
        assert index.floor_position(4096 * number + 1) == entry
    assert index.last() == (BASE + 10 * entries, 4096 * entries)


def test_the_entry_that_follows_the_last_written_one_is_the_first_that_waits(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 3)
    index.write()
    index.append(BASE + 40, 9_000)
    assert index.around(BASE + 30) == (BASE + 30, 3 * 4096, BASE + 40, 9_000, -1)
    assert index.around(BASE + 40) == (BASE + 40, 9_000, -1, -1, -1)
    assert index.around(BASE + 29) == (BASE + 20, 2 * 4096, BASE + 30, 3 * 4096, 9_000)
    assert index.around(BASE + 19) == (BASE + 10, 4096, BASE + 20, 2 * 4096, 3 * 4096)


def test_a_floor_is_found_in_any_order_however_unevenly_offsets_grow(tmp_path: Path) -> None:
    chance = random.Random(5)
    index = offset_index(tmp_path)
    offsets = [BASE]
    for number in range(1, 5_000):
        # Flat, then steep, then flat again: a guess from one part is far off in the others.
        offsets.append(offsets[-1] + (1 if number % 2_000 < 1_500 else chance.randint(1, 100_000)))
        index.append(offsets[-1], 4096 * number)
    index.write()
    for _ in range(2_000):
        asked = chance.choice((chance.choice(offsets), chance.randint(BASE, offsets[-1] + 10)))
        number = bisect_right(offsets, asked) - 1
        assert index.floor(asked) == (offsets[number], 4096 * number)


def test_truncation_forgets_batches_that_end_at_the_offset_or_later(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 600)
    index.truncate(BASE + 10 * 550)
    assert index.last() == (BASE + 10 * 549, 4096 * 549)
    index.append(BASE + 5500, 9_999_999)
    assert index.floor(BASE + 7000) == (BASE + 5500, 9_999_999)
    assert len(index.entries()) == 550


def test_blocks_that_are_kept_are_forgotten_with_their_entries(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 1300)
    index.write()
    for number in (100, 700, 1200):
        assert index.floor(BASE + 10 * number) == (BASE + 10 * number, 4096 * number)
    assert len(index.file.handles.index_blocks) == 2  # the third is not complete
    index.truncate(BASE + 10 * 101)
    for number in range(101, 1301):
        index.append(BASE + 20 * number, 8192 * number)
    index.write()
    for number in (50, 101, 700, 1200):
        place = (BASE + 10 * number, 4096 * number) if number < 101 else (BASE + 20 * number, 8192 * number)
        assert index.floor(place[0]) == place
    index.clear()
    assert index.floor(BASE + 10 * 50) == (BASE, 0)
    assert not index.file.handles.index_blocks


def test_only_so_many_blocks_are_kept_of_all_indexes_together(tmp_path: Path) -> None:
    handles = Handles(OsFiles())
    indexes = []
    for number in range(3):
        index = OffsetIndex(handles, str(tmp_path / f"{number}.index"), BASE)
        index.clear()
        index.file.append(b"".join(struct.pack(">ii", n, n) for n in range(512 * 100 + 1)))
        indexes.append(index)
    order = [(index, n) for index in indexes for n in range(100)] * 2
    random.Random(1).shuffle(order)
    for index, n in order:
        assert index.floor(BASE + 512 * n + 7) == (BASE + 512 * n + 7, 512 * n + 7)
    assert len(handles.index_blocks) == BLOCKS_KEPT


def test_zeros_that_kafka_allots_in_advance_are_not_entries(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 3)
    index.write()
    path = tmp_path / "x.index"
    path.write_bytes(path.read_bytes() + bytes(8 * 10_000))
    found = OffsetIndex(Handles(OsFiles()), str(path), BASE)
    assert found.entries() == index.entries()
    found.append(BASE + 40, 50_000)
    found.write()
    assert path.stat().st_size == 4 * 8


def test_an_index_of_an_impossible_size_is_corrupt(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 1)
    index.write()
    path = tmp_path / "x.index"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(CorruptIndex):
        OffsetIndex(Handles(OsFiles()), str(path), BASE).floor(BASE)


def test_a_time_entry_is_added_only_for_a_later_timestamp(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    for timestamp, offset in [(-1, 1000), (50, 1001), (50, 1002), (40, 1003), (60, 1004)]:
        index.append(timestamp, offset)
    index.write()
    assert index.entries() == [(50, 1001), (60, 1004)]
    assert (tmp_path / "x.timeindex").read_bytes() == struct.pack(">qiqi", 50, 1, 60, 4)
    again = TimeIndex(Handles(OsFiles()), str(tmp_path / "x.timeindex"), BASE)
    again.append(60, 1005)
    again.append(61, 1006)
    assert again.entries() == [(50, 1001), (60, 1004), (61, 1006)]


def test_a_time_is_looked_up_among_written_and_waiting_entries(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    for number in range(700):
        index.append(100 * number, BASE + number)
    assert index.floor(-5) == (-1, BASE)
    for number in (0, 1, 340, 341, 342, 699):
        assert index.floor(100 * number + 50) == (100 * number, BASE + number)
    index.truncate(BASE + 500)
    assert index.last() == (49_900, BASE + 499)


def test_a_transaction_index_exists_only_once_something_was_aborted(tmp_path: Path) -> None:
    path = tmp_path / "x.txnindex"
    index = TransactionIndex(Handles(OsFiles()), str(path), BASE)
    assert index.entries() == []
    assert not path.exists()
    index.append(AbortedEntry(7, 1000, 1005, 1003))
    assert path.read_bytes() == struct.pack(">hqqqq", 0, 7, 1000, 1005, 1003)
    index.append(AbortedEntry(8, 1003, 1009, 1010))
    again = TransactionIndex(Handles(OsFiles()), str(path), BASE)
    assert again.entries() == [AbortedEntry(7, 1000, 1005, 1003), AbortedEntry(8, 1003, 1009, 1010)]
    again.truncate(1009)
    assert path.stat().st_size == 34


@pytest.mark.parametrize(
    "damaged",
    [
        b"\0" * 33,
        struct.pack(">hqqqq", 1, 7, 1000, 1005, 1006),
        struct.pack(">hqqqq", 0, 7, 1006, 1005, 1006),
        struct.pack(">hqqqq", 0, 7, 1000, 999, 1000),
        struct.pack(">hqqqq", 0, 7, 1000, 1005, 1006) * 2,
    ],
)
def test_a_damaged_transaction_index_is_corrupt(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "x.txnindex"
    path.write_bytes(damaged)
    with pytest.raises(CorruptIndex):
        TransactionIndex(Handles(OsFiles()), str(path), BASE).entries()
