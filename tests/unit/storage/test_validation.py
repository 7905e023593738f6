from __future__ import annotations

import struct
from typing import Any

import pytest

from ottla.protocol import compression
from ottla.protocol.batch import (
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Record,
    crc_ok,
    read_header,
    read_records,
    write_batch,
    write_crc,
)
from ottla.protocol.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, MessageTooLarge
from ottla.storage.validation import Rules, check_client_batch
from tests.unit.storage.logs import NOW, batch, settings

HOUR = 3_600_000
CODECS = [compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD]


def check(data: bytearray | bytes, **changes: Any) -> memoryview:
    """The batch as it would be stored."""
    result = check_client_batch(memoryview(data), Rules(settings(**changes)), NOW)
    stored = result[0]
    header = read_header(stored)
    assert crc_ok(stored)
    assert result[1:] == (
        header.size,
        header.attributes,
        header.last_offset_delta,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )
    return stored


def patched(data: bytearray, position: int, layout: str, value: int) -> bytearray:
    struct.pack_into(layout, data, position, value)
    write_crc(data)
    return data


@pytest.mark.parametrize("codec", [compression.NONE, *CODECS])
def test_a_good_batch_is_kept_as_it_is(codec: int) -> None:
    data = batch(b"a", b"b", codec=codec)
    before = bytes(data)
    stored = check(data)
    assert stored == before
    assert stored.obj is data


def test_bytes_that_cannot_be_written_to_are_copied() -> None:
    data = bytes(batch(b"a"))
    stored = check(data)
    assert stored == data
    assert not stored.readonly


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (b"", InvalidRecord),
        (bytes(batch(b"a"))[:-1], InvalidRecord),
        (bytes(batch(b"a"))[:40], InvalidRecord),
        (bytes(batch(b"a") + batch(b"b")), InvalidRecord),
        (bytes(batch(b"a")) + b"\0", InvalidRecord),
        (bytes(patched(batch(b"a"), 16, ">b", 1)), InvalidRecord),
        (bytes(patched(batch(b"a"), 16, ">b", 3)), CorruptMessage),
        (struct.pack(">qiib", 0, 20, 0, 2) + bytes(100), CorruptMessage),
        (bytes(patched(batch(b"a"), 0, ">q", 5)), InvalidRecord),
        (bytes(batch(b"a"))[:-1] + b"\x02", CorruptMessage),
        (bytes(patched(batch(b"a", b"b"), 57, ">i", 1)), InvalidRecord),
        (bytes(patched(batch(b"a", b"b"), 57, ">i", 3)), InvalidRecord),
        (bytes(patched(batch(b"a"), 23, ">i", 1)), InvalidRecord),
        (bytes(patched(patched(batch(b"a"), 23, ">i", -1), 57, ">i", 0)), InvalidRecord),
        (bytes(batch(b"a", attributes=CONTROL)), InvalidRecord),
        (bytes(batch(b"a", producer_id=5, producer_epoch=0)), InvalidRecord),
        (bytes(patched(batch(b"a"), 61, ">b", 100)), InvalidRecord),
        (bytes(patched(batch(b"a"), 21, ">h", compression.GZIP)), InvalidRecord),
    ],
)
def test_what_is_not_exactly_one_good_batch_is_refused(records: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        check(records)


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_counted_after_decompression(codec: int) -> None:
    data = batch(b"a", b"b", codec=codec)
    patched(data, 23, ">i", 2)
    with pytest.raises(InvalidRecord):
        check(patched(data, 57, ">i", 3))


def test_a_batch_may_not_be_larger_than_max_message_bytes() -> None:
    data = batch(bytes(1000))
    assert check(bytes(data), max_message_bytes=len(data))
    with pytest.raises(MessageTooLarge):
        check(data, max_message_bytes=len(data) - 1)


def test_a_compacted_topic_wants_keys_and_says_which_record_has_none() -> None:
    records = [Record(timestamp=NOW, key=key, value=b"v") for key in (b"a", None, b"b", None)]
    assert check(write_batch(records))
    with pytest.raises(InvalidRecord) as refused:
        check(write_batch(records), cleanup_policy=frozenset({"compact"}))
    assert [index for index, _ in refused.value.record_errors] == [1, 3]


@pytest.mark.parametrize("codec", [compression.NONE, compression.LZ4])
def test_timestamps_out_of_range_are_refused_one_by_one(codec: int) -> None:
    stamps = [NOW, NOW + HOUR, NOW + HOUR + 1, -1, NOW - HOUR, NOW - HOUR - 1]
    data = write_batch([Record(timestamp=at, value=b"v") for at in stamps], codec=codec)
    with pytest.raises(InvalidTimestamp) as refused:
        check(bytes(data), message_timestamp_before_max_ms=HOUR)
    assert [index for index, _ in refused.value.record_errors] == [2, 5]
    with pytest.raises(InvalidTimestamp) as refused:
        check(bytes(data))
    assert [index for index, _ in refused.value.record_errors] == [2]


@pytest.mark.parametrize("timestamp", [-1, 0, NOW + HOUR])
def test_no_timestamp_and_old_timestamps_are_fine_by_default(timestamp: int) -> None:
    assert read_header(check(batch(b"a", timestamp=timestamp))).max_timestamp == timestamp


def test_log_append_time_is_stamped_over_what_the_client_said() -> None:
    data = batch(b"a", b"b", timestamp=NOW - HOUR)
    stored = check(data, message_timestamp_type="LogAppendTime")
    header = read_header(stored)
    assert header.is_log_append_time
    assert (header.base_timestamp, header.max_timestamp) == (NOW - HOUR, NOW)
    assert {record.timestamp for record in read_records(stored)} == {NOW}


def test_a_client_may_not_claim_log_append_time_where_the_broker_stamps_it() -> None:
    data = batch(b"a", log_append_time_ms=NOW)
    with pytest.raises(InvalidTimestamp):
        check(bytes(data), message_timestamp_type="LogAppendTime")
    header = read_header(check(data))
    assert not header.is_log_append_time
    assert header.max_timestamp == NOW
    with pytest.raises(InvalidTimestamp):
        check(batch(b"a", log_append_time_ms=-1))


def test_a_wrong_max_timestamp_is_put_right() -> None:
    data = write_batch(
        [Record(timestamp=at, value=b"v") for at in (NOW, NOW + 7, NOW + 3)], max_timestamp=NOW
    )
    assert read_header(check(data)).max_timestamp == NOW + 7


@pytest.mark.parametrize("source", [compression.NONE, *CODECS])
@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_the_codec_of_the_topic_replaces_that_of_the_producer(source: int, wanted: str) -> None:
    records = [Record(timestamp=NOW + n, key=b"k", value=b"value" * 50) for n in range(20)]
    data = write_batch(
        records,
        codec=source,
        producer_id=4,
        producer_epoch=1,
        base_sequence=17,
        attributes=TRANSACTIONAL,
    )
    stored = check(data, compression_type=wanted)
    header = read_header(stored)
    assert header.codec == (0 if wanted == "uncompressed" else compression.NAMES.index(wanted))
    assert header.is_transactional
    assert [record.value for record in read_records(stored)] == [record.value for record in records]
    assert [record.timestamp for record in read_records(stored)] == [record.timestamp for record in records]


def test_a_batch_that_outgrows_the_limit_without_its_compression_is_refused() -> None:
    data = batch(bytes(100_000), codec=compression.ZSTD)
    with pytest.raises(MessageTooLarge):
        check(data, compression_type="uncompressed", max_message_bytes=50_000)


@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP])
def test_offset_deltas_that_do_not_count_up_are_written_anew(codec: int) -> None:
    records = [Record(offset=offset, timestamp=NOW, value=b"%d" % offset) for offset in (0, 0, 2)]
    data = write_batch(records, codec=codec, keep_offsets=True, last_offset_delta=2)
    stored = check(data)
    assert [record.offset for record in read_records(stored)] == [0, 1, 2]
    assert read_header(stored).codec == codec


def test_a_bomb_is_refused_without_being_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    data = batch(bytes(3_000_000), codec=compression.ZSTD)
    assert len(data) < 1000
    monkeypatch.setattr("ottla.storage.validation.DECOMPRESSED_BYTES", 1_000_000)
    with pytest.raises(MessageTooLarge):
        check(data)


def test_a_flag_that_is_not_ours_is_left_alone() -> None:
    assert read_header(check(batch(b"a", attributes=TRANSACTIONAL))).attributes == TRANSACTIONAL
    assert LOG_APPEND_TIME & read_header(check(batch(b"a"))).attributes == 0
