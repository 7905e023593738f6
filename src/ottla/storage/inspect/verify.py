"""Whether the files of a partition are right: checksums, order, and that indexes lead where they should."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ottla.protocol.batch import read_header
from ottla.protocol.control import read_end_transaction
from ottla.protocol.errors import KafkaError
from ottla.storage.epochs import CorruptEpochs, parse_epochs
from ottla.storage.inspect.batches import Walk, batch_problem, read_batch
from ottla.storage.inspect.directory import Kind, PartitionDirectory, SegmentFiles, kind_of
from ottla.storage.inspect.indexes import (
    IndexEntries,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from ottla.storage.inspect.summary import NO_OFFSET, SegmentSummary, summarize
from ottla.storage.partition_metadata import PartitionMetadataError, parse_partition_metadata
from ottla.storage.producer_snapshot import CorruptSnapshot, decode_snapshot
from ottla.storage.transaction_index import AbortedEntry


class Problem(NamedTuple):
    file: str
    what: str


def verify_partition(directory: PartitionDirectory) -> list[Problem]:
    problems = list(_small_files(directory))
    epochs = _epochs(directory)
    before: SegmentSummary | None = None
    for number, segment in enumerate(directory.segments):
        # The indexes first: a running broker goes on writing, and indexes what is in the log already.
        indexes = _Indexes.of(segment)
        summary = summarize(segment)
        is_last = number == len(directory.segments) - 1
        after = None if is_last else directory.segments[number + 1].base_offset
        problems += _segment(segment, summary, before, after)
        problems += _batches(segment, summary)
        problems += _leader_epochs(segment, summary, epochs)
        problems += _offset_index(segment, summary, indexes)
        problems += _time_index(segment, summary, indexes)
        problems += _transaction_index(segment, summary, indexes)
        before = summary
    return problems


class _Indexes(NamedTuple):
    """The indexes of a segment; None where the file is missing."""

    offsets: IndexEntries | None
    times: IndexEntries | None
    aborted: tuple[list[AbortedEntry], str | None] | None

    @classmethod
    def of(cls, segment: SegmentFiles) -> _Indexes:
        offsets, times = segment.files.get(Kind.OFFSET_INDEX), segment.files.get(Kind.TIME_INDEX)
        aborted = segment.files.get(Kind.TRANSACTION_INDEX)
        return cls(
            None if offsets is None else read_offset_index(offsets, segment.base_offset),
            None if times is None else read_time_index(times, segment.base_offset),
            None if aborted is None else read_transaction_index(aborted),
        )


def _segment(
    segment: SegmentFiles, summary: SegmentSummary, before: SegmentSummary | None, next_base: int | None
) -> Iterator[Problem]:
    name = segment.log.name
    if summary.problem is not None:
        yield Problem(name, summary.problem)
    if summary.first_offset != NO_OFFSET and summary.first_offset < segment.base_offset:
        yield Problem(name, f"its first offset is {summary.first_offset}, before the one in its name")
    if next_base is not None and summary.last_offset >= next_base:
        yield Problem(
            name, f"its last offset {summary.last_offset} is past {next_base}, where the next begins"
        )
    for earlier, later in pairwise(summary.batches):
        if later.header.base_offset <= earlier.header.last_offset:
            yield Problem(
                name,
                f"the batch at byte {later.position} begins with offset {later.header.base_offset}, "
                f"but offset {earlier.header.last_offset} was already there",
            )
        epoch, epoch_before = later.header.partition_leader_epoch, earlier.header.partition_leader_epoch
        if epoch < epoch_before:
            what = f"is of leader epoch {epoch}, after one of {epoch_before}"
            yield Problem(name, f"the batch at byte {later.position} {what}")


def _batches(segment: SegmentFiles, summary: SegmentSummary) -> Iterator[Problem]:
    for found in summary.batches:
        problem = batch_problem(read_batch(segment.log, found))
        if problem is not None:
            header = found.header
            where = (
                f"the batch at byte {found.position} (offsets {header.base_offset} to {header.last_offset})"
            )
            yield Problem(segment.log.name, f"{where}: {problem}")


def _leader_epochs(
    segment: SegmentFiles, summary: SegmentSummary, epochs: list[tuple[int, int]]
) -> Iterator[Problem]:
    told = set()
    newest = max((epoch for epoch, _ in epochs), default=-1)
    for found in summary.batches:
        header = found.header
        expected = max((epoch for epoch, start in epochs if start <= header.base_offset), default=None)
        epoch = header.partition_leader_epoch
        if epoch > newest:
            continue  # the file follows with the next flush, and a broker that was killed had none
        if expected is not None and epoch != expected and (epoch, expected) not in told:
            told.add((epoch, expected))
            yield Problem(
                segment.log.name,
                f"the batch at offset {header.base_offset} is of leader epoch {epoch}, "
                f"where leader-epoch-checkpoint has {expected}",
            )


def _offset_index(segment: SegmentFiles, summary: SegmentSummary, indexes: _Indexes) -> Iterator[Problem]:
    index = indexes.offsets
    if index is None:
        yield Problem(segment.log.name, "it has no .index; the next start of the broker makes one")
        return
    path = segment.files[Kind.OFFSET_INDEX]
    if index.problem is not None:
        yield Problem(path.name, index.problem)
    starts = {found.position: found.header for found in summary.batches}
    for earlier, later in pairwise(index.entries):
        if later[0] <= earlier[0] or later[1] <= earlier[1]:
            yield Problem(path.name, f"entry {later} does not come after {earlier}")
    for offset, position in index.entries:
        header = starts.get(position)
        if header is None:
            yield Problem(path.name, f"offset {offset} leads to byte {position}, where no batch begins")
        elif not header.base_offset <= offset <= header.last_offset:
            yield Problem(
                path.name,
                f"offset {offset} leads to byte {position}, where offsets {header.base_offset} "
                f"to {header.last_offset} are",
            )


def _time_index(segment: SegmentFiles, summary: SegmentSummary, indexes: _Indexes) -> Iterator[Problem]:
    index = indexes.times
    if index is None:
        yield Problem(segment.log.name, "it has no .timeindex; the next start of the broker makes one")
        return
    path = segment.files[Kind.TIME_INDEX]
    if index.problem is not None:
        yield Problem(path.name, index.problem)
    for earlier, later in pairwise(index.entries):
        if later[0] <= earlier[0] or later[1] < earlier[1]:
            yield Problem(path.name, f"entry {later} does not come after {earlier}")
    is_whole = summary.problem is None and bool(summary.batches)
    for timestamp, offset, before, reached in _with_greatest(index.entries, summary):
        if before > timestamp:
            yield Problem(
                path.name,
                f"it says that nothing up to offset {offset} is younger than {timestamp}, but {before} is",
            )
        if offset > summary.last_offset and is_whole:
            yield Problem(path.name, f"it mentions offset {offset}, past the end of its segment")
        elif reached < timestamp and is_whole:
            yield Problem(path.name, f"nothing up to offset {offset} is of {timestamp}, as it says")


def _with_greatest(
    entries: list[tuple[int, int]], summary: SegmentSummary
) -> Iterator[tuple[int, int, int, int]]:
    """Each entry of a time index, with the greatest timestamp of the batches that end by its offset, and of
    those that begin by it. An entry may name the last offset of a batch, or of the very record in it."""
    by_end, by_start = iter(summary.batches), iter(summary.batches)
    ending, starting = next(by_end, None), next(by_start, None)
    ended = started = -1
    for timestamp, offset in entries:
        while ending is not None and ending.header.last_offset <= offset:
            ended = max(ended, ending.header.max_timestamp)
            ending = next(by_end, None)
        while starting is not None and starting.header.base_offset <= offset:
            started = max(started, starting.header.max_timestamp)
            starting = next(by_start, None)
        yield timestamp, offset, ended, started


def _transaction_index(
    segment: SegmentFiles, summary: SegmentSummary, indexes: _Indexes
) -> Iterator[Problem]:
    if indexes.aborted is None:
        return
    path = segment.files[Kind.TRANSACTION_INDEX]
    entries, problem = indexes.aborted
    if problem is not None:
        yield Problem(path.name, problem)
    for earlier, later in pairwise(entries):
        if later.last_offset <= earlier.last_offset:
            yield Problem(path.name, f"entry {tuple(later)} does not come after {tuple(earlier)}")
    by_offset = {found.header.last_offset: found for found in summary.batches if found.header.is_control}
    for entry in entries:
        found = by_offset.get(entry.last_offset)
        if not segment.base_offset <= entry.last_offset or (
            entry.last_offset > summary.last_offset and summary.problem is None
        ):
            yield Problem(path.name, f"offset {entry.last_offset} of a marker is not in this segment")
            continue
        if entry.first_offset > entry.last_offset:
            first = f"offset {entry.first_offset}, where the transaction began"
            yield Problem(path.name, f"{first}, is after its marker at {entry.last_offset}")
        if found is None:
            # Compaction removes markers, and leaves the index as it is.
            continue
        data = read_batch(segment.log, found)
        if not _is_abort(data, entry.producer_id):
            yield Problem(
                path.name, f"offset {entry.last_offset} is no abort marker of producer {entry.producer_id}"
            )


def _is_abort(data: bytes, producer_id: int) -> bool:
    try:
        marker = read_end_transaction(data)
    except KafkaError:
        return False
    if marker is None:
        return read_header(data).record_count == 0
    return marker.producer_id == producer_id and not marker.commit


def _epochs(directory: PartitionDirectory) -> list[tuple[int, int]]:
    for path in directory.files:
        if kind_of(path.name) is Kind.LEADER_EPOCHS:
            try:
                return parse_epochs(path.read_bytes())
            except CorruptEpochs:
                return []
    return []


def _small_files(directory: PartitionDirectory) -> Iterator[Problem]:
    for path in directory.files:
        problem = small_file_problem(path)
        if problem is not None:
            yield Problem(path.name, problem)
        base = path.name[:20]
        if kind_of(path.name) in (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX) and not any(
            segment.base_offset == int(base) for segment in directory.segments
        ):
            yield Problem(path.name, "it has no .log; the next start of the broker removes it")


def small_file_problem(path: Path) -> str | None:
    """What is wrong with a snapshot or a file of text; None where nothing is, or nothing is known."""
    try:
        match kind_of(path.name):
            case Kind.PRODUCER_SNAPSHOT:
                decode_snapshot(path.read_bytes())
            case Kind.LEADER_EPOCHS:
                parse_epochs(path.read_bytes())
            case Kind.PARTITION_METADATA:
                parse_partition_metadata(path.read_bytes())
            case Kind.METADATA_SNAPSHOT:
                return _metadata_snapshot_problem(path)
            case Kind.QUORUM_STATE:
                if not isinstance(json.loads(path.read_bytes()), dict):
                    return "it holds no object of JSON"
    except (CorruptSnapshot, CorruptEpochs, PartitionMetadataError, ValueError) as error:
        return str(error)
    return None


def _metadata_snapshot_problem(path: Path) -> str | None:
    walk = Walk(path)
    for found in walk:
        problem = batch_problem(read_batch(path, found))
        if problem is not None:
            return f"the batch at byte {found.position}: {problem}"
    return walk.problem
