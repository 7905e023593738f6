"""Records to columns and back in Python: what `_columns.pyx` does, for an install without a compiler.

The columns are plain buffers in Arrow's layout: int64 and int32 values, for bytes int32 offsets into data
and a bitmap of what is not null. Nothing here knows Arrow; `ottla.arrow` puts the buffers together. Both
twins give equal results for any bytes whatever, and the tests hold them to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from struct import Struct
from typing import Any, Final, NamedTuple, cast

from crc32c import crc32c

from ottla.core.files import Buffer
from ottla.protocol import _kernel_py

# Which columns to fill.
KEY: Final = 1
VALUE: Final = 2
OFFSET: Final = 4
TIMESTAMP: Final = 8
TIMESTAMP_TYPE: Final = 16
HEADERS: Final = 32

# Why a walk stopped.
ENDED: Final = 0
SPECIAL: Final = 1
OLD_FORMAT: Final = 2
ENOUGH: Final = 3
BAD_HEADER: Final = 4
BAD_CRC: Final = 5

# The type of timestamps, as Kafka numbers them.
NO_TIMESTAMP_TYPE: Final = -1
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

MOST_BYTES: Final = 0x7FFF_FFFF
"""What can be added before it has to be taken, so that an int32 can count it."""

_HEADER: Final = Struct(">qiiBIhiqqqhii")
_STAMPED: Final = 0x08
_MOST_BASE_OFFSET: Final = (1 << 63) - (1 << 32)
_MOST_MILLISECONDS: Final = ((1 << 63) - 1) // 1000


Allocate = Callable[[int], Any]


class BinaryColumn(NamedTuple):
    """Bytes or nothing, per row. `validity` is None where nothing is null."""

    null_count: int
    validity: Buffer | None
    offsets: Buffer
    data: Buffer


class HeaderColumn(NamedTuple):
    """Lists of pairs; `offsets` says where each row's begin and end among all `pairs`."""

    offsets: Buffer
    pairs: int
    key_offsets: Buffer
    key_data: Buffer
    is_ascii: bool
    values: BinaryColumn


class Taken(NamedTuple):
    """The columns of `rows` records; None for those that were not wanted."""

    rows: int
    key: BinaryColumn | None
    value: BinaryColumn | None
    offset: Buffer | None
    timestamp: Buffer | None
    timestamp_type: Buffer | None
    headers: HeaderColumn | None


def walk(
    buffer: Buffer,
    start: int,
    first_offset: int,
    end_offset: int,
    special: int,
    verify: bool,
    most_bytes: int = MOST_BYTES,
) -> tuple[int, int, int]:
    """Passes over whole batches of version 2 from `start` on, and says where and why that ended.

    Returns (reason, position, next_offset); next_offset is the last offset of the batches passed plus one,
    or -1 if there were none. It ends

    - ENDED: where no whole batch is left,
    - SPECIAL: at a batch of which one of the attributes `special` is set,
    - OLD_FORMAT: at a message of format 0 or 1,
    - ENOUGH: when `most_bytes` would be exceeded, though never before the first batch,
    - BAD_HEADER: at something that cannot be a batch,
    - BAD_CRC: at a batch whose CRC is wrong; looked at if `verify`, in batches with an offset from
      `first_offset` to before `end_offset`.
    """
    view = memoryview(buffer).cast("B")
    size = len(view)
    position = start
    next_offset = -1
    while True:
        left = size - position
        if left < 17:
            return ENDED, position, next_offset
        if view[position + 16] < 2:
            return OLD_FORMAT, position, next_offset
        if view[position + 16] > 2:
            return BAD_HEADER, position, next_offset
        if left < _HEADER.size:
            return ENDED, position, next_offset
        header = _HEADER.unpack_from(view, position)
        base_offset, length, _, _, crc, attributes, last_offset_delta = header[:7]
        if length < 49 or last_offset_delta < 0 or not 0 <= base_offset <= _MOST_BASE_OFFSET:
            return BAD_HEADER, position, next_offset
        if 12 + length > left:
            return ENDED, position, next_offset
        if attributes & special:
            return SPECIAL, position, next_offset
        if position > start and position + 12 + length - start > most_bytes:
            return ENOUGH, position, next_offset
        end = position + 12 + length
        last_offset = base_offset + last_offset_delta
        if (
            verify
            and last_offset >= first_offset
            and base_offset < end_offset
            and crc32c(view[position + 21 : end]) != crc
        ):
            return BAD_CRC, position, next_offset
        position = end
        next_offset = last_offset + 1


class Columns:
    """Columns as they grow. `add` and `add_section` fill them, `take` hands them over and starts anew."""

    def __init__(self, wanted: int, allocate: Allocate) -> None:
        """`allocate` makes the buffers; memory that was used before is several times as fast as new memory.

        Its buffers have `resize(size, shrink_to_fit=False)`, as Arrow's do. Only the compiled twin uses it.
        """
        self.wanted = wanted
        self._clear()

    def _clear(self) -> None:
        self.rows = 0
        self.size = 0  # bytes of records that were added, which bounds every column
        self._keys: list[Buffer | None] = []
        self._values: list[Buffer | None] = []
        self._offsets = array("q")
        self._timestamps = array("q")
        self._timestamp_types = array("i")
        self._header_counts = array("i")
        self._header_keys: list[Buffer | None] = []
        self._header_values: list[Buffer | None] = []

    def add(
        self, buffer: Buffer, start: int, end: int, first_offset: int, end_offset: int
    ) -> tuple[int, int, int]:
        """The records of the batches that a `walk` from `start` to `end` has passed, none of them compressed.

        Records before `first_offset` and from `end_offset` on are left out, and batches that have no others
        are not looked into. Returns (fault, position of the batch, index of the record), with the faults of
        `_kernel_py`; after a fault the columns are of no use. Raises ValueError for a range that is not made
        of whole batches.
        """
        view = memoryview(buffer).cast("B")
        _check_batches(view, start, end)
        self._grow(end - start)
        position = start
        while position < end:
            header = _HEADER.unpack_from(view, position)
            after = position + 12 + header[1]
            if header[0] + header[6] >= first_offset and header[0] < end_offset:
                is_stamped = bool(header[5] & _STAMPED)
                fault, index = self._add(
                    view[position + _HEADER.size : after],
                    header[12],
                    header[0],
                    header[8] if is_stamped else header[7],
                    LOG_APPEND_TIME if is_stamped else CREATE_TIME,
                    first_offset,
                    end_offset,
                )
                if fault:
                    return fault, position, index
            position = after
        return _kernel_py.NO_FAULT, position, -1

    def add_section(
        self,
        section: Buffer,
        count: int,
        base_offset: int,
        base_timestamp: int,
        timestamp_type: int,
        first_offset: int,
        end_offset: int,
    ) -> tuple[int, int]:
        """The `count` records of an uncompressed section. Returns (fault, index of the record).

        With LOG_APPEND_TIME all have the base timestamp.
        """
        self._grow(len(section))
        return self._add(
            memoryview(section).cast("B"),
            count,
            base_offset,
            base_timestamp,
            timestamp_type,
            first_offset,
            end_offset,
        )

    def _grow(self, size: int) -> None:
        if self.size + size > MOST_BYTES:
            raise OverflowError("more bytes than an int32 can count; take the columns first")
        self.size += size

    def _add(
        self,
        section: memoryview,
        count: int,
        base_offset: int,
        base_timestamp: int,
        timestamp_type: int,
        first_offset: int,
        end_offset: int,
    ) -> tuple[int, int]:
        fault, index, found = _kernel_py.columns(section, count)
        if fault:
            return fault, index
        _, _, offset_deltas, timestamp_deltas, keys, key_lengths, values, value_lengths, headers, counts = (
            found
        )
        for i in range(count):
            offset = _kernel_py.wrapped(base_offset + offset_deltas[i])
            if not first_offset <= offset < end_offset:
                continue
            self.rows += 1
            if self.wanted & OFFSET:
                self._offsets.append(offset)
            if self.wanted & TIMESTAMP:
                timestamp = base_timestamp
                if timestamp_type != LOG_APPEND_TIME:
                    timestamp = _kernel_py.wrapped(timestamp + timestamp_deltas[i])
                self._timestamps.append(microseconds(timestamp))
            if self.wanted & TIMESTAMP_TYPE:
                self._timestamp_types.append(timestamp_type)
            if self.wanted & KEY:
                self._keys.append(_part(section, keys[i], key_lengths[i]))
            if self.wanted & VALUE:
                self._values.append(_part(section, values[i], value_lengths[i]))
            if self.wanted & HEADERS:
                self._header_counts.append(counts[i])
                self._add_headers(section, headers[i], counts[i])
        return _kernel_py.NO_FAULT, -1

    def _add_headers(self, section: memoryview, position: int, count: int) -> None:
        end = len(section)
        for _ in range(count):
            for parts in (self._header_keys, self._header_values):
                length, position = _kernel_py._varint(section, position, end)
                parts.append(_part(section, position, length))
                position += max(length, 0)

    def take(self) -> Taken:
        """What was added since the last time."""
        wanted = self.wanted
        taken = Taken(
            self.rows,
            _binary(self._keys) if wanted & KEY else None,
            _binary(self._values) if wanted & VALUE else None,
            _bytes_of(self._offsets) if wanted & OFFSET else None,
            _bytes_of(self._timestamps) if wanted & TIMESTAMP else None,
            _bytes_of(self._timestamp_types) if wanted & TIMESTAMP_TYPE else None,
            self._take_headers() if wanted & HEADERS else None,
        )
        self._clear()
        return taken

    def _take_headers(self) -> HeaderColumn:
        keys = _binary(self._header_keys)
        return HeaderColumn(
            _bytes_of(array("i", accumulate(self._header_counts, initial=0))),
            len(self._header_keys),
            keys.offsets,
            keys.data,
            bytes(keys.data).isascii(),
            _binary(self._header_values),
        )


def _check_batches(view: memoryview, start: int, end: int) -> None:
    if start < 0 or end < start or end > len(view):
        raise ValueError(f"range {start}:{end} is outside a buffer of {len(view)} bytes")
    while start < end:
        size = 12 + int.from_bytes(view[start + 8 : start + 12], "big", signed=True)
        if end - start < _HEADER.size or not _HEADER.size <= size <= end - start:
            raise ValueError(f"there is no whole batch at {start}")
        start += size


def microseconds(milliseconds: int) -> int:
    """A timestamp in Arrow's unit, or the nearest there is: Kafka lets pass any 64-bit number."""
    if -_MOST_MILLISECONDS <= milliseconds <= _MOST_MILLISECONDS:
        return milliseconds * 1000
    return (_MOST_MILLISECONDS if milliseconds > 0 else -_MOST_MILLISECONDS) * 1000


def _part(section: memoryview, start: int, length: int) -> memoryview | None:
    return None if length < 0 else section[start : start + length]


def _bytes_of(numbers: array[int]) -> Buffer:
    return memoryview(numbers).cast("B")


def _binary(parts: Sequence[Buffer | None]) -> BinaryColumn:
    nulls = sum(1 for part in parts if part is None)
    validity = _bitmap(part is not None for part in parts) if nulls else None
    present = [b"" if part is None else part for part in parts] if nulls else cast("Sequence[Buffer]", parts)
    offsets = array("i", accumulate(map(len, present), initial=0))
    return BinaryColumn(nulls, validity, _bytes_of(offsets), b"".join(present))


def _bitmap(bits: Iterable[bool]) -> bytearray:
    bitmap = bytearray()
    for index, bit in enumerate(bits):
        if not index & 7:
            bitmap.append(0)
        if bit:
            bitmap[-1] |= 1 << (index & 7)
    return bitmap
