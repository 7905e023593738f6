# --- columns to records ------------------------------------------------------------------
# Included by _columns.pyx. `_rows_py` is the same in Python.

cdef enum Problem:
    NO_PROBLEM = 0
    NO_SUCH_ROW = 1
    OUTSIDE = 2
    NO_HEADER_KEY = 3
    TOO_LARGE = 4

cdef struct Column:
    int64_t count
    int64_t first
    const uint8_t* validity
    const int32_t* offsets
    const int64_t* large_offsets
    const uint8_t* data
    int64_t data_size

cdef struct Part:
    const uint8_t* data
    int64_t length  # -1 for null


cdef inline int locate(const Column* column, int64_t row, Part* part) noexcept nogil:
    cdef int64_t start, end
    if row < 0 or row >= column.count:
        return NO_SUCH_ROW
    row += column.first
    if column.validity != NULL and not column.validity[row >> 3] >> (row & 7) & 1:
        part.data = NULL
        part.length = -1
        return NO_PROBLEM
    if column.offsets != NULL:
        start = column.offsets[row]
        end = column.offsets[row + 1]
    else:
        start = column.large_offsets[row]
        end = column.large_offsets[row + 1]
    if start < 0 or end < start or end > column.data_size:
        return OUTSIDE
    part.data = column.data + start
    part.length = end - start
    return NO_PROBLEM


cdef class Source:
    """A `BinarySource`, its buffers held for as long as this lives."""

    cdef Column column
    cdef Py_buffer views[3]
    cdef int held

    def __cinit__(self, int64_t count, int64_t first, validity, offsets, data, bint is_large):
        cdef Py_buffer* view
        cdef int64_t width = 8 if is_large else 4
        self.hold(offsets)
        self.hold(data)
        self.column.count = count
        self.column.first = first
        if count < 0 or first < 0 or first + count >= max(self.views[0].len // width, 1):
            raise IndexError("a column is longer than its offsets")
        if is_large:
            self.column.large_offsets = <const int64_t*>self.views[0].buf
        else:
            self.column.offsets = <const int32_t*>self.views[0].buf
        self.column.data = <const uint8_t*>self.views[1].buf
        self.column.data_size = self.views[1].len
        if validity is not None:
            self.hold(validity)
            if 8 * self.views[2].len < first + count:
                raise IndexError("a column is longer than its validity")
            self.column.validity = <const uint8_t*>self.views[2].buf

    def __dealloc__(self):
        cdef int i
        for i in range(self.held):
            PyBuffer_Release(&self.views[i])

    cdef int hold(self, buffer) except -1:
        PyObject_GetBuffer(buffer, &self.views[self.held], PyBUF_SIMPLE)
        self.held += 1
        return 0


cdef Source source_of(given):
    return Source(given.length, given.first, given.validity, given.offsets, given.data, given.is_large)


cdef struct From:
    int64_t count
    bint has_key
    bint has_value
    bint has_headers
    Column key
    Column value
    Column header_lists
    Column header_keys
    Column header_values
    const int64_t* timestamps


cdef inline int varint_size(int64_t value) noexcept nogil:
    cdef uint64_t zigzag = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef int size = 1
    while zigzag > 0x7F:
        zigzag >>= 7
        size += 1
    return size


cdef inline uint8_t* write_varint(uint8_t* p, int64_t value) noexcept nogil:
    cdef uint64_t zigzag = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    while zigzag > 0x7F:
        p[0] = <uint8_t>(zigzag | 0x80)
        p += 1
        zigzag >>= 7
    p[0] = <uint8_t>zigzag
    return p + 1


cdef inline int64_t part_size(const Part* part) noexcept nogil:
    return 1 if part.length < 0 else varint_size(part.length) + part.length


cdef inline uint8_t* write_part(uint8_t* p, const Part* part) noexcept nogil:
    p = write_varint(p, part.length)
    if part.length > 0:
        memcpy(p, part.data, part.length)
        p += part.length
    return p


cdef struct Row:
    int64_t timestamp_delta
    int64_t offset_delta
    Part key
    Part value
    Part headers  # where they are in the columns of keys and values: a pointer that is never followed
    int64_t first_header


cdef inline int read_row(const From* given, int64_t number, Row* row) noexcept nogil:
    cdef int problem
    row.key.length = row.value.length = row.headers.length = -1
    if number < 0 or number >= given.count:
        return NO_SUCH_ROW
    if given.has_key:
        problem = locate(&given.key, number, &row.key)
        if problem:
            return problem
    if given.has_value:
        problem = locate(&given.value, number, &row.value)
        if problem:
            return problem
    if given.has_headers:
        problem = locate(&given.header_lists, number, &row.headers)
        if problem:
            return problem
        if row.headers.length > 0:
            row.first_header = given.header_lists.offsets[given.header_lists.first + number]
    return NO_PROBLEM


cdef int64_t row_size(const From* given, const Row* row, int* problem) noexcept nogil:
    """Bytes of a record without its length."""
    cdef int64_t size = 1 + varint_size(row.timestamp_delta) + varint_size(row.offset_delta)
    cdef int64_t header, count = max(row.headers.length, 0)
    cdef Part part
    size += part_size(&row.key) + part_size(&row.value) + varint_size(count)
    for header in range(row.first_header, row.first_header + count):
        problem[0] = locate(&given.header_keys, header, &part)
        if problem[0] == NO_PROBLEM and part.length < 0:
            problem[0] = NO_HEADER_KEY
        if problem[0]:
            return -1
        size += part_size(&part)
        problem[0] = locate(&given.header_values, header, &part)
        if problem[0]:
            return -1
        size += part_size(&part)
    if size > INT32_MAX - HEADER_SIZE - 5:
        problem[0] = TOO_LARGE
        return -1
    return size


cdef uint8_t* write_row(const From* given, const Row* row, int64_t size, uint8_t* p) noexcept nogil:
    cdef int64_t header, count = max(row.headers.length, 0)
    cdef Part part = Part(NULL, -1)
    p = write_varint(p, size)
    p[0] = 0
    p = write_varint(p + 1, row.timestamp_delta)
    p = write_varint(p, row.offset_delta)
    p = write_part(p, &row.key)
    p = write_part(p, &row.value)
    p = write_varint(p, count)
    for header in range(row.first_header, row.first_header + count):
        locate(&given.header_keys, header, &part)
        p = write_part(p, &part)
        locate(&given.header_values, header, &part)
        p = write_part(p, &part)
    return p


cdef struct Writing:
    const int64_t* numbers  # NULL for all rows in order
    int64_t index
    int64_t end
    int64_t size
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t timestamp  # for rows without one
    int problem


cdef inline int64_t number_at(const Writing* writing, int64_t index) noexcept nogil:
    return index if writing.numbers == NULL else writing.numbers[index]


cdef inline void date_row(
    const From* given, const Writing* writing, int64_t number, int64_t offset_delta, Row* row
) noexcept nogil:
    cdef int64_t timestamp = writing.timestamp if given.timestamps == NULL else given.timestamps[number]
    row.timestamp_delta = <int64_t>(<uint64_t>timestamp - <uint64_t>writing.base_timestamp)
    row.offset_delta = offset_delta


cdef void measure_rows(const From* given, Writing* writing, int64_t most_bytes) noexcept nogil:
    """How far a batch of `most_bytes` reaches, and all that its header has to know."""
    cdef Row row
    cdef int64_t first = writing.index, number, size, timestamp
    row.first_header = 0
    writing.size = HEADER_SIZE
    writing.base_timestamp = writing.max_timestamp = -1
    while writing.index < writing.end:
        number = number_at(writing, writing.index)
        writing.problem = read_row(given, number, &row)
        if writing.problem:
            return
        timestamp = writing.timestamp if given.timestamps == NULL else given.timestamps[number]
        if writing.index == first:
            writing.base_timestamp = timestamp
        date_row(given, writing, number, writing.index - first, &row)
        size = row_size(given, &row, &writing.problem)
        if writing.problem:
            return
        size += varint_size(size)
        if writing.index > first and writing.size + size > most_bytes:
            return
        writing.size += size
        if timestamp > writing.max_timestamp:
            writing.max_timestamp = timestamp
        writing.index += 1


cdef void write_rows(const From* given, const Writing* writing, int64_t first, uint8_t* p) noexcept nogil:
    cdef Row row
    cdef int64_t index, number
    cdef int problem = NO_PROBLEM
    row.first_header = 0
    for index in range(first, writing.index):
        number = number_at(writing, index)
        read_row(given, number, &row)
        date_row(given, writing, number, index - first, &row)
        p = write_row(given, &row, row_size(given, &row, &problem), p)


cdef class Rows:
    cdef From given
    cdef list sources
    cdef Py_buffer timestamps
    cdef bint has_timestamps

    def __cinit__(self, int64_t count, key, value, timestamps, headers):
        cdef Source source
        self.sources = []
        self.given.count = count
        for column in (key, value, headers):
            if column is not None and column.length != count:
                raise IndexError(f"a column has {column.length} rows, not {count}")
        if key is not None:
            self.keep(source_of(key), &self.given.key)
            self.given.has_key = True
        if value is not None:
            self.keep(source_of(value), &self.given.value)
            self.given.has_value = True
        if headers is not None:
            if headers.keys.length != headers.values.length:
                raise IndexError("the keys and the values of headers differ in number")
            self.keep(
                Source(headers.length, headers.first, headers.validity, headers.offsets, b"", False),
                &self.given.header_lists,
            )
            # The lists point into the columns of keys and values.
            self.given.header_lists.data_size = headers.keys.length
            self.keep(source_of(headers.keys), &self.given.header_keys)
            self.keep(source_of(headers.values), &self.given.header_values)
            self.given.has_headers = True
        if timestamps is not None:
            PyObject_GetBuffer(timestamps, &self.timestamps, PyBUF_SIMPLE)
            self.has_timestamps = True
            if self.timestamps.len != 8 * count:
                raise IndexError(f"there are {self.timestamps.len // 8} timestamps for {count} rows")
            self.given.timestamps = <const int64_t*>self.timestamps.buf

    def __dealloc__(self):
        if self.has_timestamps:
            PyBuffer_Release(&self.timestamps)

    cdef int keep(self, Source source, Column* column) except -1:
        self.sources.append(source)
        column[0] = source.column
        return 0

    @property
    def count(self):
        return self.given.count

    def write(self, rows, int64_t index, int64_t most_bytes, int64_t timestamp):
        cdef Py_buffer view
        cdef Writing writing
        cdef uint8_t* p
        memset(&writing, 0, sizeof(Writing))
        writing.index = index
        writing.timestamp = timestamp
        if index < 0:
            raise IndexError(f"there is no row {index}")
        if rows is not None:
            PyObject_GetBuffer(rows, &view, PyBUF_SIMPLE)
        try:
            writing.end = self.given.count
            if rows is not None:
                writing.numbers = <const int64_t*>view.buf
                writing.end = view.len // 8
            if most_bytes > LONG:
                with nogil:
                    measure_rows(&self.given, &writing, most_bytes)
            else:
                measure_rows(&self.given, &writing, most_bytes)
            if writing.problem:
                refuse(&writing)
            batch = PyByteArray_FromStringAndSize(NULL, writing.size)
            p = <uint8_t*>PyByteArray_AS_STRING(batch)
            memset(p, 0, HEADER_SIZE)
            if writing.size > LONG:
                with nogil:
                    write_rows(&self.given, &writing, index, p + HEADER_SIZE)
            else:
                write_rows(&self.given, &writing, index, p + HEADER_SIZE)
        finally:
            if rows is not None:
                PyBuffer_Release(&view)
        return (writing.index, batch, writing.base_timestamp, writing.max_timestamp)


cdef int refuse(const Writing* writing) except -1:
    cdef int64_t number = number_at(writing, writing.index)
    if writing.problem == NO_HEADER_KEY:
        raise HeaderWithoutKey(f"a header of row {number} has no key")
    if writing.problem == TOO_LARGE:
        raise OverflowError(f"row {number} is larger than a record can be")
    raise IndexError(f"row {number} is not there, or points outside of its data")


cdef uint32_t murmur2(const uint8_t* p, int64_t length) noexcept nogil:
    """Kafka's murmur2, unsigned."""
    cdef uint32_t m = 0x5BD1E995U, h = 0x9747B28CU ^ <uint32_t>length, k
    cdef int64_t left = length
    while left >= 4:
        k = <uint32_t>p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)
        k *= m
        k ^= k >> 24
        h = (h * m) ^ (k * m)
        p += 4
        left -= 4
    if left:
        if left == 3:
            h ^= <uint32_t>p[2] << 16
        if left >= 2:
            h ^= <uint32_t>p[1] << 8
        h = (h ^ p[0]) * m
    h = (h ^ (h >> 13)) * m
    return h ^ (h >> 15)


cdef int64_t hash_keys(const Column* key, int32_t partition_count, int32_t keyless, int32_t* out) noexcept nogil:
    cdef Part part
    cdef int64_t row
    for row in range(key.count):
        if locate(key, row, &part):
            return row
        if part.length < 0:
            out[row] = keyless
        else:
            out[row] = <int32_t>((murmur2(part.data, part.length) & 0x7FFFFFFF) % <uint32_t>partition_count)
    return -1


def partition_keys(key, int32_t partition_count, int32_t keyless):
    cdef Source source = source_of(key)
    cdef int32_t* out
    cdef int64_t bad
    if partition_count < 1:
        raise ValueError(f"{partition_count} is no number of partitions")
    partitions = PyByteArray_FromStringAndSize(NULL, 4 * source.column.count)
    out = <int32_t*>PyByteArray_AS_STRING(partitions)
    with nogil:
        bad = hash_keys(&source.column, partition_count, keyless, out)
    if bad >= 0:
        raise IndexError(f"row {bad} points outside of its data")
    return partitions


def rows_by_partition(partitions, int32_t partition_count):
    cdef Py_buffer view
    cdef const int32_t* numbers
    cdef int64_t* row_numbers
    cdef int64_t* start
    cdef int64_t* next_row
    cdef int64_t count, row, size = 8 * (max(<int64_t>partition_count, 0) + 1)
    cdef int32_t partition
    PyObject_GetBuffer(partitions, &view, PyBUF_SIMPLE)
    try:
        numbers = <const int32_t*>view.buf
        count = view.len // 4
        rows = PyByteArray_FromStringAndSize(NULL, 8 * count)
        starts = bytearray(size)
        row_numbers = <int64_t*>PyByteArray_AS_STRING(rows)
        start = <int64_t*>PyByteArray_AS_STRING(starts)
        for row in range(count):
            partition = numbers[row]
            if partition < 0 or partition >= partition_count:
                raise IndexError(f"row {row} is for partition {partition} of {partition_count}")
            start[partition + 1] += 1
        for partition in range(partition_count):
            start[partition + 1] += start[partition]
        following = bytearray(starts)
        next_row = <int64_t*>PyByteArray_AS_STRING(following)
        for row in range(count):
            partition = numbers[row]
            row_numbers[next_row[partition]] = row
            next_row[partition] += 1
    finally:
        PyBuffer_Release(&view)
    return (rows, starts)
