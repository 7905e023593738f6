# cython: language_level=3
"""Reading one record, for the compiled modules that do: every read of untrusted bytes is in here.

Nothing reads past `end`: every varint is bounded by the bytes that remain and by its own greatest width, every
length is compared with what remains before it is followed. A fault is a number, never an exception. There is
no module of this name: the functions are compiled into those that cimport them.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef enum:
    HEADER_SIZE = 61
    SMALLEST_RECORD = 7

cdef enum Fault:
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

cdef struct Fields:
    int64_t timestamp_delta
    int32_t offset_delta
    int32_t key_length
    int32_t value_length
    int32_t header_count
    const uint8_t* key
    const uint8_t* value
    const uint8_t* headers


cdef inline uint32_t read_u32(const uint8_t* p) noexcept nogil:
    return (<uint32_t>p[0] << 24) | (<uint32_t>p[1] << 16) | (<uint32_t>p[2] << 8) | <uint32_t>p[3]


cdef inline int64_t read_i64(const uint8_t* p) noexcept nogil:
    return <int64_t>((<uint64_t>read_u32(p) << 32) | read_u32(p + 4))


cdef inline int16_t read_i16(const uint8_t* p) noexcept nogil:
    return <int16_t>((<uint32_t>p[0] << 8) | <uint32_t>p[1])


cdef inline const uint8_t* long_varint(
    const uint8_t* p, const uint8_t* end, int bits, uint64_t* out
) noexcept nogil:
    # As in Kafka, bits past the last are dropped and a sixth or eleventh byte is refused.
    cdef uint64_t value = 0, byte
    cdef int shift = 0
    while p < end and shift < bits:
        byte = p[0]
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            out[0] = value
            return p
        shift += 7
    return NULL


cdef inline const uint8_t* read_varint(const uint8_t* p, const uint8_t* end, int32_t* out) noexcept nogil:
    """Reads a zigzag varint of at most five bytes; NULL if there is none before `end`."""
    cdef uint32_t byte
    cdef uint64_t value = 0
    if p >= end:
        return NULL
    byte = p[0]
    if byte < 0x80:
        out[0] = <int32_t>((byte >> 1) ^ (0 - (byte & 1)))
        return p + 1
    if end - p > 1 and p[1] < 0x80:
        byte = (byte & 0x7F) | (<uint32_t>p[1] << 7)
        out[0] = <int32_t>((byte >> 1) ^ (0 - (byte & 1)))
        return p + 2
    p = long_varint(p, end, 32, &value)
    byte = <uint32_t>value
    out[0] = <int32_t>((byte >> 1) ^ (0 - (byte & 1)))
    return p


cdef inline const uint8_t* read_varlong(const uint8_t* p, const uint8_t* end, int64_t* out) noexcept nogil:
    """Reads a zigzag varlong of at most ten bytes; NULL if there is none before `end`."""
    cdef uint64_t value = 0
    if p >= end:
        return NULL
    if p[0] < 0x80:
        value = p[0]
        p += 1
    else:
        p = long_varint(p, end, 64, &value)
    out[0] = <int64_t>((value >> 1) ^ (0 - (value & 1)))
    return p


cdef inline const uint8_t* read_record(
    const uint8_t* p, const uint8_t* end, Fields* fields, int* fault
) noexcept nogil:
    """Reads the record at `p` into `fields` and returns where it ends, or NULL with the fault."""
    cdef int32_t length, header
    cdef const uint8_t* record_end
    p = read_varint(p, end, &length)
    if p == NULL:
        fault[0] = BAD_VARINT
        return NULL
    if length < 1 or length > end - p:
        fault[0] = BAD_LENGTH
        return NULL
    record_end = p + length
    p += 1  # Attributes of a record: none is defined, and Kafka ignores the byte.
    fault[0] = BAD_VARINT
    p = read_varlong(p, record_end, &fields.timestamp_delta)
    if p == NULL:
        return NULL
    p = read_varint(p, record_end, &fields.offset_delta)
    if p == NULL:
        return NULL
    p = read_varint(p, record_end, &fields.key_length)
    if p == NULL:
        return NULL
    fields.key = p
    if fields.key_length > 0:
        if fields.key_length > record_end - p:
            fault[0] = BAD_KEY
            return NULL
        p += fields.key_length
    p = read_varint(p, record_end, &fields.value_length)
    if p == NULL:
        return NULL
    fields.value = p
    if fields.value_length > 0:
        if fields.value_length > record_end - p:
            fault[0] = BAD_VALUE
            return NULL
        p += fields.value_length
    p = read_varint(p, record_end, &fields.header_count)
    if p == NULL:
        return NULL
    fields.headers = p
    # A header takes two bytes at least, so a count that cannot fit is refused before it is walked.
    if fields.header_count < 0 or fields.header_count > (record_end - p) >> 1:
        fault[0] = BAD_HEADER_COUNT
        return NULL
    for header in range(fields.header_count):
        p = read_varint(p, record_end, &length)
        if p == NULL:
            return NULL
        if length < 0 or length > record_end - p:
            fault[0] = BAD_HEADER_KEY
            return NULL
        p += length
        p = read_varint(p, record_end, &length)
        if p == NULL:
            return NULL
        if length > 0:
            if length > record_end - p:
                fault[0] = BAD_HEADER_VALUE
                return NULL
            p += length
    if p != record_end:
        fault[0] = WRONG_SIZE
        return NULL
    fault[0] = NO_FAULT
    # The same as `p`, but known sooner: the processor can begin with the next record meanwhile.
    return record_end
