"""Records of `__consumer_offsets`: Kafka's bytes, and what becomes of bytes that are not Kafka's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.ids import Uuid
from ottla.core.outcome import LogRecord
from ottla.groups.group import Committed
from ottla.groups.offsets import commit_record, commit_tombstone
from ottla.groups.records import read, record, tombstone
from ottla.protocol.stored.groups import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

TOPIC_ID = Uuid(bytes(range(1, 17)))


def test_a_position_is_written_in_version_4_with_the_topic_id() -> None:
    written = commit_record("g", "t", 3, Committed(7, 2, "m", 1_000, topic_id=TOPIC_ID))
    assert written.key.hex(" ") == "00 01 00 01 67 00 01 74 00 00 00 03"
    # version, offset, leader epoch, compact metadata, commit time, one tagged field: 0, of 16 bytes
    assert written.value == bytes.fromhex(
        "0004 0000000000000007 00000002 02 6d 00000000000003e8 01 00 10" + TOPIC_ID.hex()
    )


def test_a_position_without_a_topic_id_has_no_tagged_field() -> None:
    written = commit_record("g", "t", 3, Committed(7, -1, "", 1_000))
    assert written.value == bytes.fromhex("0004 0000000000000007 ffffffff 01 00000000000003e8 00")


def test_a_position_that_expires_by_itself_is_written_in_version_1() -> None:
    written = commit_record("g", "t", 3, Committed(7, 2, "m", 1_000, expire_timestamp=2_000))
    assert written.value == bytes.fromhex("0001 0000000000000007 0001 6d 00000000000003e8 00000000000007d0")
    entry = read(written)
    assert entry is not None and entry.value is not None
    assert (entry.value.expire_timestamp, entry.value.leader_epoch) == (2_000, -1)


def test_a_group_is_written_in_version_3() -> None:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="m",
        current_state_timestamp=5,
        members=[
            MemberMetadata(
                member_id="m",
                group_instance_id=None,
                client_id="c",
                client_host="/1",
                rebalance_timeout=9,
                session_timeout=8,
                subscription=b"\x01",
                assignment=b"\x02\x03",
            )
        ],
    )
    written = record(GroupMetadataKey(group="g"), value, 3)
    assert written.key == bytes.fromhex("0002 0001 67")
    assert written.value == bytes.fromhex(
        "0003 0008 636f6e73756d6572 00000001 0005 72616e6765 0001 6d 0000000000000005 00000001"
        "0001 6d ffff 0001 63 0002 2f31 00000009 00000008 00000001 01 00000002 0203"
    )


def test_a_tombstone_has_no_value() -> None:
    assert commit_tombstone("g", "t", 3) == (bytes.fromhex("0001 0001 67 0001 74 00000003"), None)
    assert tombstone(GroupMetadataKey(group="g")) == (bytes.fromhex("0002 0001 67"), None)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_positions_of_every_version_are_read(version: int) -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    entry = read(record(key, OffsetCommitValue(offset=9, metadata="m", commit_timestamp=3), version))
    assert entry is not None and entry.value is not None
    assert (entry.type, entry.key, entry.value.offset, entry.value.metadata) == (1, key, 9, "m")


def test_positions_from_before_groups_are_read() -> None:
    entry = read(LogRecord(bytes.fromhex("0000 0001 67 0001 74 00000003"), None))
    assert entry is not None and (entry.type, entry.key.group, entry.value) == (0, "g", None)


@pytest.mark.parametrize(
    "strange",
    [
        LogRecord(b"", b""),
        LogRecord(b"\x00", None),
        LogRecord(bytes.fromhex("03e7 0001 67"), b"\x00\x00"),  # a type of the future
        LogRecord(bytes.fromhex("0002 0001 67"), b"\x00\x63"),  # a version of the future
        LogRecord(bytes.fromhex("0002 0001 67"), b""),
        LogRecord(bytes.fromhex("0002 7fff 67"), None),
        LogRecord(bytes.fromhex("0001 0001 67 0001 74 00000003"), b"\x00\x04\x00"),
    ],
)
def test_what_is_not_understood_is_passed_over(strange: LogRecord) -> None:
    assert read(strange) is None


@given(st.binary(max_size=64), st.none() | st.binary(max_size=64))
def test_noise_is_read_as_something_or_nothing_but_never_fails(key: bytes, value: bytes | None) -> None:
    read(LogRecord(key, value))
