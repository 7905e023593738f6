# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""Records to columns and back, compiled. `_columns_py` and `_rows_py` are the same in Python and say what each
part promises.

Bytes come from the network; `_records.pxd` reads them and never past their end. Room for what they may become
is made before they are read: a column cannot take more bytes than the records that fill it, nor have more rows
than a seventh of them.
"""

from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ottla.protocol._records cimport (
    BAD_COUNT,
    HEADER_SIZE,
    NO_FAULT,
    SMALLEST_RECORD,
    TRAILING_BYTES,
    Fields,
    read_i16,
    read_i64,
    read_record,
    read_u32,
    read_varint,
)

from crc32c import crc32c

from ottla.protocol._columns_py import BinaryColumn, HeaderColumn, Taken
from ottla.protocol._rows_py import HeaderWithoutKey

cdef enum:
    # From this many bytes on, some tens of microseconds, other threads may run meanwhile.
    LONG = 262144

cdef enum Wanted:
    KEY = 1
    VALUE = 2
    OFFSET = 4
    TIMESTAMP = 8
    TIMESTAMP_TYPE = 16
    HEADERS = 32

cdef enum Reason:
    ENDED = 0
    SPECIAL = 1
    OLD_FORMAT = 2
    ENOUGH = 3
    BAD_HEADER = 4
    BAD_CRC = 5

cdef enum TimestampType:
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

cdef int64_t MOST_BASE_OFFSET = INT64_MAX - 0xFFFFFFFF
cdef int64_t MOST_MILLISECONDS = INT64_MAX // 1000


# --- records to columns ------------------------------------------------------------------


def walk(
    buffer,
    Py_ssize_t start,
    int64_t first_offset,
    int64_t end_offset,
    int special,
    bint verify,
    int64_t most_bytes=INT32_MAX,
):
    cdef Py_buffer view
    cdef const uint8_t* p
    cdef int64_t position = start, next_offset = -1, left, size, base_offset, last_offset
    cdef int32_t last_offset_delta
    cdef int reason
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        while True:
            left = view.len - position
            if position < 0 or left < 17:
                reason = ENDED
                break
            p = <const uint8_t*>view.buf + position
            if p[16] != 2:
                reason = OLD_FORMAT if p[16] < 2 else BAD_HEADER
                break
            if left < HEADER_SIZE:
                reason = ENDED
                break
            base_offset = read_i64(p)
            size = 12 + <int64_t><int32_t>read_u32(p + 8)
            last_offset_delta = <int32_t>read_u32(p + 23)
            if size < HEADER_SIZE or last_offset_delta < 0 or not 0 <= base_offset <= MOST_BASE_OFFSET:
                reason = BAD_HEADER
                break
            if size > left:
                reason = ENDED
                break
            if read_i16(p + 21) & special:
                reason = SPECIAL
                break
            if position > start and position + size - start > most_bytes:
                reason = ENOUGH
                break
            last_offset = base_offset + last_offset_delta
            if verify and last_offset >= first_offset and base_offset < end_offset:
                if <uint32_t>crc32c(PyMemoryView_FromMemory(<char*>p + 21, size - 21, PyBUF_READ)) != read_u32(p + 17):
                    reason = BAD_CRC
                    break
            position += size
            next_offset = last_offset + 1
    finally:
        PyBuffer_Release(&view)
    return (reason, position, next_offset)


cdef class Room:
    """Memory for a buffer that grows, had of somebody else."""

    cdef object allocate
    cdef object buffer
    cdef Py_buffer view
    cdef uint8_t* data
    cdef int64_t capacity

    def __cinit__(self, allocate):
        self.allocate = allocate

    def __dealloc__(self):
        self.leave()

    cdef void leave(self):
        if self.data != NULL:
            PyBuffer_Release(&self.view)
            self.data = NULL

    cdef int reserve(self, int64_t needed) except -1:
        if needed > self.capacity or self.data == NULL:
            self.leave()
            if self.buffer is None:
                self.buffer = self.allocate(max(needed, 1))
            else:
                # The first time is nearly always the only one; after that double, as growing means copying.
                self.buffer.resize(max(needed, 2 * self.capacity))
            PyObject_GetBuffer(self.buffer, &self.view, PyBUF_WRITABLE)
            self.data = <uint8_t*>self.view.buf
            self.capacity = self.view.len
        return 0

    cdef object finish(self, int64_t size):
        """The buffer, with what is not needed given back."""
        self.leave()
        self.buffer.resize(size, True)
        return self.buffer


cdef struct Binary:
    uint8_t* validity
    int32_t* offsets
    uint8_t* data
    int64_t used
    int64_t null_count

cdef struct Target:
    int wanted
    int64_t rows
    int64_t header_rows
    int64_t* offset
    int64_t* timestamp
    int32_t* timestamp_type
    int32_t* header_offsets
    Binary key
    Binary value
    Binary header_key
    Binary header_value
    uint8_t header_key_bits  # all bytes of all keys, or-ed


cdef inline void put(Binary* column, int64_t row, const uint8_t* p, int32_t length) noexcept nogil:
    if length > 0:
        memcpy(column.data + column.used, p, length)
        column.used += length
    elif length < 0:
        column.validity[row >> 3] &= ~(1 << (row & 7))
        column.null_count += 1
    column.offsets[row + 1] = <int32_t>column.used


cdef void put_headers(Target* to, const uint8_t* p, const uint8_t* end, int32_t count) noexcept nogil:
    """The headers of a record that ends at `end` and was found good."""
    cdef int32_t length = 0, i, header
    cdef uint8_t bits = 0
    for header in range(count):
        p = read_varint(p, end, &length)
        for i in range(length):
            bits |= p[i]
        put(&to.header_key, to.header_rows, p, length)
        p += length
        p = read_varint(p, end, &length)
        put(&to.header_value, to.header_rows, p, length)
        if length > 0:
            p += length
        to.header_rows += 1
    to.header_key_bits |= bits


cdef int64_t fill(
    Target* to,
    const uint8_t* p,
    const uint8_t* end,
    int64_t count,
    int64_t base_offset,
    int64_t base_timestamp,
    int timestamp_type,
    int64_t first_offset,
    int64_t end_offset,
    int* fault,
) noexcept nogil:
    """Appends a section's records and returns -1, or the index of a bad record."""
    cdef Fields fields
    cdef int64_t index, offset, timestamp, row = to.rows
    cdef int wanted = to.wanted
    # All rows of a section are counted only when it is found good to its end.
    for index in range(count):
        p = read_record(p, end, &fields, fault)
        if p == NULL:
            return index
        offset = <int64_t>(<uint64_t>base_offset + <uint64_t><int64_t>fields.offset_delta)
        if offset < first_offset or offset >= end_offset:
            continue
        if wanted & KEY:
            put(&to.key, row, fields.key, fields.key_length)
        if wanted & VALUE:
            put(&to.value, row, fields.value, fields.value_length)
        if wanted & OFFSET:
            to.offset[row] = offset
        if wanted & TIMESTAMP:
            timestamp = base_timestamp
            if timestamp_type != LOG_APPEND_TIME:
                timestamp = <int64_t>(<uint64_t>timestamp + <uint64_t>fields.timestamp_delta)
            if timestamp > MOST_MILLISECONDS:
                timestamp = MOST_MILLISECONDS
            elif timestamp < -MOST_MILLISECONDS:
                timestamp = -MOST_MILLISECONDS
            to.timestamp[row] = timestamp * 1000
        if wanted & TIMESTAMP_TYPE:
            to.timestamp_type[row] = timestamp_type
        if wanted & HEADERS:
            if fields.header_count:
                put_headers(to, fields.headers, p, fields.header_count)
            to.header_offsets[row + 1] = <int32_t>to.header_rows
        row += 1
    to.rows = row
    if p != end:
        fault[0] = TRAILING_BYTES
        return count
    return -1


cdef void count_headers(
    const uint8_t* p, const uint8_t* end, int64_t count, int64_t* headers, int64_t* bytes
) noexcept nogil:
    """Adds the number of headers in a section and the bytes they take, as far as it is good."""
    cdef Fields fields
    cdef int64_t index
    cdef int fault = NO_FAULT
    for index in range(count):
        p = read_record(p, end, &fields, &fault)
        if p == NULL:
            return
        headers[0] += fields.header_count
        bytes[0] += p - fields.headers


cdef inline bint is_possible(int64_t count, int64_t size) noexcept nogil:
    return 0 <= count <= size // SMALLEST_RECORD


cdef struct Batch:
    const uint8_t* records
    const uint8_t* end
    int64_t count
    int64_t base_offset
    int64_t base_timestamp
    int timestamp_type
    bint is_inside


cdef inline void read_batch(
    const uint8_t* p, int64_t first_offset, int64_t end_offset, Batch* batch
) noexcept nogil:
    """What the header says of a batch that `walk` has passed."""
    cdef bint is_stamped = read_i16(p + 21) & 0x08
    batch.records = p + HEADER_SIZE
    batch.end = p + 12 + <int32_t>read_u32(p + 8)
    batch.count = <int32_t>read_u32(p + 57)
    batch.base_offset = read_i64(p)
    batch.base_timestamp = read_i64(p + 35) if is_stamped else read_i64(p + 27)
    batch.timestamp_type = LOG_APPEND_TIME if is_stamped else CREATE_TIME
    batch.is_inside = (
        batch.base_offset + <int32_t>read_u32(p + 23) >= first_offset and batch.base_offset < end_offset
    )


cdef void measure(
    const uint8_t* p, const uint8_t* end, int64_t first, int64_t stop, bint with_headers, int64_t* sums
) noexcept nogil:
    """Sums up the rows, bytes, headers and bytes of headers that batches may bring."""
    cdef Batch batch
    while p < end:
        read_batch(p, first, stop, &batch)
        if batch.is_inside and is_possible(batch.count, batch.end - batch.records):
            sums[0] += batch.count
            sums[1] += batch.end - batch.records
            if with_headers:
                count_headers(batch.records, batch.end, batch.count, &sums[2], &sums[3])
        p = batch.end


cdef int64_t fill_batches(
    Target* to,
    const uint8_t** position,
    const uint8_t* end,
    int64_t first_offset,
    int64_t end_offset,
    int* fault,
) noexcept nogil:
    cdef Batch batch
    cdef int64_t index
    while position[0] < end:
        read_batch(position[0], first_offset, end_offset, &batch)
        if batch.is_inside:
            if not is_possible(batch.count, batch.end - batch.records):
                fault[0] = BAD_COUNT
                return 0
            index = fill(
                to,
                batch.records,
                batch.end,
                batch.count,
                batch.base_offset,
                batch.base_timestamp,
                batch.timestamp_type,
                first_offset,
                end_offset,
                fault,
            )
            if index >= 0:
                return index
        position[0] = batch.end
    return -1


cdef class BinaryRoom:
    """The three buffers of a column of bytes."""

    cdef Room validity
    cdef Room offsets
    cdef Room data
    cdef int64_t valid_bytes  # of the bitmap that are set to ones

    def __cinit__(self, allocate):
        self.validity = Room(allocate)
        self.offsets = Room(allocate)
        self.data = Room(allocate)

    cdef int reserve(self, Binary* column, int64_t rows, int64_t bytes) except -1:
        cdef int64_t bitmap = (rows + 7) // 8
        self.validity.reserve(bitmap)
        self.offsets.reserve(4 * (rows + 1))
        self.data.reserve(bytes)
        if bitmap > self.valid_bytes:
            memset(self.validity.data + self.valid_bytes, 0xFF, bitmap - self.valid_bytes)
            self.valid_bytes = bitmap
        column.validity = self.validity.data
        column.offsets = <int32_t*>self.offsets.data
        column.data = self.data.data
        column.offsets[0] = 0
        return 0

    cdef object finish(self, Binary* column, int64_t rows):
        validity = None
        self.reserve(column, rows, 0)
        if column.null_count:
            if rows & 7:
                column.validity[rows >> 3] &= (1 << (rows & 7)) - 1
            validity = self.validity.finish((rows + 7) // 8)
        return BinaryColumn(
            column.null_count, validity, self.offsets.finish(4 * (rows + 1)), self.data.finish(column.used)
        )


cdef class Columns:
    cdef Target to
    cdef int64_t added
    cdef object allocate
    cdef Room offset, timestamp, timestamp_type, header_offsets
    cdef BinaryRoom key, value, header_key, header_value

    def __cinit__(self, int wanted, allocate):
        self.allocate = allocate
        self.clear(wanted)

    cdef int clear(self, int wanted) except -1:
        memset(&self.to, 0, sizeof(Target))
        self.to.wanted = wanted
        self.added = 0
        if wanted & KEY:
            self.key = BinaryRoom(self.allocate)
        if wanted & VALUE:
            self.value = BinaryRoom(self.allocate)
        if wanted & OFFSET:
            self.offset = Room(self.allocate)
        if wanted & TIMESTAMP:
            self.timestamp = Room(self.allocate)
        if wanted & TIMESTAMP_TYPE:
            self.timestamp_type = Room(self.allocate)
        if wanted & HEADERS:
            self.header_offsets = Room(self.allocate)
            self.header_key = BinaryRoom(self.allocate)
            self.header_value = BinaryRoom(self.allocate)
        return 0

    @property
    def wanted(self):
        return self.to.wanted

    @property
    def rows(self):
        return self.to.rows

    @property
    def size(self):
        return self.added

    cdef int reserve(self, int64_t* sums) except -1:
        """Room for so many rows, bytes of records, headers and bytes of headers more."""
        cdef Target* to = &self.to
        cdef int64_t rows = to.rows + sums[0]
        if to.wanted & KEY:
            self.key.reserve(&to.key, rows, to.key.used + sums[1])
        if to.wanted & VALUE:
            self.value.reserve(&to.value, rows, to.value.used + sums[1])
        if to.wanted & OFFSET:
            self.offset.reserve(8 * rows)
            to.offset = <int64_t*>self.offset.data
        if to.wanted & TIMESTAMP:
            self.timestamp.reserve(8 * rows)
            to.timestamp = <int64_t*>self.timestamp.data
        if to.wanted & TIMESTAMP_TYPE:
            self.timestamp_type.reserve(4 * rows)
            to.timestamp_type = <int32_t*>self.timestamp_type.data
        if to.wanted & HEADERS:
            self.header_offsets.reserve(4 * (rows + 1))
            to.header_offsets = <int32_t*>self.header_offsets.data
            to.header_offsets[0] = 0
            self.header_key.reserve(&to.header_key, to.header_rows + sums[2], to.header_key.used + sums[3])
            self.header_value.reserve(
                &to.header_value, to.header_rows + sums[2], to.header_value.used + sums[3]
            )
        return 0

    cdef int grow(self, int64_t size) except -1:
        if self.added + size > INT32_MAX:
            raise OverflowError("more bytes than an int32 can count; take the columns first")
        self.added += size
        return 0

    def add(self, buffer, Py_ssize_t start, Py_ssize_t end, int64_t first_offset, int64_t end_offset):
        cdef Py_buffer view
        cdef int64_t sums[4]
        cdef int64_t index
        cdef int fault = NO_FAULT
        cdef const uint8_t* p
        cdef const uint8_t* stop
        cdef bint with_headers = self.to.wanted & HEADERS
        memset(sums, 0, sizeof(sums))
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            check_batches(&view, start, end)
            self.grow(end - start)
            p = <const uint8_t*>view.buf + start
            stop = <const uint8_t*>view.buf + end
            if end - start > LONG:
                with nogil:
                    measure(p, stop, first_offset, end_offset, with_headers, sums)
                self.reserve(sums)
                with nogil:
                    index = fill_batches(&self.to, &p, stop, first_offset, end_offset, &fault)
            else:
                measure(p, stop, first_offset, end_offset, with_headers, sums)
                self.reserve(sums)
                index = fill_batches(&self.to, &p, stop, first_offset, end_offset, &fault)
            return (fault, p - <const uint8_t*>view.buf, index)
        finally:
            PyBuffer_Release(&view)

    def add_section(
        self,
        section,
        int64_t count,
        int64_t base_offset,
        int64_t base_timestamp,
        int timestamp_type,
        int64_t first_offset,
        int64_t end_offset,
    ):
        cdef Py_buffer view
        cdef int64_t sums[4]
        cdef int64_t index
        cdef int fault = NO_FAULT
        cdef const uint8_t* p
        cdef const uint8_t* end
        PyObject_GetBuffer(section, &view, PyBUF_SIMPLE)
        try:
            self.grow(view.len)
            if not is_possible(count, view.len):
                return (BAD_COUNT, 0)
            memset(sums, 0, sizeof(sums))
            sums[0] = count
            sums[1] = view.len
            p = <const uint8_t*>view.buf
            end = p + view.len
            if self.to.wanted & HEADERS:
                count_headers(p, end, count, &sums[2], &sums[3])
            self.reserve(sums)
            if view.len > LONG:
                with nogil:
                    index = fill(
                        &self.to, p, end, count, base_offset, base_timestamp, timestamp_type, first_offset,
                        end_offset, &fault,
                    )
            else:
                index = fill(
                    &self.to, p, end, count, base_offset, base_timestamp, timestamp_type, first_offset,
                    end_offset, &fault,
                )
        finally:
            PyBuffer_Release(&view)
        return (fault, index)

    def take(self):
        cdef Target* to = &self.to
        cdef int64_t nothing[4]
        cdef int wanted = to.wanted
        memset(nothing, 0, sizeof(nothing))
        self.reserve(nothing)
        headers = None
        if wanted & HEADERS:
            keys = self.header_key.finish(&to.header_key, to.header_rows)
            headers = HeaderColumn(
                self.header_offsets.finish(4 * (to.rows + 1)),
                to.header_rows,
                keys.offsets,
                keys.data,
                to.header_key_bits < 0x80,
                self.header_value.finish(&to.header_value, to.header_rows),
            )
        taken = Taken(
            to.rows,
            self.key.finish(&to.key, to.rows) if wanted & KEY else None,
            self.value.finish(&to.value, to.rows) if wanted & VALUE else None,
            self.offset.finish(8 * to.rows) if wanted & OFFSET else None,
            self.timestamp.finish(8 * to.rows) if wanted & TIMESTAMP else None,
            self.timestamp_type.finish(4 * to.rows) if wanted & TIMESTAMP_TYPE else None,
            headers,
        )
        self.clear(wanted)
        return taken


cdef int check_batches(Py_buffer* view, Py_ssize_t start, Py_ssize_t end) except -1:
    """Refuses a range that is not made of whole batches, so that what follows need not look again."""
    cdef const uint8_t* p
    cdef int64_t size
    if start < 0 or end < start or end > view.len:
        raise ValueError(f"range {start}:{end} is outside a buffer of {view.len} bytes")
    while start < end:
        p = <const uint8_t*>view.buf + start
        size = 12 + <int64_t><int32_t>read_u32(p + 8) if end - start >= HEADER_SIZE else 0
        if size < HEADER_SIZE or size > end - start:
            raise ValueError(f"there is no whole batch at {start}")
        start += size
    return 0


include "_rows.pxi"
