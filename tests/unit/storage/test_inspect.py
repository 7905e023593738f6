"""Looking into a partition's files from outside: what is found, what is wrong, how a lookup goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.storage.inspect.batches import Walk
from ottla.storage.inspect.directory import (
    Kind,
    is_partition_directory,
    kind_of,
    partition_directories,
    read_partition_directory,
)
from ottla.storage.inspect.indexes import read_offset_index, read_time_index
from ottla.storage.inspect.lookup import find_offset, find_time
from ottla.storage.inspect.summary import summarize
from ottla.storage.inspect.verify import verify_partition
from tests.unit.storage.logs import (
    NOW,
    SMALL_SEGMENTS,
    append,
    content,
    end_transaction,
    fill,
    open_log,
    transactional,
)

COUNT = 35


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A closed log of 35 records of a kilobyte, a second apart, in segments of about ten."""
    path = tmp_path / "orders-0"
    log = open_log(path, **SMALL_SEGMENTS)
    fill(log, COUNT)
    log.write()
    log.epochs.assign(0, 0)
    log.close(NOW)
    return path


def first_log(path: Path) -> Path:
    return path / f"{0:020d}.log"


def problems(path: Path) -> list[str]:
    return [f"{each.file}: {each.what}" for each in verify_partition(read_partition_directory(path))]


def change(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def test_the_segments_of_a_log_are_found_with_their_real_figures(directory: Path) -> None:
    found = read_partition_directory(directory)
    summaries = [summarize(segment) for segment in found.segments]
    assert len(summaries) > 2
    assert sum(each.records for each in summaries) == COUNT
    assert summaries[0].first_offset == 0
    assert summaries[-1].last_offset == COUNT - 1
    assert [each.end_offset for each in summaries[:-1]] == [each.base_offset for each in summaries[1:]]
    assert summaries[0].first_timestamp == NOW
    assert summaries[-1].max_timestamp == NOW + 1000 * (COUNT - 1)
    assert sum(each.size for each in summaries) == sum(p.stat().st_size for p in directory.glob("*.log"))


def test_a_sound_log_has_no_problems_and_is_not_changed_by_looking(directory: Path) -> None:
    before = content(directory)
    assert problems(directory) == []
    assert content(directory) == before


def test_a_log_that_is_open_can_be_looked_into(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", **SMALL_SEGMENTS)
    fill(log, COUNT)
    log.write()
    assert problems(tmp_path / "orders-0") == []
    found = read_partition_directory(tmp_path / "orders-0")
    assert sum(summarize(segment).records for segment in found.segments) == COUNT
    log.close(NOW)


@pytest.mark.parametrize("position", [30, 70, 500])
def test_a_changed_byte_is_a_wrong_checksum(directory: Path, position: int) -> None:
    data = first_log(directory).read_bytes()
    change(first_log(directory), position, bytes([data[position] ^ 1]))
    (problem,) = problems(directory)
    assert "checksum" in problem and "offsets 0 to 0" in problem


def test_a_batch_that_was_cut_short_is_told_from_one_that_never_was(directory: Path) -> None:
    last = max(directory.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-100])
    assert any("a write that was cut short" in each for each in problems(directory))
    last.write_bytes(b"\xff" * 200)
    assert any("there is no batch" in each for each in problems(directory))


def test_space_that_is_set_aside_is_no_damage(directory: Path) -> None:
    last = max(directory.glob("*.log"))
    with last.open("ab") as file:
        file.write(bytes(100_000))
    walk = Walk(last)
    batches = list(walk)
    assert batches and walk.problem is None and walk.unwritten == 100_000
    assert problems(directory) == []


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda index: change(index, 4, (7).to_bytes(4, "big")), "where no batch begins"),
        (lambda index: change(index, 0, (900).to_bytes(4, "big")), "does not come after"),
        (lambda index: index.write_bytes(index.read_bytes()[:-3]), "not a multiple of 8"),
        (lambda index: index.unlink(), "it has no .index"),
    ],
)
def test_an_index_that_leads_astray_is_found(
    directory: Path, damage: Callable[[Path], None], expected: str
) -> None:
    damage(directory / f"{0:020d}.index")
    assert any(expected in each for each in problems(directory))


def test_a_time_index_that_hides_younger_records_is_found(directory: Path) -> None:
    path = directory / f"{0:020d}.timeindex"
    change(path, 0, (NOW - 5).to_bytes(8, "big"))
    assert any("nothing up to offset" in each for each in problems(directory))


def test_a_time_index_that_promises_younger_records_is_found(directory: Path) -> None:
    path = directory / f"{0:020d}.timeindex"
    *_, (timestamp, offset) = read_time_index(path, 0).entries
    change(path, len(path.read_bytes()) - 12, (timestamp + 1).to_bytes(8, "big"))
    assert problems(directory) == [
        f"{path.name}: nothing up to offset {offset} is of {timestamp + 1}, as it says"
    ]


def test_the_padding_of_a_running_kafka_is_not_taken_for_entries(directory: Path) -> None:
    offsets, times = directory / f"{0:020d}.index", directory / f"{0:020d}.timeindex"
    expected = read_offset_index(offsets, 0).entries, read_time_index(times, 0).entries
    assert expected[0] and expected[1]
    for path, size in ((offsets, 10_485_760), (times, 10_485_756)):
        path.write_bytes(path.read_bytes().ljust(size, b"\0"))
    assert (read_offset_index(offsets, 0).entries, read_time_index(times, 0).entries) == expected
    assert read_offset_index(offsets, 0).unused_bytes == 10_485_760 - 8 * len(expected[0])
    assert problems(directory) == []


def test_damaged_snapshots_and_epochs_are_found(directory: Path) -> None:
    change(max(directory.glob("*.snapshot")), 3, b"\x99")
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n5 0\n")
    found = problems(directory)
    assert any("the checksum is wrong" in each for each in found)
    assert any("leader-epoch-checkpoint has 5" in each for each in found)


def test_offsets_that_go_back_are_found(directory: Path) -> None:
    first = first_log(directory)
    found = list(Walk(first))
    change(first, found[3].position, (1).to_bytes(8, "big"))
    assert any("but offset 2 was already there" in each for each in problems(directory))


def test_an_aborted_transaction_is_checked_against_its_marker(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    log = open_log(path)
    log.append(transactional(b"a", b"b", producer=7, sequence=0), 0, NOW)
    end_transaction(log, 7, commit=False)
    log.write()
    log.close(NOW)
    assert problems(path) == []
    index = path / f"{0:020d}.txnindex"
    entry = index.read_bytes()
    for position, value, expected in (
        (2, 8, "no abort marker of producer 8"),
        (10, 5, "is after its marker at 2"),
        (18, 9, "offset 9 of a marker is not in this segment"),
    ):
        index.write_bytes(entry)
        change(index, position, value.to_bytes(8, "big"))
        assert any(expected in each for each in problems(path))


def test_damage_to_the_files_of_the_metadata_log_is_found(directory: Path) -> None:
    (directory / "quorum-state").write_text('{"leaderEpoch": 1}')
    snapshot = directory / "00000000000000000000-0000000001.checkpoint"
    snapshot.write_bytes(first_log(directory).read_bytes())
    assert problems(directory) == []
    (directory / "quorum-state").write_text("[]")
    change(snapshot, 100, b"?")
    found = problems(directory)
    assert any(each.startswith("quorum-state: ") for each in found)
    assert any(each.startswith(f"{snapshot.name}: the batch at byte 0: the checksum") for each in found)


@pytest.mark.parametrize("offset", [0, 1, 9, 17, COUNT - 1])
def test_a_lookup_by_offset_ends_at_the_record_and_reads_little(directory: Path, offset: int) -> None:
    lookup = find_offset(read_partition_directory(directory), offset)
    assert lookup.record is not None and lookup.record.offset == offset
    assert lookup.record.value is not None and lookup.record.value.startswith(b"%d" % offset)
    assert lookup.segment is not None and lookup.segment <= offset
    # An entry for every second record, so the walk never passes more than three batches.
    assert len(lookup.scanned) <= 3
    assert lookup.scanned[0].position == lookup.position


def test_a_lookup_past_the_end_or_before_the_start_finds_nothing(directory: Path) -> None:
    assert find_offset(read_partition_directory(directory), COUNT).record is None
    first_log(directory).unlink()
    assert find_offset(read_partition_directory(directory), 0).segment is None


def test_a_lookup_that_damage_stops_says_so(directory: Path) -> None:
    index = directory / f"{0:020d}.index"
    (offset, position), *_ = read_offset_index(index, 0).entries
    entry = index.read_bytes()
    change(index, 4, b"\xff" * 4)
    assert find_offset(read_partition_directory(directory), offset).problem == (
        "the index leads to byte -1, where the segment is not"
    )
    index.write_bytes(entry)
    change(first_log(directory), position + 61, b"\xff")  # the length of its only record
    lookup = find_offset(read_partition_directory(directory), offset)
    assert lookup.record is None
    assert lookup.problem is not None and f"the batch at byte {position} is damaged" in lookup.problem


@pytest.mark.parametrize(("milliseconds", "expected"), [(-5, 0), (0, 0), (1, 1), (15_500, 16), (34_000, 34)])
def test_a_lookup_by_time_finds_the_first_record_that_is_young_enough(
    directory: Path, milliseconds: int, expected: int
) -> None:
    lookup = find_time(read_partition_directory(directory), NOW + milliseconds)
    assert lookup.record is not None and lookup.record.offset == expected


def test_a_lookup_by_time_agrees_with_the_log_where_timestamps_go_back(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    log = open_log(path, **SMALL_SEGMENTS)
    stamps = [NOW + (number * 7919) % 40 * 1000 for number in range(COUNT)]
    for number, stamp in enumerate(stamps):
        append(log, b"%d" % number + bytes(1000), timestamp=stamp)
    log.write()
    log.close(NOW)
    found = read_partition_directory(path)
    for moment in range(NOW - 500, NOW + 41_000, 500):
        expected = next((offset for offset, stamp in enumerate(stamps) if stamp >= moment), None)
        record = find_time(found, moment).record
        assert (None if record is None else record.offset) == expected


def test_a_lookup_by_time_past_the_youngest_finds_nothing(directory: Path) -> None:
    lookup = find_time(read_partition_directory(directory), NOW + 10**6)
    assert lookup.segment is None and lookup.record is None


def test_files_are_told_apart_by_their_names() -> None:
    assert kind_of("00000000000000000029.snapshot") is Kind.PRODUCER_SNAPSHOT
    assert kind_of("00000000000000000283-0000000001.checkpoint") is Kind.METADATA_SNAPSHOT
    assert kind_of("replication-offset-checkpoint") is Kind.OFFSET_CHECKPOINT
    assert kind_of("00000000000000000029.log.deleted") is Kind.LEFTOVER
    assert kind_of("notes.txt") is Kind.UNKNOWN


def test_a_log_directory_is_told_from_a_partition(directory: Path) -> None:
    assert is_partition_directory(directory) and not is_partition_directory(directory.parent)
    (found,) = partition_directories(directory.parent)
    assert found.topic == "orders"
