"""Record batches: what is written reads back, and independent implementations agree."""

from __future__ import annotations

import struct
from typing import Any

import aiokafka.record.default_records as aiokafka_records
import crc32c
import kafka.record.default_records as kafka_python_records
import pytest

from ottla.protocol.batch import (
    CONTROL,
    HEADER_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    Record,
    add_to_sequence,
    assign,
    build_batch,
    crc_ok,
    first_at_or_after,
    iter_batches,
    read_header,
    read_records,
    recompress,
    set_base_offset,
    set_leader_epoch,
    set_max_timestamp,
    uncompressed_records,
    write_batch,
)
from ottla.protocol.errors import CorruptMessage, InvalidRecord, MessageTooLarge, UnsupportedCompressionType

RECORDS = [
    Record(0, 1_700_000_000_000, b"key", b"value", [("trace", b"1"), ("none", None)]),
    Record(1, 1_699_999_999_000, None, b"", []),
    Record(2, 1_700_000_000_500, b"", None, [("", b"")]),
    Record(3, 1_700_000_000_100, b"k" * 200, b"v" * 3000, [("ключ", b"x" * 100)]),
]
CODECS = range(5)


@pytest.mark.parametrize("codec", CODECS)
def test_records_read_back_as_they_were_written(codec: int) -> None:
    batch = write_batch(RECORDS, codec=codec)
    assert crc_ok(batch)
    assert read_header(batch).codec == codec
    assert read_header(batch).max_timestamp == 1_700_000_000_500
    assert read_records(batch) == RECORDS


def test_the_header_is_laid_out_as_kafka_has_it() -> None:
    batch = write_batch(
        [Record(timestamp=5, key=b"k"), Record(timestamp=9)],
        base_offset=70,
        leader_epoch=3,
        producer_id=1000,
        producer_epoch=5,
        base_sequence=11,
        attributes=TRANSACTIONAL,
    )
    section = bytes.fromhex("0e 00 00 00 02 6b 01 00 0c 00 08 02 01 01 00")
    covered = struct.pack(">hiqqqhii", 0x10, 1, 5, 9, 1000, 5, 11, 2) + section
    expected = struct.pack(">qiibI", 70, 9 + len(covered), 3, 2, crc32c.crc32c(covered)) + covered
    assert bytes(batch) == expected
    header = read_header(batch)
    assert header == BatchHeader(
        70, len(batch) - 12, 3, 2, crc32c.crc32c(covered), 0x10, 1, 5, 9, 1000, 5, 11, 2
    )
    assert (header.size, header.last_offset, header.last_sequence) == (len(batch), 71, 12)
    assert (header.is_transactional, header.is_control, header.is_log_append_time) == (True, False, False)
    assert (header.codec, header.delete_horizon_ms) == (0, None)


def theirs(module: Any, codec: int) -> bytes:
    builder = module.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=1,
        producer_id=123,
        producer_epoch=4,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, record.headers)
    return bytes(builder.build())


# kafka-python takes snappy from a library of its own, which is not installed here.
OTHERS = [
    *((aiokafka_records, codec) for codec in CODECS),
    *((kafka_python_records, codec) for codec in CODECS if codec != 2),
]


@pytest.mark.parametrize(("module", "codec"), OTHERS)
def test_batches_of_other_clients_are_read(module: Any, codec: int) -> None:
    batch = theirs(module, codec)
    header = read_header(batch)
    assert crc_ok(batch)
    assert read_records(batch) == RECORDS
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (123, 4, 5)
    assert (header.codec, header.is_transactional, header.record_count) == (codec, True, 4)


@pytest.mark.parametrize(("module", "codec"), OTHERS)
def test_our_batches_are_read_by_other_clients(module: Any, codec: int) -> None:
    batch = write_batch(
        RECORDS, codec=codec, base_offset=1000, producer_id=9, producer_epoch=1, base_sequence=3
    )
    reader = module.DefaultRecordBatch(bytes(batch))
    assert reader.validate_crc()
    assert (reader.base_offset, reader.producer_id, reader.base_sequence) == (1000, 9, 3)
    found = [
        Record(r.offset - 1000, r.timestamp, r.key, r.value, [(str(k), v) for k, v in r.headers])
        for r in reader
    ]
    assert found == RECORDS


@pytest.mark.parametrize("module", [aiokafka_records, kafka_python_records])
def test_an_uncompressed_batch_is_the_same_bytes_in_other_clients(module: Any) -> None:
    ours = write_batch(
        RECORDS,
        producer_id=123,
        producer_epoch=4,
        base_sequence=5,
        attributes=TRANSACTIONAL,
        leader_epoch=struct.unpack_from(">i", theirs(module, 0), 12)[0],
    )
    assert bytes(ours) == theirs(module, 0)


def test_records_take_offsets_in_turn_unless_they_keep_theirs() -> None:
    records = [Record(offset=12, key=b"a"), Record(offset=15, key=b"b")]
    assert [r.offset for r in read_records(write_batch(records, base_offset=40))] == [40, 41]
    kept = write_batch(records, base_offset=10, keep_offsets=True)
    assert [r.offset for r in read_records(kept)] == [12, 15]
    assert read_header(kept).last_offset == 15
    longer = write_batch(records, base_offset=10, keep_offsets=True, last_offset_delta=9)
    assert read_header(longer).last_offset == 19


def test_an_empty_batch_keeps_its_place() -> None:
    batch = write_batch(
        [], base_offset=10, last_offset_delta=4, max_timestamp=77, producer_id=1, base_sequence=6
    )
    header = read_header(batch)
    assert len(batch) == HEADER_SIZE
    assert crc_ok(batch)
    assert (header.record_count, header.last_offset, header.last_sequence) == (0, 14, 10)
    assert (header.base_timestamp, header.max_timestamp) == (-1, 77)
    assert read_records(batch) == []


def test_every_record_of_a_batch_of_log_append_time_has_the_time_of_the_append() -> None:
    batch = write_batch(RECORDS, log_append_time_ms=5000)
    assert read_header(batch).is_log_append_time
    assert read_header(batch).base_timestamp == RECORDS[0].timestamp
    assert {record.timestamp for record in read_records(batch)} == {5000}


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    batch = write_batch(RECORDS, delete_horizon_ms=9_999)
    assert read_header(batch).delete_horizon_ms == 9_999
    assert read_header(batch).max_timestamp == 1_700_000_000_500
    assert read_records(batch) == RECORDS


def test_header_keys_that_are_not_text_keep_their_bytes() -> None:
    record = Record(key=b"k", headers=[("k\udcff", b"v")])
    batch = write_batch([record])
    assert b"k\xff" in batch
    assert read_records(batch) == [record]


def test_timestamps_at_the_ends_of_their_range_come_back() -> None:
    records = [Record(0, -(2**63)), Record(1, 2**63 - 1), Record(2, 0)]
    assert read_records(write_batch(records)) == records


def test_offsets_past_the_ends_of_their_range_wrap() -> None:
    batch = write_batch([Record(timestamp=1), Record(timestamp=2)])
    set_base_offset(batch, 2**63 - 1)
    assert [record.offset for record in read_records(batch)] == [2**63 - 1, -(2**63)]
    set_base_offset(batch, -(2**63))
    assert first_at_or_after(batch, 2) is None  # All offsets are before 0, where the search begins.


def test_sequences_wrap_to_zero() -> None:
    assert add_to_sequence(2**31 - 2, 1) == 2**31 - 1
    assert add_to_sequence(2**31 - 1, 1) == 0
    batch = write_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert read_header(batch).last_sequence == 1
    assert read_header(write_batch(RECORDS)).last_sequence == -1


def test_assigning_offset_and_epoch_leaves_the_crc_right() -> None:
    frame = bytearray(b"head") + write_batch(RECORDS)
    length = read_header(frame, 4).batch_length
    assign(memoryview(frame), 500, 8, length, 4)
    assert crc_ok(frame, 4)
    assert read_header(frame, 4)[:3] == (500, length, 8)
    set_base_offset(frame, 600, 4)
    set_leader_epoch(frame, 9, 4)
    assert crc_ok(frame, 4)
    assert read_header(frame, 4)[:3] == (600, length, 9)
    assert [record.offset for record in read_records(frame[4:])] == [600, 601, 602, 603]


def test_setting_the_max_timestamp_makes_the_crc_anew() -> None:
    frame = bytearray(b"head") + write_batch(RECORDS, codec=1, attributes=TRANSACTIONAL) + b"tail"
    set_max_timestamp(frame, 1234, log_append_time=True, pos=4)
    assert crc_ok(frame, 4)
    header = read_header(frame, 4)
    assert (header.max_timestamp, header.is_log_append_time) == (1234, True)
    assert (header.codec, header.is_transactional) == (1, True)
    set_max_timestamp(frame, 99, pos=4)
    assert crc_ok(frame, 4)
    assert (read_header(frame, 4).max_timestamp, read_header(frame, 4).is_log_append_time) == (99, False)
    assert frame[-4:] == b"tail"


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("target", CODECS)
def test_recompressing_changes_the_codec_and_nothing_else(source: int, target: int) -> None:
    batch = write_batch(
        RECORDS,
        codec=source,
        base_offset=9,
        producer_id=4,
        base_sequence=1,
        attributes=TRANSACTIONAL,
        leader_epoch=2,
    )
    again = recompress(batch, target)
    assert crc_ok(again)
    assert read_header(again).codec == target
    same = {"batch_length": 0, "crc": 0, "attributes": 0}
    assert read_header(again)._replace(**same) == read_header(batch)._replace(**same)
    assert read_header(again).attributes & ~7 == read_header(batch).attributes & ~7
    assert bytes(uncompressed_records(again)) == bytes(uncompressed_records(batch))


def test_batches_are_walked_in_place_up_to_a_partial_tail() -> None:
    one, two = write_batch(RECORDS[:1]), write_batch(RECORDS, base_offset=1)
    data = b"head" + bytes(one + two)
    for tail in (b"", bytes(one[:-1]), bytes(one[:61]), bytes(one[:60]), bytes(one[:17]), b"x"):
        found = list(iter_batches(data + tail, 4))
        assert [header.base_offset for header, _ in found] == [0, 1]
        assert [bytes(view) for _, view in found] == [one, two]
    assert [h.base_offset for h, _ in iter_batches(data, 4, len(data) - 1)] == [0]


def test_garbage_between_batches_is_corrupt() -> None:
    batch = write_batch(RECORDS)
    for garbage in (bytes(100), b"\xff" * 100, bytes(17), bytes(batch[:16]) + b"\x01" + bytes(100)):
        walk = iter_batches(bytes(batch) + garbage)
        next(walk)
        with pytest.raises(CorruptMessage):
            next(walk)


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_batch_shorter_than_its_header_is_corrupt(length: int) -> None:
    batch = write_batch(RECORDS)
    struct.pack_into(">i", batch, 8, length)
    with pytest.raises(CorruptMessage):
        read_header(batch)
    with pytest.raises(CorruptMessage):
        list(iter_batches(batch))


def test_a_batch_that_is_cut_off_is_corrupt() -> None:
    batch = write_batch(RECORDS)
    for end in (0, 20, 60):
        with pytest.raises(CorruptMessage):
            read_header(batch[:end])
    with pytest.raises(CorruptMessage):
        read_records(batch[:-1])
    with pytest.raises(CorruptMessage):
        crc_ok(batch[:-1])


def test_any_changed_bit_under_the_crc_is_noticed() -> None:
    batch = write_batch(RECORDS[:1])
    for position in (21, 30, 57, 61, len(batch) - 1):
        changed = bytearray(batch)
        changed[position] ^= 4
        assert not crc_ok(changed)


def test_bad_records_are_invalid_and_say_which() -> None:
    batch = write_batch([Record(key=b"a"), Record(key=b"b")])
    batch[-1] = 0x40
    with pytest.raises(InvalidRecord, match="record 1: its number of headers"):
        read_records(batch)
    with pytest.raises(InvalidRecord):
        first_at_or_after(batch, 10)


@pytest.mark.parametrize("count", [-1, 0, 3, 5, 2**31 - 1])
def test_a_wrong_record_count_is_invalid(count: int) -> None:
    for codec in CODECS:
        batch = write_batch(RECORDS, codec=codec)
        struct.pack_into(">i", batch, 57, count)
        with pytest.raises(InvalidRecord):
            read_records(batch)


def test_records_past_the_limit_are_not_decompressed() -> None:
    batch = write_batch([Record(value=bytes(100_000))], codec=4)
    with pytest.raises(MessageTooLarge):
        read_records(batch, limit=99_999)
    assert len(read_records(batch, limit=101_000)) == 1


def test_a_codec_that_does_not_exist_is_unsupported() -> None:
    batch = write_batch(RECORDS)
    batch[22] |= 5
    with pytest.raises(UnsupportedCompressionType):
        read_records(batch)


@pytest.mark.parametrize("codec", CODECS)
def test_the_first_record_at_or_after_a_time_is_found(codec: int) -> None:
    batch = write_batch(RECORDS, codec=codec, base_offset=50)
    assert first_at_or_after(batch, 0) == (50, 1_700_000_000_000)
    assert first_at_or_after(batch, 1_700_000_000_001) == (52, 1_700_000_000_500)
    assert first_at_or_after(batch, 0, start_offset=51) == (51, 1_699_999_999_000)
    assert first_at_or_after(batch, 1_700_000_000_001, start_offset=53) == (53, 1_700_000_000_100)
    assert first_at_or_after(batch, 1_700_000_000_501) is None


def test_in_a_batch_of_log_append_time_every_record_has_that_time_to_be_found() -> None:
    batch = write_batch(RECORDS, base_offset=50, log_append_time_ms=5000)
    assert first_at_or_after(batch, 5000) == (50, 5000)
    assert first_at_or_after(batch, 4000, start_offset=52) == (52, 5000)
    assert first_at_or_after(batch, 5001) is None


def test_a_batch_is_built_around_a_section_that_is_already_there() -> None:
    batch = write_batch(RECORDS, attributes=CONTROL, base_offset=3)
    assert build_batch(read_header(batch), uncompressed_records(batch)) == batch
