"""Frames that mean harm: each has to end in `MalformedFrame`, soon and without taking memory.

The lengths in such frames are the attack: a few bytes that claim millions of items or fields.
"""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.protocol.codec import decode, encode, reader
from ottla.protocol.headers import RequestHeader, read_request_header, request_head
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.offset_delete import OffsetDeleteRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.read_source import OBJECTS_PER_REQUEST, least_struct_size
from ottla.protocol.schema import fields_of
from ottla.protocol.wire import MalformedFrame
from tests.unit.protocol.message_values import api_messages, stored_messages, versions_of

MIB = 1024 * 1024


@contextmanager
def refused_cheaply(match: str) -> Iterator[None]:
    """The block has to raise `MalformedFrame` and must at no time have held a MiB more."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        with pytest.raises(MalformedFrame, match=match):
            yield
        assert tracemalloc.get_traced_memory()[1] - before < MIB
    finally:
        tracemalloc.stop()


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


@pytest.mark.parametrize("count", [0x7FFFFFFF, 20_000_000, 100_000])
@pytest.mark.parametrize("version", [1, 9])
def test_an_array_cannot_claim_more_items_than_bytes_are_left_for(version: int, count: int) -> None:
    length = struct.pack(">i", count) if version == 1 else uvarint(count + 1)
    frame = length + bytes(1000)
    with refused_cheaply("topics has"):
        decode(MetadataRequest, version, frame)


def test_an_array_length_that_overflows_an_int_is_refused() -> None:
    with refused_cheaply("topics has"):
        decode(MetadataRequest, 9, bytes.fromhex("ffffffff7f") + bytes(1000))


@pytest.mark.parametrize("count", [0x7FFFFFFF, 600])
def test_an_array_of_numbers_is_bounded_by_their_width(count: int) -> None:
    frame = bytes.fromhex("00000000 00000000 00000000 7fffffff 00 00000000 00000000")
    frame += struct.pack(">i", 0) + struct.pack(">i", 1) + b"\0\x01t" + struct.pack(">i", count) + bytes(2000)
    with refused_cheaply("partitions has"):
        decode(FetchRequest, 7, frame)


def test_tag_counts_are_bounded() -> None:
    """CVE-2026-111115: two bytes of tagged field made an object, tens of millions of them in one header."""
    body = encode(HeartbeatRequest(), 4)[:-1]
    for count in (128, 20_000_000, 0x7FFFFFFF):
        frame = body + uvarint(count) + bytes(4 * MIB)
        with refused_cheaply("too many tagged fields"):
            decode(HeartbeatRequest, 4, frame)


def test_a_tag_count_needs_two_bytes_for_each() -> None:
    body = encode(HeartbeatRequest(), 4)[:-1]
    with refused_cheaply("too many tagged fields"):
        decode(HeartbeatRequest, 4, body + b"\x05" + bytes(9))


def test_tag_counts_are_bounded_in_the_header_that_comes_before_authentication() -> None:
    head = request_head(18, 3, 1, "client")[:-1]
    frame = bytearray(head + uvarint(20_000_000) + bytes(4 * MIB))
    with refused_cheaply("too many tagged fields"):
        read_request_header(frame, 0, len(frame))


@pytest.mark.parametrize("tags", ["02 05 00 04 00", "02 05 00 05 00", "03 00 00 01 00 00 00"])
def test_tags_come_in_ascending_order_and_once(tags: str) -> None:
    with pytest.raises(MalformedFrame, match="follows tag"):
        decode(HeartbeatRequest, 4, encode(HeartbeatRequest(), 4)[:-1] + bytes.fromhex(tags))


def test_a_tag_cannot_be_larger_than_the_frame() -> None:
    with refused_cheaply("runs past the end"):
        decode(
            HeartbeatRequest,
            4,
            encode(HeartbeatRequest(), 4)[:-1] + bytes.fromhex("01 00 ffffffff07") + bytes(99),
        )


@pytest.mark.parametrize("size", ["0c", "0e"])
def test_a_known_tag_has_to_be_of_the_size_it_says(size: str) -> None:
    body = encode(FetchRequest(), 15)[:-1]
    tagged = bytes.fromhex(f"01 01 {size} 00000001 0000000000000002 00 00 00")
    with pytest.raises(MalformedFrame, match="size"):
        decode(FetchRequest, 15, body + tagged)


def test_tags_of_no_size_do_not_loop_for_ever() -> None:
    tags = b"\x7f" + b"".join(bytes([tag, 0]) for tag in range(127))
    assert decode(HeartbeatRequest, 4, encode(HeartbeatRequest(), 4)[:-1] + tags) == HeartbeatRequest()


@pytest.mark.parametrize("varint", ["8080808080", "ffffffffff01", "80808080808080808000"])
def test_a_varint_has_at_most_five_bytes(varint: str) -> None:
    with pytest.raises(MalformedFrame, match="longer than five bytes"):
        decode(HeartbeatRequest, 4, bytes.fromhex(varint) + bytes(20))


def test_a_varint_that_is_cut_off_is_refused() -> None:
    for cut in ("ff", "ffff", "8080"):
        with pytest.raises(MalformedFrame):
            decode(HeartbeatRequest, 4, bytes.fromhex(cut))


@pytest.mark.parametrize("message, version", [(SaslAuthenticateRequest, 0), (SaslAuthenticateRequest, 2)])
@pytest.mark.parametrize("length", [1001, 0x7FFFFFF0])
def test_bytes_cannot_be_longer_than_the_frame(message: Any, version: int, length: int) -> None:
    prefix = struct.pack(">i", length) if version == 0 else uvarint(length + 1)
    scratch = bytearray(prefix + bytes(4 * MIB))
    with refused_cheaply("runs past the end"):
        reader(message, version)(scratch, 0, 1000)


def test_records_cannot_be_longer_than_the_frame() -> None:
    frame = bytes.fromhex("ffff 0001 00000000 00000001 0001 74 00000001 00000000 7fffffff") + bytes(100)
    with refused_cheaply("records runs past the end"):
        decode(ProduceRequest, 7, frame)


def test_a_string_is_at_most_32767_bytes_even_where_its_length_is_compact() -> None:
    with pytest.raises(MalformedFrame, match="group_id is too long"):
        decode(HeartbeatRequest, 4, uvarint(0x8001) + bytes(70_000))


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"abc\xe2\x82"])
@pytest.mark.parametrize("version", [0, 4])
def test_strings_are_strict_utf_8(version: int, text: bytes) -> None:
    prefix = struct.pack(">h", len(text)) if version == 0 else uvarint(len(text) + 1)
    with pytest.raises(MalformedFrame):
        decode(HeartbeatRequest, version, prefix + text + bytes(40))


def test_a_request_may_not_be_made_of_too_many_parts() -> None:
    """Each of these names takes one byte in the frame and some fifty in memory."""
    count = OBJECTS_PER_REQUEST + 1
    frame = uvarint(1) + uvarint(count + 1) + bytes([1, 0, 0]) * count + b"\0"
    with refused_cheaply("too many parts"):
        decode(LeaveGroupRequest, 4, frame)


def test_parts_are_counted_over_all_of_a_request() -> None:
    """No single list is long here, but there are many of them."""
    partitions = 1000
    topic = b"\0\x01t" + struct.pack(">i", partitions) + bytes(4 * partitions)
    frame = b"\0\x01g" + struct.pack(">i", 200) + topic * 200
    with pytest.raises(MalformedFrame, match="too many parts"):
        decode(OffsetDeleteRequest, 0, frame)


def test_skipped_tags_count_as_parts() -> None:
    tags = b"\x7f" + b"".join(bytes([tag, 0]) for tag in range(127))
    member = bytes([1, 0]) + tags
    frame = uvarint(1) + uvarint(1001) + member * 1000 + b"\0"
    with pytest.raises(MalformedFrame, match="too many parts"):
        decode(LeaveGroupRequest, 4, frame)


def test_a_broker_may_answer_with_more_parts_than_a_client_may_ask() -> None:
    """A large cluster has more partitions than any honest request has parts."""
    count = OBJECTS_PER_REQUEST + 10
    replicas = struct.pack(">i", count) + bytes(4 * count)
    partition = bytes.fromhex("0000 00000000 00000000") + replicas + bytes(4)
    topic = b"\0\0" + b"\0\x01t" + struct.pack(">i", 1) + partition
    frame = struct.pack(">i", 0) + struct.pack(">i", 1) + topic
    response = decode(MetadataResponse, 0, frame)
    assert len(response.topics[0].partitions[0].replica_nodes) == count


def test_every_item_of_every_array_takes_at_least_a_byte() -> None:
    """Or an array's length would be bounded by nothing."""

    def check(cls: Any, version: int, flexible: bool) -> None:
        for field in fields_of(cls):
            if field.struct is not None and version in field.versions:
                assert least_struct_size(field.struct, version, flexible) > 0 or not field.repeated
                check(field.struct, version, flexible)

    for message in api_messages() + stored_messages():
        for version in versions_of(message):
            check(message, version, message.flexible is not None and version in message.flexible)


@pytest.mark.parametrize("size", range(12))
def test_a_header_that_is_cut_off_is_refused(size: int) -> None:
    whole = request_head(18, 3, 1, "cl")
    assert len(whole) == 13
    with pytest.raises(MalformedFrame):
        read_request_header(bytearray(whole), 0, size)


def test_a_header_with_tags_to_skip_is_read() -> None:
    frame = request_head(18, 3, 7, "client")[:-1] + bytes.fromhex("01 05 02 abcd") + b"body"
    header, pos = read_request_header(frame, 0, len(frame))
    assert header.correlation_id == 7
    assert frame[pos:] == b"body"


def test_a_header_of_an_api_that_nobody_has_is_refused() -> None:
    for key in (-1, 93, 32767, -32768):
        frame = struct.pack(">hhih", key, 0, 1, -1)
        with pytest.raises(MalformedFrame, match="api key"):
            read_request_header(frame, 0, len(frame))


def test_a_client_id_is_strict_utf_8() -> None:
    frame = struct.pack(">hhih", 18, 0, 1, 2) + b"\xff\xff"
    with pytest.raises(MalformedFrame):
        read_request_header(frame, 0, len(frame))


def test_a_refused_frame_names_the_message() -> None:
    with pytest.raises(MalformedFrame, match="ApiVersionsRequest v3"):
        decode(ApiVersionsRequest, 3, b"")
    with pytest.raises(MalformedFrame, match="RequestHeader v1"):
        decode(RequestHeader, 1, b"\0")
