# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""The per-record loops, compiled. `_kernel_py` is the same in Python and says what each function promises.

Bytes come from the network; `_records.pxd` reads them and never past their end. Results are plain tuples and
arrays, and a fault is a number in the result, never an exception: the caller knows better which Kafka error
it is.
"""

from cpython cimport array
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from ottla.protocol._records cimport (
    BAD_BATCH_LENGTH,
    BAD_COUNT,
    BAD_MAGIC,
    COMPRESSED,
    HEADER_SIZE,
    NO_FAULT,
    SMALLEST_RECORD,
    TRAILING_BYTES,
    TRUNCATED,
    Fields,
    read_i16,
    read_i64,
    read_record,
    read_u32,
)

import array

cdef enum:
    # From this many bytes on, about a tenth of a millisecond, other threads may run meanwhile. Below it that
    # would cost more than it gives: a thread that is busy in Python keeps the lock for 5 ms once it has it.
    LONG_SCAN = 1048576

cdef struct Result:
    int64_t error_index
    int fault
    int64_t min_timestamp
    int64_t max_timestamp
    int32_t max_timestamp_offset_delta
    int64_t first_null_key
    bint sequential

cdef array.array LONGS = array.array("q", [])


cdef void walk(
    const uint8_t* p, const uint8_t* end, int64_t count, int64_t base_timestamp, Result* result
) noexcept nogil:
    cdef Fields fields
    cdef int64_t index = 0, timestamp, smallest = 0, largest = -1, first_null_key = -1
    cdef int32_t largest_at = -1
    cdef bint sequential = True, has_smallest = False
    cdef int fault = NO_FAULT
    if count < 0:
        fault = BAD_COUNT
    else:
        while index < count:
            p = read_record(p, end, &fields, &fault)
            if p == NULL:
                break
            timestamp = <int64_t>(<uint64_t>base_timestamp + <uint64_t>fields.timestamp_delta)
            if timestamp != -1 and (not has_smallest or timestamp < smallest):
                smallest = timestamp
                has_smallest = True
            if timestamp > largest:
                largest = timestamp
                largest_at = fields.offset_delta
            if fields.key_length < 0 and first_null_key < 0:
                first_null_key = index
            if fields.offset_delta != index:
                sequential = False
            index += 1
        if fault == NO_FAULT and p != end:
            fault = TRAILING_BYTES
    result.error_index = -1 if fault == NO_FAULT else index
    result.fault = fault
    result.min_timestamp = smallest if has_smallest else -1
    result.max_timestamp = largest
    result.max_timestamp_offset_delta = largest_at
    result.first_null_key = first_null_key
    result.sequential = sequential


cdef inline void walk_section(
    const uint8_t* p, const uint8_t* end, int64_t count, int64_t base_timestamp, Result* result
):
    if end - p > LONG_SCAN:
        with nogil:
            walk(p, end, count, base_timestamp, result)
    else:
        walk(p, end, count, base_timestamp, result)


cdef inline int check_range(Py_buffer* view, Py_ssize_t start, Py_ssize_t end) except -1:
    if start < 0 or end < start or end > view.len:
        raise ValueError(f"range {start}:{end} is outside a buffer of {view.len} bytes")
    return 0


def scan(buffer, int64_t count, int64_t base_timestamp=0, Py_ssize_t start=0, end=None):
    cdef Py_buffer view
    cdef Result result
    cdef Py_ssize_t stop
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        stop = view.len if end is None else end
        check_range(&view, start, stop)
        walk_section(<const uint8_t*>view.buf + start, <const uint8_t*>view.buf + stop, count, base_timestamp, &result)
    finally:
        PyBuffer_Release(&view)
    return (
        result.error_index,
        result.fault,
        result.min_timestamp,
        result.max_timestamp,
        result.max_timestamp_offset_delta,
        result.first_null_key,
        result.sequential,
    )


def check_batch(buffer, Py_ssize_t start=0, end=None):
    cdef Py_buffer view
    cdef Result result
    cdef Py_ssize_t stop
    cdef const uint8_t* p
    cdef int32_t length, count, last_offset_delta, base_sequence, leader_epoch
    cdef uint32_t crc
    cdef int16_t attributes, producer_epoch
    cdef int64_t base_offset, base_timestamp, max_timestamp, producer_id
    cdef int early = NO_FAULT, magic
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        stop = view.len if end is None else end
        check_range(&view, start, stop)
        p = <const uint8_t*>view.buf + start
        if stop - start < 17:
            early = TRUNCATED
        elif p[16] != 2:
            early = BAD_MAGIC
        elif <int32_t>read_u32(p + 8) < HEADER_SIZE - 12:
            early = BAD_BATCH_LENGTH
        elif <int32_t>read_u32(p + 8) > stop - start - 12:
            early = TRUNCATED
        if early:
            return (early, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, False)
        base_offset = read_i64(p)
        length = <int32_t>read_u32(p + 8)
        leader_epoch = <int32_t>read_u32(p + 12)
        magic = p[16]
        crc = read_u32(p + 17)
        attributes = read_i16(p + 21)
        last_offset_delta = <int32_t>read_u32(p + 23)
        base_timestamp = read_i64(p + 27)
        max_timestamp = read_i64(p + 35)
        producer_id = read_i64(p + 43)
        producer_epoch = read_i16(p + 51)
        base_sequence = <int32_t>read_u32(p + 53)
        count = <int32_t>read_u32(p + 57)
        if attributes & 7:
            result.error_index = -1
            result.fault = COMPRESSED
            result.min_timestamp = -1
            result.max_timestamp = -1
            result.max_timestamp_offset_delta = -1
            result.first_null_key = -1
            result.sequential = False
        else:
            walk_section(p + HEADER_SIZE, p + 12 + length, count, base_timestamp, &result)
    finally:
        PyBuffer_Release(&view)
    return (
        result.fault,
        result.error_index,
        base_offset,
        length,
        leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
        result.min_timestamp,
        result.max_timestamp,
        result.max_timestamp_offset_delta,
        result.first_null_key,
        result.sequential,
    )


cdef int64_t fill(
    const uint8_t* base, const uint8_t* p, const uint8_t* end, int64_t count, int64_t** out, int* fault
) noexcept nogil:
    cdef Fields fields
    cdef int64_t index = 0
    while index < count:
        out[0][index] = p - base
        p = read_record(p, end, &fields, fault)
        if p == NULL:
            return index
        out[1][index] = p - base
        out[2][index] = fields.offset_delta
        out[3][index] = fields.timestamp_delta
        out[4][index] = fields.key - base
        out[5][index] = fields.key_length if fields.key_length >= 0 else -1
        out[6][index] = fields.value - base
        out[7][index] = fields.value_length if fields.value_length >= 0 else -1
        out[8][index] = fields.headers - base
        out[9][index] = fields.header_count
        index += 1
    if p != end:
        fault[0] = TRAILING_BYTES
        return index
    return -1


def columns(buffer, int64_t count, Py_ssize_t start=0, end=None):
    cdef Py_buffer view
    cdef Py_ssize_t stop
    cdef int64_t* out[10]
    cdef array.array column
    cdef const uint8_t* base
    cdef int64_t error_index
    cdef int i, fault = NO_FAULT
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        stop = view.len if end is None else end
        check_range(&view, start, stop)
        # A count that cannot be true must not size an array.
        if count < 0 or count > (stop - start) // SMALLEST_RECORD:
            return (BAD_COUNT, 0, ())
        arrays = []
        for i in range(10):
            column = array.clone(LONGS, count, False)
            out[i] = <int64_t*>column.data.as_voidptr
            arrays.append(column)
        base = <const uint8_t*>view.buf
        if stop - start > LONG_SCAN:
            with nogil:
                error_index = fill(base, base + start, base + stop, count, out, &fault)
        else:
            error_index = fill(base, base + start, base + stop, count, out, &fault)
    finally:
        PyBuffer_Release(&view)
    if fault:
        return (fault, error_index, ())
    return (NO_FAULT, -1, tuple(arrays))


cdef int64_t search(
    const uint8_t* p,
    const uint8_t* end,
    int64_t count,
    int64_t base_timestamp,
    int64_t target,
    int64_t first_delta,
    Fields* fields,
    int* fault,
) noexcept nogil:
    cdef int64_t index = 0
    while index < count:
        p = read_record(p, end, fields, fault)
        if p == NULL:
            return -1
        if (
            fields.offset_delta >= first_delta
            and <int64_t>(<uint64_t>base_timestamp + <uint64_t>fields.timestamp_delta) >= target
        ):
            return index
        index += 1
    return -1


def first_at_or_after(
    buffer,
    int64_t count,
    int64_t base_timestamp,
    int64_t timestamp,
    int64_t first_offset_delta=0,
    Py_ssize_t start=0,
    end=None,
):
    cdef Py_buffer view
    cdef Py_ssize_t stop
    cdef Fields fields
    cdef const uint8_t* base
    cdef int64_t index
    cdef int fault = NO_FAULT
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        stop = view.len if end is None else end
        check_range(&view, start, stop)
        base = <const uint8_t*>view.buf
        index = search(
            base + start, base + stop, count, base_timestamp, timestamp, first_offset_delta, &fields, &fault
        )
    finally:
        PyBuffer_Release(&view)
    if index < 0:
        return (fault, -1, -1, -1)
    return (
        NO_FAULT,
        index,
        fields.offset_delta,
        <int64_t>(<uint64_t>base_timestamp + <uint64_t>fields.timestamp_delta),
    )
