# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""The last offset of each key, for compaction, compiled. `_offset_map_py` says what everything promises.

The map is a table of 128-bit hashes and offsets, as Kafka's is: keys of any length take the same room. Two
keys with equal hashes would be one key, and the older record would be lost. Whoever produces chooses the keys,
so the hash is SipHash-2-4 under a secret of each map's own: nobody can look for two that meet, nor for many
that crowd one part of the table.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from ottla.protocol._records cimport BAD_COUNT, NO_FAULT, TRAILING_BYTES, Fields, read_record

from os import urandom

cdef extern from "Python.h":
    # As Cython declares them they would count references, which a result that is still to shrink cannot have.
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char*, Py_ssize_t) except NULL
    char* data_of_bytes "PyBytes_AS_STRING"(PyObject*)
    int resize_bytes "_PyBytes_Resize"(PyObject**, Py_ssize_t) except -1

cdef enum:
    # From this many bytes on other threads may run meanwhile. It is less than for a scan: a cleaner works in
    # the background, and the thread that serves clients should not wait for it.
    LONG_SECTION = 65536
    MOST_SLOTS = 0x7FFFFFFF

cdef struct Digest:
    uint64_t low
    uint64_t high

cdef struct Slot:
    Digest digest  # All zeros in a slot that is free.
    int64_t offset

cdef struct Table:
    Slot* slots
    uint64_t capacity
    int64_t used
    int64_t most_used  # Less than the capacity, so that every search comes upon a free slot.
    uint64_t secret[2]


cdef inline uint64_t rotated(uint64_t x, int bits) noexcept nogil:
    return (x << bits) | (x >> (64 - bits))


cdef inline void mix(uint64_t* v, int rounds) noexcept nogil:
    cdef int i
    for i in range(rounds):
        v[0] += v[1]
        v[2] += v[3]
        v[1] = rotated(v[1], 13) ^ v[0]
        v[3] = rotated(v[3], 16) ^ v[2]
        v[0] = rotated(v[0], 32)
        v[2] += v[1]
        v[0] += v[3]
        v[1] = rotated(v[1], 17) ^ v[2]
        v[3] = rotated(v[3], 21) ^ v[0]
        v[2] = rotated(v[2], 32)


cdef inline uint64_t read_little_u64(const uint8_t* p) noexcept nogil:
    return (
        <uint64_t>p[0]
        | (<uint64_t>p[1] << 8)
        | (<uint64_t>p[2] << 16)
        | (<uint64_t>p[3] << 24)
        | (<uint64_t>p[4] << 32)
        | (<uint64_t>p[5] << 40)
        | (<uint64_t>p[6] << 48)
        | (<uint64_t>p[7] << 56)
    )


cdef inline Digest digest_of(const uint64_t* secret, const uint8_t* data, Py_ssize_t length) noexcept nogil:
    """SipHash-2-4 with 128 bits of output."""
    cdef uint64_t v[4]
    cdef uint64_t word, last = <uint64_t>length << 56
    cdef const uint8_t* end = data + length
    cdef int shift = 0
    cdef Digest digest
    v[0] = secret[0] ^ <uint64_t>0x736F6D6570736575
    v[1] = secret[1] ^ <uint64_t>0x646F72616E646F6D ^ 0xEE
    v[2] = secret[0] ^ <uint64_t>0x6C7967656E657261
    v[3] = secret[1] ^ <uint64_t>0x7465646279746573
    while end - data >= 8:
        word = read_little_u64(data)
        v[3] ^= word
        mix(v, 2)
        v[0] ^= word
        data += 8
    while data < end:
        last |= <uint64_t>data[0] << shift
        shift += 8
        data += 1
    v[3] ^= last
    mix(v, 2)
    v[0] ^= last
    v[2] ^= 0xEE
    mix(v, 4)
    digest.low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    mix(v, 4)
    digest.high = v[0] ^ v[1] ^ v[2] ^ v[3]
    return digest


cdef inline bint is_free(const Slot* slot) noexcept nogil:
    return slot.digest.low == 0 and slot.digest.high == 0


cdef inline Slot* find(const Table* table, const Fields* fields, Digest* digest) noexcept nogil:
    """The slot of a record's key, or the free one where it belongs."""
    cdef Slot* slot
    cdef Slot* end = table.slots + table.capacity
    digest[0] = digest_of(table.secret, fields.key, fields.key_length)
    if digest.low == 0 and digest.high == 0:
        digest.low = 1
    # The upper half of a word, as a fraction of the capacity: that need not be a power of two.
    slot = table.slots + ((digest.low >> 32) * table.capacity >> 32)
    while not is_free(slot) and (slot.digest.low != digest.low or slot.digest.high != digest.high):
        slot += 1
        if slot == end:
            slot = table.slots
    return slot


cdef int64_t enter(
    Table* table,
    const uint8_t* p,
    const uint8_t* end,
    int64_t count,
    int64_t base_offset,
    int64_t start_offset,
    int* fault,
) noexcept nogil:
    cdef Fields fields
    cdef Digest digest
    cdef Slot* slot
    cdef int64_t index = 0, offset
    if count < 0:
        fault[0] = BAD_COUNT
        return 0
    while index < count:
        p = read_record(p, end, &fields, fault)
        if p == NULL:
            return index
        offset = <int64_t>(<uint64_t>base_offset + <uint64_t><int64_t>fields.offset_delta)
        if fields.key_length >= 0 and offset >= start_offset:
            slot = find(table, &fields, &digest)
            if is_free(slot):
                if table.used >= table.most_used:
                    return index
                slot.digest = digest
                slot.offset = offset
                table.used += 1
            elif offset > slot.offset:
                slot.offset = offset
        index += 1
    if p != end:
        fault[0] = TRAILING_BYTES
    return index


cdef struct Picked:
    const uint8_t* p  # The record at `index`.
    const uint8_t* run  # From here to `p` all records are kept, and are not copied yet.
    uint8_t* out  # Where to copy them; NULL as long as none was dropped.
    int64_t index
    int64_t kept
    int64_t max_timestamp_delta
    bint has_deletes
    int fault


cdef inline bint is_kept(
    const Table* table, const Fields* fields, int64_t offset, int64_t latest_offset, bint drop_deletes
) noexcept nogil:
    cdef Digest digest
    cdef Slot* slot
    if offset > latest_offset:
        return True
    if fields.key_length < 0 or (drop_deletes and fields.value_length < 0):
        return False
    slot = find(table, fields, &digest)
    return is_free(slot) or offset >= slot.offset


cdef void pick(
    const Table* table,
    Picked* at,
    const uint8_t* end,
    int64_t count,
    int64_t base_offset,
    int64_t latest_offset,
    bint drop_deletes,
) noexcept nogil:
    """Goes through the records; stops before the first that is dropped if there is nowhere to copy to yet."""
    cdef Fields fields
    cdef const uint8_t* p = at.p
    cdef const uint8_t* record_end
    cdef int64_t offset
    while at.index < count:
        record_end = read_record(p, end, &fields, &at.fault)
        if record_end == NULL:
            return
        offset = <int64_t>(<uint64_t>base_offset + <uint64_t><int64_t>fields.offset_delta)
        if is_kept(table, &fields, offset, latest_offset, drop_deletes):
            if at.kept == 0 or fields.timestamp_delta > at.max_timestamp_delta:
                at.max_timestamp_delta = fields.timestamp_delta
            if fields.value_length < 0:
                at.has_deletes = True
            at.kept += 1
        else:
            if at.out == NULL:
                at.p = p
                return
            memcpy(at.out, at.run, p - at.run)
            at.out += p - at.run
            at.run = record_end
        p = record_end
        at.index += 1
    if p != end:
        at.fault = TRAILING_BYTES
    elif at.out != NULL:
        memcpy(at.out, at.run, p - at.run)
        at.out += p - at.run


cdef inline Py_ssize_t end_of_range(Py_buffer* view, Py_ssize_t start, object end) except -1:
    cdef Py_ssize_t stop = view.len if end is None else end
    if start < 0 or stop < start or stop > view.len:
        raise ValueError(f"range {start}:{stop} is outside a buffer of {view.len} bytes")
    return stop


@cython.final
cdef class OffsetMap:
    cdef Table table

    def __cinit__(self, int64_t slots):
        if not 0 <= slots <= MOST_SLOTS:
            raise ValueError(f"an offset map has 0 to {MOST_SLOTS} slots, not {slots}")
        # Four fifths full at most: then a key that is new costs about a dozen comparisons, side by side.
        self.table.capacity = slots + slots // 4 + 1
        self.table.most_used = slots
        self.table.slots = <Slot*>calloc(self.table.capacity, sizeof(Slot))
        if self.table.slots == NULL:
            raise MemoryError(f"no room for an offset map with {slots} slots")
        # Chance has no part in what a map answers, only in where it keeps it.
        read_secret(urandom(16), self.table.secret)

    def __dealloc__(self):
        free(self.table.slots)

    def __len__(self):
        return self.table.used

    def add(
        self,
        section,
        int64_t count,
        int64_t base_offset,
        int64_t start_offset,
        Py_ssize_t start=0,
        end=None,
    ):
        cdef Py_buffer view
        cdef Py_ssize_t stop
        cdef const uint8_t* base
        cdef int64_t index
        cdef int fault = NO_FAULT
        PyObject_GetBuffer(section, &view, PyBUF_SIMPLE)
        try:
            stop = end_of_range(&view, start, end)
            base = <const uint8_t*>view.buf
            if stop - start > LONG_SECTION:
                with nogil:
                    index = enter(
                        &self.table, base + start, base + stop, count, base_offset, start_offset, &fault
                    )
            else:
                index = enter(&self.table, base + start, base + stop, count, base_offset, start_offset, &fault)
        finally:
            PyBuffer_Release(&view)
        return (fault, index)

    def retain(
        self,
        section,
        int64_t count,
        int64_t base_offset,
        int64_t latest_offset,
        bint drop_deletes,
        Py_ssize_t start=0,
        end=None,
    ):
        cdef Py_buffer view
        cdef Py_ssize_t stop
        cdef const uint8_t* section_end
        cdef Picked at
        cdef PyObject* copied = NULL
        PyObject_GetBuffer(section, &view, PyBUF_SIMPLE)
        try:
            stop = end_of_range(&view, start, end)
            if count < 0:
                return (BAD_COUNT, 0, 0, None, False, 0)
            section_end = <const uint8_t*>view.buf + stop
            at.p = at.run = <const uint8_t*>view.buf + start
            at.out = NULL
            at.index = at.kept = at.max_timestamp_delta = 0
            at.has_deletes = False
            at.fault = NO_FAULT
            while True:
                if stop - start > LONG_SECTION:
                    with nogil:
                        pick(&self.table, &at, section_end, count, base_offset, latest_offset, drop_deletes)
                else:
                    pick(&self.table, &at, section_end, count, base_offset, latest_offset, drop_deletes)
                if at.fault:
                    return (at.fault, at.index, 0, None, False, 0)
                if at.index == count:
                    break
                # Room for the whole section, whatever becomes of its bytes meanwhile; what is too much is
                # given back.
                copied = new_bytes(NULL, stop - start)
                at.out = <uint8_t*>data_of_bytes(copied)
            if copied == NULL:
                return (NO_FAULT, -1, at.kept, None, at.has_deletes, at.max_timestamp_delta)
            resize_bytes(&copied, at.out - <uint8_t*>data_of_bytes(copied))
            return (NO_FAULT, -1, at.kept, <object>copied, at.has_deletes, at.max_timestamp_delta)
        finally:
            Py_XDECREF(copied)
            PyBuffer_Release(&view)


cdef void read_secret(bytes secret, uint64_t* out):
    out[0] = read_little_u64(<const uint8_t*>secret)
    out[1] = read_little_u64(<const uint8_t*>secret + 8)


def siphash_128(bytes secret, bytes data):
    """The hash as it is published, low word first, for the tests to compare."""
    cdef uint64_t words[2]
    cdef Digest digest
    if len(secret) != 16:
        raise ValueError("the secret of a SipHash has 16 bytes")
    read_secret(secret, words)
    digest = digest_of(words, data, len(data))
    return int(digest.low).to_bytes(8, "little") + int(digest.high).to_bytes(8, "little")
