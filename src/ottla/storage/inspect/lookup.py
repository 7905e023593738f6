"""How a broker finds an offset or a moment in the files, step by step, done over again to be shown.

The same search that `storage.segments` and `storage.segment` make, except that it keeps what it looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ottla.protocol.batch import Record, read_records
from ottla.protocol.errors import KafkaError
from ottla.storage.inspect.batches import FoundBatch, Walk, read_batch
from ottla.storage.inspect.directory import Kind, PartitionDirectory, SegmentFiles
from ottla.storage.inspect.indexes import read_offset_index, read_time_index
from ottla.storage.inspect.summary import summarize


class Probe(NamedTuple):
    """One step of a binary search: the entry looked at, and whether it was not too far."""

    number: int
    entry: tuple[int, int]
    is_floor: bool


@dataclass(slots=True)
class Search:
    """A binary search for the last entry that is not after a bound."""

    count: int
    probes: list[Probe] = field(default_factory=list)
    found: tuple[int, int] | None = None


@dataclass(slots=True)
class Lookup:
    """Where the search went. A step that was not needed, or not possible, is None."""

    wanted: int
    by_time: bool
    segments: list[int]
    segment: int | None = None
    # The greatest timestamp of each segment up to the chosen one, for a search by time.
    passed: list[tuple[int, int]] = field(default_factory=list)
    time_index: Search | None = None
    offset_index: Search | None = None
    position: int = 0
    scanned: list[FoundBatch] = field(default_factory=list)
    scanned_bytes: int = 0
    segment_bytes: int = 0
    batch: FoundBatch | None = None
    record: Record | None = None
    # What is damaged on the way, if the search could not end for it.
    problem: str | None = None


def find_offset(directory: PartitionDirectory, offset: int) -> Lookup:
    lookup = Lookup(offset, False, [segment.base_offset for segment in directory.segments])
    chosen = None
    for segment in directory.segments:
        if segment.base_offset <= offset:
            chosen = segment
    if chosen is None:
        return lookup
    lookup.segment = chosen.base_offset
    _scan(lookup, chosen, offset, None)
    return lookup


def find_time(directory: PartitionDirectory, timestamp: int) -> Lookup:
    """The first record that is not older than `timestamp`."""
    lookup = Lookup(timestamp, True, [segment.base_offset for segment in directory.segments])
    for segment in directory.segments:
        greatest = _greatest_timestamp(segment)
        lookup.passed.append((segment.base_offset, greatest))
        if greatest < timestamp:
            continue
        lookup.segment = segment.base_offset
        start = segment.base_offset
        path = segment.files.get(Kind.TIME_INDEX)
        if path is not None:
            # Nothing up to the entry before the moment is young enough.
            lookup.time_index = _floor(read_time_index(path, segment.base_offset).entries, timestamp - 1)
            if lookup.time_index.found is not None:
                start = lookup.time_index.found[1]
        _scan(lookup, segment, start, timestamp)
        if lookup.record is not None or lookup.problem is not None:
            break
    return lookup


def _greatest_timestamp(segment: SegmentFiles) -> int:
    """From the batches: the time index of an active segment may lag behind them."""
    return summarize(segment).max_timestamp


def _scan(lookup: Lookup, segment: SegmentFiles, offset: int, timestamp: int | None) -> None:
    """From the batch that the offset index gives on, by headers, to the batch and the record."""
    path = segment.files.get(Kind.OFFSET_INDEX)
    lookup.position = 0
    lookup.segment_bytes = segment.log.stat().st_size
    if path is not None:
        lookup.offset_index = _floor(read_offset_index(path, segment.base_offset).entries, offset)
        if lookup.offset_index.found is not None:
            lookup.position = lookup.offset_index.found[1]
    if not 0 <= lookup.position <= lookup.segment_bytes:
        lookup.problem = f"the index leads to byte {lookup.position}, where the segment is not"
        return
    walk = Walk(segment.log, lookup.position)
    for found in walk:
        lookup.scanned.append(found)
        lookup.scanned_bytes = found.end_position - lookup.position
        header = found.header
        if header.last_offset < offset or (timestamp is not None and header.max_timestamp < timestamp):
            continue
        try:
            record = _first(segment.log, found, offset, timestamp)
        except KafkaError as error:
            lookup.batch, lookup.problem = found, f"the batch at byte {found.position} is damaged: {error}"
            return
        if record is not None or timestamp is None:
            lookup.batch, lookup.record = found, record
            return
    lookup.problem = walk.problem


def _first(path: Path, found: FoundBatch, offset: int, timestamp: int | None) -> Record | None:
    for record in read_records(read_batch(path, found)):
        if record.offset >= offset and (timestamp is None or record.timestamp >= timestamp):
            return record
    return None


def _floor(entries: list[tuple[int, int]], bound: int) -> Search:
    search = Search(len(entries))
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        is_floor = entries[middle][0] <= bound
        search.probes.append(Probe(middle, entries[middle], is_floor))
        if is_floor:
            low = middle + 1
            search.found = entries[middle]
        else:
            high = middle
    return search
