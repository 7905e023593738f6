"""Columns to records in Python: the other half of what `_columns.pyx` does. See `_columns_py`.

Columns come as buffers in Arrow's layout. Row numbers and offsets are compared with the length of what they
point into, so that a wrong one is an IndexError and never a look at other memory.
"""

from __future__ import annotations

from array import array
from struct import Struct
from typing import Final, NamedTuple

from ottla.core.files import Buffer
from ottla.protocol._kernel_py import wrapped

HEADER_SIZE: Final = 61

# So that a batch of it alone has a length that an int32 can count.
_MOST_RECORD_BYTES: Final = 0x7FFF_FFFF - HEADER_SIZE - 5

_MASK: Final = 0xFFFF_FFFF
_M: Final = 0x5BD1_E995
_SEED: Final = 0x9747_B28C
_WORD: Final = Struct("<I")


class BinarySource(NamedTuple):
    """A column of bytes: `length` rows of the buffers, from row `first` on. Large ones have int64 offsets."""

    length: int
    first: int
    validity: Buffer | None
    offsets: Buffer
    data: Buffer
    is_large: bool = False


class HeaderSource(NamedTuple):
    """A column of headers: lists (with int32 offsets) into two columns of equal length."""

    length: int
    first: int
    validity: Buffer | None
    offsets: Buffer
    keys: BinarySource
    values: BinarySource


class HeaderWithoutKey(ValueError):
    """A header's key is null, which Kafka does not allow."""


class _Binary:
    """Access to one column by row."""

    def __init__(self, source: BinarySource) -> None:
        self.count = source.length
        self._first = source.first
        self._validity = None if source.validity is None else memoryview(source.validity).cast("B")
        self._offsets = memoryview(source.offsets).cast("B").cast("q" if source.is_large else "i")
        self._data = memoryview(source.data).cast("B")
        if (
            source.first < 0
            or source.length < 0
            or source.first + source.length >= max(len(self._offsets), 1)
        ):
            raise IndexError("a column is longer than its offsets")
        if self._validity is not None and 8 * len(self._validity) < source.first + source.length:
            raise IndexError("a column is longer than its validity")

    def __getitem__(self, row: int) -> memoryview | None:
        if not 0 <= row < self.count:
            raise IndexError(f"row {row} of {self.count}")
        row += self._first
        if self._validity is not None and not self._validity[row >> 3] >> (row & 7) & 1:
            return None
        start, end = self._offsets[row], self._offsets[row + 1]
        if not 0 <= start <= end <= len(self._data):
            raise IndexError(f"row {row} points outside of its data")
        return self._data[start:end]


class _Headers:
    def __init__(self, source: HeaderSource) -> None:
        self._lists = _Binary(
            BinarySource(
                source.length, source.first, source.validity, source.offsets, bytes(source.keys.length)
            )
        )
        self._offsets = memoryview(source.offsets).cast("B").cast("i")
        self._first = source.first
        self._keys = _Binary(source.keys)
        self._values = _Binary(source.values)
        if source.keys.length != source.values.length:
            raise IndexError("the keys and the values of headers differ in number")

    def write(self, out: bytearray, row: int) -> None:
        found = self._lists[row]
        _write_varint(out, 0 if found is None else len(found))
        if found is None:
            return
        start = self._offsets[self._first + row]
        for index in range(start, start + len(found)):
            key = self._keys[index]
            if key is None:
                raise HeaderWithoutKey(f"a header of row {row} has no key")
            _write_bytes(out, key)
            _write_bytes(out, self._values[index])


class Rows:
    """Rows that are to become records. A column that is not given is null in all of them."""

    def __init__(
        self,
        count: int,
        key: BinarySource | None,
        value: BinarySource | None,
        timestamps: Buffer | None,
        headers: HeaderSource | None,
    ) -> None:
        self.count = count
        self._key = None if key is None else _Binary(key)
        self._value = None if value is None else _Binary(value)
        self._timestamps = None if timestamps is None else memoryview(timestamps).cast("B").cast("q")
        self._headers = None if headers is None else _Headers(headers)
        for column in (key, value, headers):
            if column is not None and column.length != count:
                raise IndexError(f"a column has {column.length} rows, not {count}")
        if self._timestamps is not None and len(self._timestamps) != count:
            raise IndexError(f"there are {len(self._timestamps)} timestamps for {count} rows")

    def write(
        self, rows: Buffer | None, index: int, most_bytes: int, timestamp: int
    ) -> tuple[int, bytearray, int, int]:
        """As many records as fit into a batch of `most_bytes`, but at least one.

        `rows` are int64 row numbers, None for all in order, and `index` is the first of them to write.
        `timestamp` is for rows without a column of them, in milliseconds. Returns (the index to go on with,
        the batch with zeros for its header, base timestamp, max timestamp). Raises IndexError for a row that
        is not there, HeaderWithoutKey, and OverflowError for a record of 2 GiB.
        """
        numbers = None if rows is None else memoryview(rows).cast("B").cast("q")
        end = self.count if numbers is None else len(numbers)
        batch = bytearray(HEADER_SIZE)
        base_timestamp = latest = -1
        first = index
        while index < end:
            row = index if numbers is None else numbers[index]
            if not 0 <= row < self.count:
                raise IndexError(f"row {row} of {self.count}")
            at = timestamp if self._timestamps is None else self._timestamps[row]
            if index == first:
                base_timestamp = at
            body = self._body(row, wrapped(at - base_timestamp), index - first)
            if len(body) > _MOST_RECORD_BYTES:
                raise OverflowError(f"row {row} is larger than a record can be")
            size = bytearray()
            _write_varint(size, len(body))
            if index > first and len(batch) + len(size) + len(body) > most_bytes:
                break
            batch += size
            batch += body
            latest = max(latest, at)
            index += 1
        return index, batch, base_timestamp, latest

    def _body(self, row: int, timestamp_delta: int, offset_delta: int) -> bytearray:
        body = bytearray(1)
        _write_varint(body, timestamp_delta)
        _write_varint(body, offset_delta)
        _write_bytes(body, None if self._key is None else self._key[row])
        _write_bytes(body, None if self._value is None else self._value[row])
        if self._headers is None:
            body.append(0)
        else:
            self._headers.write(body, row)
        return body


def partition_keys(key: BinarySource, partition_count: int, keyless: int) -> memoryview:
    """The partition of each row, int32: where its key belongs, or `keyless` where it has none."""
    if partition_count < 1:
        raise ValueError(f"{partition_count} is no number of partitions")
    column = _Binary(key)
    partitions = array("i", bytes(4 * key.length))
    for row in range(key.length):
        found = column[row]
        partitions[row] = keyless if found is None else (_murmur2(found) & 0x7FFF_FFFF) % partition_count
    return memoryview(partitions).cast("B")


def rows_by_partition(partitions: Buffer, partition_count: int) -> tuple[Buffer, Buffer]:
    """Row numbers ordered by partition and then by row, and where each partition's begin, both int64.

    There are `partition_count` + 1 beginnings. Raises IndexError for a partition that is not there.
    """
    numbers = memoryview(partitions).cast("B").cast("i")
    groups: list[list[int]] = [[] for _ in range(partition_count)]
    for row, partition in enumerate(numbers):
        if not 0 <= partition < partition_count:
            raise IndexError(f"row {row} is for partition {partition} of {partition_count}")
        groups[partition].append(row)
    rows, starts = array("q"), array("q", [0])
    for group in groups:
        rows.extend(group)
        starts.append(len(rows))
    return memoryview(rows).cast("B"), memoryview(starts).cast("B")


def _murmur2(data: memoryview) -> int:
    """Kafka's murmur2, unsigned."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for (k,) in _WORD.iter_unpack(data[:whole]):
        k = k * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if length > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def _write_varint(out: bytearray, value: int) -> None:
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def _write_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out.append(1)  # -1
    else:
        _write_varint(out, len(value))
        out += value
