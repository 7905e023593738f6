"""Control batches, laid out by hand here to compare."""

from __future__ import annotations

import struct

import crc32c
import kafka.record.default_records as kafka_python_records
import pytest

from ottla.protocol.batch import Record, crc_ok, read_header, write_batch
from ottla.protocol.control import (
    ControlRecordType,
    EndTransactionMarker,
    control_batch,
    control_key,
    control_type,
    end_transaction_batch,
    read_control_records,
    read_end_transaction,
)
from ottla.protocol.errors import InvalidRecord


@pytest.mark.parametrize("commit", [False, True], ids=["abort", "commit"])
def test_a_transaction_marker_is_78_bytes_as_kafka_writes_them(commit: bool) -> None:
    marker = EndTransactionMarker(producer_id=2001, producer_epoch=7, coordinator_epoch=13, commit=commit)
    batch = end_transaction_batch(marker, timestamp=1_700_000_000_000, base_offset=42, leader_epoch=5)
    record = (
        b"\x20\x00\x00\x00\x08"
        + struct.pack(">hh", 0, commit)
        + b"\x0c"
        + struct.pack(">hi", 0, 13)
        + b"\x00"
    )
    stamp = 1_700_000_000_000
    covered = struct.pack(">hiqqqhii", 0x30, 0, stamp, stamp, 2001, 7, -1, 1) + record
    expected = struct.pack(">qiibI", 42, 66, 5, 2, crc32c.crc32c(covered)) + covered
    assert len(batch) == 78
    assert bytes(batch) == expected
    assert read_end_transaction(batch) == marker


def test_kafka_python_sees_a_control_batch() -> None:
    batch = end_transaction_batch(EndTransactionMarker(1, 0, 0, True), timestamp=1)
    reader = kafka_python_records.DefaultRecordBatch(bytes(batch))
    assert reader.validate_crc()
    assert reader.is_control_batch
    assert reader.is_transactional
    assert [record.key for record in reader] == [b"\x00\x00\x00\x01"]


def test_the_quorums_control_records_share_a_batch() -> None:
    batch = control_batch(
        [
            (ControlRecordType.LEADER_CHANGE, b"leader"),
            (ControlRecordType.KRAFT_VERSION, b"version"),
            (ControlRecordType.KRAFT_VOTERS, b""),
        ],
        timestamp=99,
        base_offset=10,
        leader_epoch=4,
    )
    header = read_header(batch)
    assert crc_ok(batch)
    assert header.attributes == 0x20
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (10, 12, 4)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert read_control_records(batch) == [
        (10, 99, ControlRecordType.LEADER_CHANGE, b"leader"),
        (11, 99, ControlRecordType.KRAFT_VERSION, b"version"),
        (12, 99, ControlRecordType.KRAFT_VOTERS, b""),
    ]
    assert read_end_transaction(batch) is None


def test_types_have_kafkas_numbers() -> None:
    assert [type.value for type in ControlRecordType] == [-1, 0, 1, 2, 3, 4, 5, 6]
    assert control_key(ControlRecordType.SNAPSHOT_FOOTER) == b"\x00\x00\x00\x04"
    assert control_type(b"\x00\x00\x00\x03") is ControlRecordType.SNAPSHOT_HEADER


def test_types_and_key_versions_of_a_later_kafka_are_passed_over() -> None:
    assert control_type(b"\x00\x00\x00\x63") is ControlRecordType.UNKNOWN
    assert control_type(b"\x00\x01\x00\x01more") is ControlRecordType.COMMIT


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x01"])
def test_a_key_that_has_no_type_is_invalid(key: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        control_type(key)


@pytest.mark.parametrize("value", [None, b"", b"\x00\x00\x00\x00\x00", b"\xff\xff\x00\x00\x00\x01"])
def test_a_marker_without_its_value_is_invalid(value: bytes | None) -> None:
    batch = write_batch([Record(key=control_key(ControlRecordType.ABORT), value=value)], attributes=0x30)
    with pytest.raises(InvalidRecord):
        read_end_transaction(batch)


def test_a_control_batch_that_compaction_emptied_holds_no_marker() -> None:
    assert read_end_transaction(write_batch([], attributes=0x30)) is None
