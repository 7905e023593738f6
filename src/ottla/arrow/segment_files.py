"""Finding things in the files of a segment through its indexes, which are believed only as hints.

An index may lag behind its log, be missing, or end in the zeros that Kafka sets aside; then more batches are
walked. A position that an index gives is used if a batch is there that may be the one.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from pathlib import Path
from struct import Struct
from typing import Final

from ottla.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, read_header
from ottla.protocol.columns import walk
from ottla.protocol.errors import KafkaError
from ottla.storage import offset_index, time_index
from ottla.storage.inspect.batches import Walk
from ottla.storage.inspect.directory import Kind, SegmentFiles

_NO_END: Final = (1 << 63) - 1
_SMALLEST_MESSAGE: Final = 14
_MAGIC_AT: Final = 16


def floor_entry(path: Path | None, entry: Struct, bound: int) -> tuple[int, int] | None:
    """The last entry of an index whose first number is not above `bound`."""
    if path is None:
        return None
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None

    def first(number: int) -> int:
        at: tuple[int, int] = entry.unpack_from(data, number * entry.size)
        # Zeros are no entry, save in the first place: there they say that the first batch is the first.
        return at[0] if number == 0 or any(at) else _NO_END

    numbers = range(len(data) // entry.size)
    number = bisect_right(numbers, bound, key=first) - 1
    if number < 0:
        return None
    found: tuple[int, int] = entry.unpack_from(data, number * entry.size)
    return found


def walk_from(segment: SegmentFiles, offset: int) -> Walk:
    """A walk over batches that begins shortly before the one with `offset`, or at it."""
    found = floor_entry(
        segment.files.get(Kind.OFFSET_INDEX), offset_index.ENTRY, offset - segment.base_offset
    )
    if found is not None and found[1] > 0 and _is_batch(segment, found[1], segment.base_offset + found[0]):
        return Walk(segment.log, found[1])
    return Walk(segment.log)


def _is_batch(segment: SegmentFiles, position: int, last_offset: int) -> bool:
    with segment.log.open("rb") as file:
        data = os.pread(file.fileno(), HEADER_SIZE, position)
    try:
        return read_header(data).last_offset == last_offset
    except KafkaError:
        return False


def greatest_timestamp(segment: SegmentFiles, *, is_active: bool) -> int:
    """The greatest timestamp of a segment, -1 if it has none."""
    if not is_active:
        found = floor_entry(segment.files.get(Kind.TIME_INDEX), time_index.ENTRY, _NO_END - 1)
        if found is not None and any(found):
            return found[0]
    return max((found.header.max_timestamp for found in Walk(segment.log)), default=-1)


def time_floor(segment: SegmentFiles, timestamp: int) -> int:
    """An offset before which nothing in the segment is as young as `timestamp`."""
    found = floor_entry(segment.files.get(Kind.TIME_INDEX), time_index.ENTRY, timestamp - 1)
    return segment.base_offset if found is None else segment.base_offset + found[1]


def whole_batches(data: memoryview) -> tuple[int, int]:
    """How far whole batches reach, those of formats before version 2 as well, and the offset after them."""
    position, next_offset = 0, -1
    while True:
        _, position, found = walk(data, position, 0, _NO_END, 0, False)
        next_offset = max(next_offset, found)
        head = data[position : position + LOG_OVERHEAD + _SMALLEST_MESSAGE]
        if len(head) < LOG_OVERHEAD + _SMALLEST_MESSAGE or head[_MAGIC_AT] > 1:
            return position, next_offset
        length = int.from_bytes(head[8:LOG_OVERHEAD], "big")
        if length < _SMALLEST_MESSAGE or length > len(data) - position - LOG_OVERHEAD:
            return position, next_offset
        # A message, or a wrapper, which has the offset of the last message in it.
        next_offset = int.from_bytes(head[:8], "big", signed=True) + 1
        position += LOG_OVERHEAD + length
