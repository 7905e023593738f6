"""The per-record loops in Python: what `_kernel.pyx` does, for an install without a compiler.

A records section is what follows the 61 bytes of a batch header, uncompressed. Functions take a buffer and
a range of it, so that a batch inside a frame is read where it lies. They never raise over the bytes they
read: a fault is a number in the result, with the index of the record that has it. Both kernels give equal
results for any bytes whatever, and the tests hold them to it.

The checks are those of Kafka's reader: a varint takes at most five bytes and a varlong ten, excess bits are
dropped; a negative key or value length is null; a header key is not null; a record ends where its length
says and the section where its last record does.
"""

from __future__ import annotations

from array import array
from struct import Struct

from ottla.core.files import Buffer

NO_FAULT = 0
BAD_COUNT = 1
BAD_LENGTH = 2
BAD_VARINT = 3
BAD_KEY = 4
BAD_VALUE = 5
BAD_HEADER_COUNT = 6
BAD_HEADER_KEY = 7
BAD_HEADER_VALUE = 8
WRONG_SIZE = 9
TRAILING_BYTES = 10
COMPRESSED = 11
TRUNCATED = 12
BAD_MAGIC = 13
BAD_BATCH_LENGTH = 14

Scan = tuple[int, int, int, int, int, int, bool]
BatchCheck = tuple[
    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, bool
]
Columns = tuple["array[int]", ...]

_HEADER = Struct(">qiiBIhiqqqhii")
_SMALLEST_RECORD = 7
_COLUMNS = 10

# offset delta, timestamp delta, key start and length, value start and length, headers start and count, end
_Fields = tuple[int, int, int, int, int, int, int, int, int]


class _Fault(Exception):
    def __init__(self, kind: int) -> None:
        self.kind = kind


def _varint(view: memoryview, pos: int, end: int, width: int = 32) -> tuple[int, int]:
    # Nearly all take one or two bytes.
    if end - pos > 1:
        value = view[pos]
        if value < 0x80:
            return (value >> 1) ^ -(value & 1), pos + 1
        byte = view[pos + 1]
        if byte < 0x80:
            value += (byte << 7) - 0x80
            return (value >> 1) ^ -(value & 1), pos + 2
    value = shift = 0
    while pos < end and shift < width:
        byte = view[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= (1 << width) - 1
            return (value >> 1) ^ -(value & 1), pos
        shift += 7
    raise _Fault(BAD_VARINT)


def _record(view: memoryview, pos: int, end: int) -> _Fields:
    length, pos = _varint(view, pos, end)
    if length < 1 or length > end - pos:
        raise _Fault(BAD_LENGTH)
    record_end = pos + length
    # One byte of attributes: none is defined for a record, and Kafka ignores it.
    timestamp_delta, pos = _varint(view, pos + 1, record_end, 64)
    offset_delta, pos = _varint(view, pos, record_end)
    key_length, key = _varint(view, pos, record_end)
    if key_length > record_end - key:
        raise _Fault(BAD_KEY)
    value_length, value = _varint(view, key + key_length if key_length > 0 else key, record_end)
    if value_length > record_end - value:
        raise _Fault(BAD_VALUE)
    header_count, headers = _varint(view, value + value_length if value_length > 0 else value, record_end)
    # A header takes two bytes at least, so a count that cannot fit is refused before it is walked.
    if header_count < 0 or header_count > (record_end - headers) // 2:
        raise _Fault(BAD_HEADER_COUNT)
    pos = headers
    for _ in range(header_count):
        length, pos = _varint(view, pos, record_end)
        if length < 0 or length > record_end - pos:
            raise _Fault(BAD_HEADER_KEY)
        length, pos = _varint(view, pos + length, record_end)
        if length > record_end - pos:
            raise _Fault(BAD_HEADER_VALUE)
        pos += max(length, 0)
    if pos != record_end:
        raise _Fault(WRONG_SIZE)
    return (
        offset_delta,
        timestamp_delta,
        key,
        max(key_length, -1),
        value,
        max(value_length, -1),
        headers,
        header_count,
        pos,
    )


def wrapped(number: int) -> int:
    """A sum or difference of timestamps or offsets as 64-bit arithmetic has it."""
    if -0x8000_0000_0000_0000 <= number <= 0x7FFF_FFFF_FFFF_FFFF:
        return number
    return ((number + 0x8000_0000_0000_0000) & 0xFFFF_FFFF_FFFF_FFFF) - 0x8000_0000_0000_0000


def _view(buffer: Buffer, start: int, end: int | None) -> tuple[memoryview, int]:
    view = memoryview(buffer).cast("B")
    stop = len(view) if end is None else end
    if start < 0 or stop < start or stop > len(view):
        raise ValueError(f"range {start}:{stop} is outside a buffer of {len(view)} bytes")
    return view, stop


def scan(buffer: Buffer, count: int, base_timestamp: int = 0, start: int = 0, end: int | None = None) -> Scan:
    """Checks that `start:end` holds exactly `count` well-formed records, and sums up what is in them.

    Returns (error_index, fault, min_timestamp, max_timestamp, max_timestamp_offset_delta, first_null_key,
    sequential):

    - error_index: index of the first bad record, -1 if all are good. `count` for trailing bytes.
    - fault: NO_FAULT or one of the constants of this module; `kernel.describe` puts it in words.
    - min_timestamp: the least timestamp other than -1, "no timestamp", which Kafka lets pass any bound;
      -1 if there is no other.
    - max_timestamp: the greatest timestamp, but at least -1.
    - max_timestamp_offset_delta: offset delta of the first record that has it; -1 if none is above -1.
    - first_null_key: index of the first record without a key, or -1.
    - sequential: whether offset deltas are 0, 1, 2, ...

    After a fault the rest describes the records before it.
    """
    view, stop = _view(buffer, start, end)
    return _scan(view, start, stop, count, base_timestamp)


def _scan(view: memoryview, pos: int, end: int, count: int, base_timestamp: int) -> Scan:
    smallest: int | None = None
    largest = largest_at = first_null_key = -1
    sequential = True
    index = 0
    fault = BAD_COUNT if count < 0 else NO_FAULT
    try:
        while index < count:
            offset_delta, timestamp_delta, _, key_length, _, _, _, _, pos = _record(view, pos, end)
            timestamp = wrapped(base_timestamp + timestamp_delta)
            if timestamp != -1 and (smallest is None or timestamp < smallest):
                smallest = timestamp
            if timestamp > largest:
                largest, largest_at = timestamp, offset_delta
            if key_length < 0 and first_null_key < 0:
                first_null_key = index
            if offset_delta != index:
                sequential = False
            index += 1
        if fault == NO_FAULT and pos != end:
            fault = TRAILING_BYTES
    except _Fault as found:
        fault = found.kind
    return (
        index if fault else -1,
        fault,
        -1 if smallest is None else smallest,
        largest,
        largest_at,
        first_null_key,
        sequential,
    )


def check_batch(buffer: Buffer, start: int = 0, end: int | None = None) -> BatchCheck:
    """Reads the header of the batch at `start` and scans its records, in one call.

    Returns (fault, error_index), the thirteen header fields in their order on the wire, then the last five
    of `scan`. Bytes may follow the batch: compare 12 + batch_length with the range if they should not. The
    fault is

    - TRUNCATED, BAD_MAGIC or BAD_BATCH_LENGTH if there is no whole version 2 batch; all other fields are
      then without meaning,
    - COMPRESSED if the records need decompressing before they can be scanned; the header fields hold,
    - whatever `scan` found otherwise.

    The CRC is not looked at: on a mismatch any fault found here is beside the point.
    """
    view, stop = _view(buffer, start, end)
    early = NO_FAULT
    if stop - start < 17:
        early = TRUNCATED
    elif view[start + 16] != 2:
        early = BAD_MAGIC
    else:
        length = int.from_bytes(view[start + 8 : start + 12], "big", signed=True)
        if length < _HEADER.size - 12:
            early = BAD_BATCH_LENGTH
        elif length > stop - start - 12:
            early = TRUNCATED
    if early:
        return (early, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, False)
    header = _HEADER.unpack_from(view, start)
    if header[5] & 7:
        return (COMPRESSED, -1, *header, -1, -1, -1, -1, False)
    records = start + _HEADER.size
    error_index, fault, *summary = _scan(view, records, start + 12 + length, header[12], header[7])
    return (fault, error_index, *header, *summary)


def columns(buffer: Buffer, count: int, start: int = 0, end: int | None = None) -> tuple[int, int, Columns]:
    """Where everything is in the `count` records of `start:end`.

    Returns (fault, error_index, columns): ten arrays of int64, one entry per record, which take part in the
    buffer protocol; no columns after a fault. Their order: record_start (of its length varint), record_end,
    offset_delta, timestamp_delta, key_start, key_length, value_start, value_length, headers_start,
    header_count. Positions count from the beginning of `buffer`; a null key or value has length -1.
    """
    view, stop = _view(buffer, start, end)
    # The smallest record takes seven bytes: a count that cannot be true must not size an array.
    if count < 0 or count > (stop - start) // _SMALLEST_RECORD:
        return BAD_COUNT, 0, ()
    result = tuple(array("q", bytes(8 * count)) for _ in range(_COLUMNS))
    starts, ends, offsets, timestamps, keys, key_lengths, values, value_lengths, headers, header_counts = (
        result
    )
    pos = start
    index = 0
    try:
        while index < count:
            fields = _record(view, pos, stop)
            starts[index] = pos
            offsets[index], timestamps[index], keys[index], key_lengths[index], values[index] = fields[:5]
            value_lengths[index], headers[index], header_counts[index], pos = fields[5:]
            ends[index] = pos
            index += 1
    except _Fault as found:
        return found.kind, index, ()
    if pos != stop:
        return TRAILING_BYTES, index, ()
    return NO_FAULT, -1, result


def first_at_or_after(
    buffer: Buffer,
    count: int,
    base_timestamp: int,
    timestamp: int,
    first_offset_delta: int = 0,
    start: int = 0,
    end: int | None = None,
) -> tuple[int, int, int, int]:
    """The first record from `first_offset_delta` on whose timestamp is not before `timestamp`.

    Returns (fault, index, offset_delta, timestamp); index -1 if there is none. Records past the one found
    are not looked at.
    """
    view, stop = _view(buffer, start, end)
    pos = start
    try:
        for index in range(count):
            offset_delta, timestamp_delta, *_, pos = _record(view, pos, stop)
            found = wrapped(base_timestamp + timestamp_delta)
            if offset_delta >= first_offset_delta and found >= timestamp:
                return NO_FAULT, index, offset_delta, found
    except _Fault as fault:
        return fault.kind, -1, -1, -1
    return NO_FAULT, -1, -1, -1
