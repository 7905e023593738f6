"""Message formats 0 and 1: read, written and converted, with other clients as witnesses."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import aiokafka.record.legacy_records as aiokafka_records
import kafka.record.legacy_records as kafka_python_records
import pytest

from ottla.protocol.batch import (
    CONTROL,
    LOG_APPEND_TIME,
    Record,
    crc_ok,
    read_header,
    read_records,
    write_batch,
)
from ottla.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from ottla.protocol.errors import CorruptMessage, InvalidRecord, MessageTooLarge, UnsupportedCompressionType
from ottla.protocol.message_set import (
    down_convert,
    is_message_set,
    read_message_set,
    up_convert,
    write_message_set,
)

RECORDS = [
    Record(0, 1000, b"key", b"value"),
    Record(1, 3000, None, b"x" * 500),
    Record(2, 2000, b"", None),
]
OLD_CODECS = [NONE, GZIP, SNAPPY, LZ4]
MAGICS = [0, 1]


def stamped(magic: int, records: list[Record]) -> list[Record]:
    """What is left of records after a trip through a format: timestamps only in format 1, never headers."""
    return [Record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in records]


def message(
    magic: int,
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    attributes: int = 0,
    timestamp: int = 0,
) -> bytes:
    """One message, laid out here and not by the code under test."""
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", timestamp)
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_a_message_set_reads_back(magic: int, codec: int) -> None:
    records = [Record(r.offset + 40, r.timestamp, r.key, r.value) for r in RECORDS]
    data = write_message_set(records, magic, codec)
    assert is_message_set(data)
    assert read_message_set(data) == stamped(magic, records)


def test_messages_are_laid_out_as_kafka_has_them() -> None:
    assert bytes(write_message_set([Record(7, 5, b"k", None)], 1)) == message(
        1, 7, None, key=b"k", timestamp=5
    )
    assert bytes(write_message_set([Record(7, 5, None, b"v")], 0)) == message(0, 7, b"v")


# Neither writes LZ4 in format 0, and kafka-python takes snappy from a library that is not installed here.
OTHERS = [
    (module, magic, codec)
    for module in (aiokafka_records, kafka_python_records)
    for magic in MAGICS
    for codec in OLD_CODECS
    if (magic, codec) != (0, LZ4) and (module, codec) != (kafka_python_records, SNAPPY)
]


@pytest.mark.parametrize(("module", "magic", "codec"), OTHERS)
def test_other_clients_and_we_read_each_other(module: Any, magic: int, codec: int) -> None:
    builder = module.LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value)
    theirs = bytes(builder.build())
    assert read_message_set(theirs) == stamped(magic, RECORDS)
    if codec == NONE:
        assert bytes(write_message_set(RECORDS, magic)) == theirs
        return
    reader = module.LegacyRecordBatch(bytes(write_message_set(RECORDS, magic, codec)), magic)
    assert reader.validate_crc()
    found = [Record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in reader]
    assert found == stamped(magic, RECORDS)


def test_a_version_2_batch_is_not_a_message_set() -> None:
    assert not is_message_set(write_batch(RECORDS))
    assert not is_message_set(b"")


def test_inner_offsets_of_format_1_count_back_from_the_wrapper() -> None:
    inner = message(1, 0, b"a") + message(1, 1, b"b") + message(1, 4, b"c")
    wrapper = message(1, 104, bytes(compress(GZIP, inner)), attributes=GZIP)
    assert [r.offset for r in read_message_set(wrapper)] == [100, 101, 104]
    # Some versions of librdkafka leave the wrapper's offset at 0.
    wrapper = message(1, 0, bytes(compress(GZIP, inner)), attributes=GZIP)
    assert [r.offset for r in read_message_set(wrapper)] == [0, 1, 4]
    wrapper = message(1, 3, bytes(compress(GZIP, inner)), attributes=GZIP)
    with pytest.raises(InvalidRecord, match="offset 3"):
        read_message_set(wrapper)


def test_inner_offsets_of_format_0_are_absolute() -> None:
    inner = message(0, 100, b"a") + message(0, 104, b"b")
    wrapper = message(0, 104, bytes(compress(GZIP, inner)), attributes=GZIP)
    assert [r.offset for r in read_message_set(wrapper)] == [100, 104]


def test_a_wrapper_stamped_by_a_broker_gives_its_timestamp_to_all_inside() -> None:
    inner = message(1, 0, b"a", timestamp=1) + message(1, 1, b"b", timestamp=2)
    wrapper = message(1, 1, bytes(compress(GZIP, inner)), attributes=GZIP | LOG_APPEND_TIME, timestamp=99)
    assert [r.timestamp for r in read_message_set(wrapper)] == [99, 99]


def test_a_mixed_message_set_becomes_one_batch() -> None:
    inner = message(1, 0, b"b", timestamp=20) + message(1, 1, b"c", timestamp=30)
    data = (
        message(0, 0, b"a", key=b"k")
        + message(1, 1, bytes(compress(SNAPPY, inner)), attributes=SNAPPY)
        + message(1, 0, b"d", timestamp=10)
        + bytes(write_message_set([Record(0, 5, b"e")], 0, LZ4))
    )
    batch = up_convert(data)
    header = read_header(batch)
    assert crc_ok(batch)
    assert (header.base_offset, header.codec, header.record_count, header.producer_id) == (0, LZ4, 5, -1)
    assert header.max_timestamp == 30
    assert read_records(batch) == [
        Record(0, -1, b"k", b"a"),
        Record(1, 20, None, b"b"),
        Record(2, 30, None, b"c"),
        Record(3, 10, None, b"d"),
        Record(4, -1, b"e", None),
    ]


def test_the_codec_of_a_converted_batch_can_be_chosen() -> None:
    data = write_message_set(RECORDS, 1, GZIP)
    assert read_header(up_convert(data)).codec == GZIP
    assert read_header(up_convert(data, ZSTD)).codec == ZSTD
    assert read_header(up_convert(data, NONE)).codec == NONE


def test_an_empty_message_set_cannot_be_produced() -> None:
    with pytest.raises(InvalidRecord):
        up_convert(b"")


def test_a_message_whose_crc_is_wrong_is_corrupt_in_a_wrapper_too() -> None:
    broken = bytearray(message(1, 0, b"value"))
    broken[-1] ^= 1
    with pytest.raises(CorruptMessage):
        read_message_set(broken)
    with pytest.raises(CorruptMessage):
        read_message_set(message(1, 0, bytes(compress(GZIP, broken)), attributes=GZIP))


def test_a_message_set_that_is_cut_off_is_corrupt() -> None:
    data = message(1, 0, b"a") + message(1, 1, b"value")
    for end in range(len(message(1, 0, b"a")) + 1, len(data)):
        with pytest.raises(CorruptMessage):
            read_message_set(data[:end])


def with_body(body: bytes) -> bytes:
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


@pytest.mark.parametrize(
    "body",
    [
        struct.pack(">bbii", 0, 0, -1, 5),
        struct.pack(">bbii", 0, 0, 5, -1),
        struct.pack(">bbii", 0, 0, 0x7FFFFFFF, -1),
        struct.pack(">bbiix", 0, 0, -1, -1),
        struct.pack(">bbqh", 1, 0, 0, 0),
        struct.pack(">bbqi", 1, 0, 0, -1),
        struct.pack(">bb8x", 1, 0),
        struct.pack(">bbii", 0, GZIP, -1, -1),
        struct.pack(">bbii", 0, GZIP, -1, 0),
        struct.pack(">bbii", 0, ZSTD, -1, 0),
        struct.pack(">bbii", 0, LZ4, -1, 0),
    ],
)
def test_a_message_with_a_good_crc_and_bad_contents_is_invalid(body: bytes) -> None:
    with pytest.raises(InvalidRecord):
        read_message_set(with_body(body))


def test_a_message_of_another_format_is_corrupt() -> None:
    with pytest.raises(CorruptMessage):
        read_message_set(with_body(struct.pack(">bbii", 2, 0, -1, -1)))
    with pytest.raises(CorruptMessage):
        read_message_set(struct.pack(">qi", 0, 13) + bytes(50))


def test_wrappers_hold_plain_messages_of_their_own_format() -> None:
    inner = message(1, 0, bytes(compress(GZIP, message(1, 0, b"a"))), attributes=GZIP)
    with pytest.raises(InvalidRecord, match="inside"):
        read_message_set(message(1, 0, bytes(compress(GZIP, inner)), attributes=GZIP))
    with pytest.raises(InvalidRecord, match="format 0 in one of format 1"):
        read_message_set(message(1, 0, bytes(compress(GZIP, message(0, 0, b"a"))), attributes=GZIP))
    with pytest.raises(InvalidRecord, match="no messages"):
        read_message_set(message(1, 0, bytes(compress(GZIP, b"")), attributes=GZIP))


def test_all_wrappers_share_one_bound() -> None:
    wrapper = message(1, 0, bytes(compress(GZIP, message(1, 0, bytes(10_000)))), attributes=GZIP)
    assert len(read_message_set(wrapper * 3, limit=31_000)) == 3
    with pytest.raises(MessageTooLarge):
        read_message_set(wrapper * 3, limit=30_000)


@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_batches_are_converted_down_with_their_offsets(magic: int, codec: int) -> None:
    kept = [Record(50, 1000, b"a", b"1", [("h", b"x")]), Record(53, 900, None, b"2"), Record(57, 2000, b"c")]
    data = write_batch(kept, base_offset=48, codec=codec, keep_offsets=True)
    data += write_batch([Record(value=b"3", timestamp=5)], base_offset=60, producer_id=3)
    expected = [*stamped(magic, kept), Record(60, 5 if magic else -1, None, b"3")]
    converted = down_convert(data, magic)
    assert read_message_set(converted) == expected
    if codec:
        (offset,) = struct.unpack_from(">q", converted)
        assert offset == 57
        assert converted[17] & 7 == codec


def test_the_time_of_an_append_is_kept_and_marked_in_format_1() -> None:
    for codec in (NONE, GZIP):
        batch = write_batch(RECORDS, codec=codec, log_append_time_ms=777)
        converted = down_convert(batch, 1)
        assert converted[17] == LOG_APPEND_TIME | codec
        assert {r.timestamp for r in read_message_set(converted)} == {777}
        assert down_convert(batch, 0)[17] == codec


def test_control_batches_are_not_sent_to_old_clients() -> None:
    control = write_batch([Record(key=b"\0\0\0\1")], attributes=CONTROL, base_offset=3)
    assert down_convert(control, 1) == b""
    converted = down_convert(write_batch(RECORDS) + control + write_batch(RECORDS, base_offset=4), 1)
    assert [r.offset for r in read_message_set(converted)] == [0, 1, 2, 4, 5, 6]


def test_an_empty_batch_leaves_nothing() -> None:
    assert down_convert(write_batch([], last_offset_delta=4, codec=GZIP), 1) == b""


def test_records_before_the_offset_asked_for_are_left_out_unless_compressed() -> None:
    data = write_batch(RECORDS, base_offset=10)
    assert [r.offset for r in read_message_set(down_convert(data, 1, first_offset=11))] == [11, 12]
    compressed = write_batch(RECORDS, base_offset=10, codec=GZIP)
    assert [r.offset for r in read_message_set(down_convert(compressed, 1, first_offset=11))] == [10, 11, 12]


def test_zstd_cannot_be_converted_down() -> None:
    with pytest.raises(UnsupportedCompressionType):
        down_convert(write_batch(RECORDS) + write_batch(RECORDS, codec=ZSTD), 1)


def test_there_is_no_other_format_to_convert_to() -> None:
    with pytest.raises(ValueError, match="format 2"):
        down_convert(b"", 2)


def test_lz4_in_format_0_has_the_header_checksum_of_its_time() -> None:
    old = down_convert(write_batch(RECORDS, codec=LZ4), 0)
    new = down_convert(write_batch(RECORDS, codec=LZ4), 1)
    frame_of_old = bytes(old[old.index(b"\x04\x22\x4d\x18") :])
    frame_of_new = bytes(new[new.index(b"\x04\x22\x4d\x18") :])
    assert frame_of_old[:6] == frame_of_new[:6]
    assert frame_of_old[6] != frame_of_new[6]
