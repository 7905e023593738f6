"""The codec against bytes written down by hand from the protocol's description."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.codec import decode, encode, encode_chunks, reader, writer
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.protocol.stored.groups import ConsumerGroupMemberMetadataValue
from ottla.protocol.stored.metadata import FeatureLevelRecord, TopicRecord
from ottla.protocol.wire import MalformedFrame, UnwritableMessage


def test_an_old_version_has_wide_lengths() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=7, member_id="me")
    assert encode(request, 0) == bytes.fromhex("0001 67 00000007 0002 6d65")
    assert decode(HeartbeatRequest, 0, encode(request, 0)) == request


def test_a_flexible_version_has_compact_lengths_and_tag_sections() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=7, member_id="me")
    assert encode(request, 4) == bytes.fromhex("02 67 00000007 03 6d65 00 00")
    assert decode(HeartbeatRequest, 4, encode(request, 4)) == request


def test_null_and_empty_lists_differ() -> None:
    assert encode(MetadataRequest(topics=None), 1) == bytes.fromhex("ffffffff")
    assert encode(MetadataRequest(topics=[]), 1) == bytes.fromhex("00000000")
    assert encode(MetadataRequest(topics=None), 9) == bytes.fromhex("00 01 00 00 00")
    assert decode(MetadataRequest, 9, bytes.fromhex("00 01 00 00 00")).topics is None
    assert decode(MetadataRequest, 9, bytes.fromhex("01 01 00 00 00")).topics == []


def test_null_is_refused_in_versions_that_do_not_allow_it() -> None:
    with pytest.raises(MalformedFrame, match="topics is null"):
        decode(MetadataRequest, 0, bytes.fromhex("ffffffff"))
    with pytest.raises(UnwritableMessage):
        encode(MetadataRequest(topics=None), 0)


def test_a_struct_that_may_be_null_has_a_mark_before_it() -> None:
    absent = DescribeTopicPartitionsRequest(cursor=None)
    assert encode(absent, 0) == bytes.fromhex("01 000007d0 ff 00")
    present = DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="t", partition_index=3))
    assert encode(present, 0) == bytes.fromhex("01 000007d0 01 0274 00000003 00 00")
    for request in (absent, present):
        assert decode(DescribeTopicPartitionsRequest, 0, encode(request, 0)) == request


def test_a_tagged_struct_that_may_be_null_is_written_out_when_null() -> None:
    """As Kafka itself writes it for every member that uses the consumer protocol."""
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert encode(value, 0).endswith(bytes.fromhex("01 00 01 00"))
    assert decode(ConsumerGroupMemberMetadataValue, 0, encode(value, 0)) == value


def test_tagged_fields_that_hold_their_default_are_left_out() -> None:
    assert encode(FetchRequest(), 15)[-1:] == b"\0"
    request = FetchRequest(replica_state=ReplicaState(replica_id=1, replica_epoch=2))
    tagged = encode(request, 15)
    assert tagged.endswith(bytes.fromhex("01 01 0d 00000001 0000000000000002 00"))
    assert decode(FetchRequest, 15, tagged) == request


def test_an_equal_copy_of_a_default_is_left_out_too() -> None:
    leader = LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
    response = _produce_response(PartitionProduceResponse(current_leader=leader))
    assert encode(response, 10) == encode(_produce_response(PartitionProduceResponse()), 10)


def test_unknown_tags_are_skipped() -> None:
    known = bytes.fromhex("01 01 0d 00000001 0000000000000002 00")
    mixed = bytes.fromhex("03 01 0d 00000001 0000000000000002 00 07 00 2a 02 abcd")
    body = encode(FetchRequest(replica_state=ReplicaState(replica_id=1, replica_epoch=2)), 15)
    frame = body[: -len(known)] + mixed
    assert decode(FetchRequest, 15, frame).replica_state.replica_epoch == 2


def test_absent_fields_read_as_their_defaults() -> None:
    request = decode(FetchRequest, 0, encode(FetchRequest(max_wait_ms=5), 0))
    assert request.max_bytes == 0x7FFFFFFF
    assert request.replica_state == ReplicaState()
    assert request.forgotten_topics_data == []


def test_a_field_that_the_version_lacks_must_hold_its_default() -> None:
    with pytest.raises(UnwritableMessage, match=r"ListOffsetsPartitionResponse\.leader_epoch .* version 1"):
        encode(_list_offsets_response(leader_epoch=3), 1)
    with pytest.raises(UnwritableMessage, match="old_style_offsets"):
        encode(_list_offsets_response(old_style_offsets=[1]), 1)


def test_an_ignorable_field_that_the_version_lacks_is_dropped() -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="t")], include_topic_authorized_operations=False
    )
    assert encode(request, 4) == bytes.fromhex("00000001 0001 74 01")
    topic = TopicProduceData(name="t", topic_id=Uuid(bytes(range(16))))
    assert encode(ProduceRequest(topic_data=[topic]), 9) == bytes.fromhex(
        "00 0000 00000000 02 02 74 01 00 00"
    )


def test_a_value_out_of_range_is_unwritable() -> None:
    with pytest.raises(UnwritableMessage):
        encode(HeartbeatRequest(generation_id=2**31), 0)
    with pytest.raises(UnwritableMessage):
        encode(HeartbeatRequest(group_id="g" * 40_000), 0)
    with pytest.raises(UnwritableMessage, match="too long"):
        encode(HeartbeatRequest(group_id="g" * 40_000), 4)
    with pytest.raises(UnwritableMessage):
        encode(HeartbeatRequest(group_id="\ud800"), 4)


def test_a_version_that_does_not_exist_is_neither_read_nor_written() -> None:
    with pytest.raises(MalformedFrame, match="has no version 99"):
        decode(HeartbeatRequest, 99, b"")
    with pytest.raises(UnwritableMessage, match="has no version 99"):
        encode(HeartbeatRequest(), 99)


def test_long_strings_have_longer_lengths() -> None:
    request = HeartbeatRequest(group_id="g" * 127, member_id="m" * 20_000)
    encoded = encode(request, 4)
    assert encoded[:2] == bytes.fromhex("8001")
    assert decode(HeartbeatRequest, 4, encoded) == request


def test_bytes_behind_the_message_are_left_alone() -> None:
    encoded = encode(HeartbeatRequest(group_id="g"), 4)
    read, pos = reader(HeartbeatRequest, 4)(encoded + b"\x01\x02\x03", 0, len(encoded) + 3)
    assert (read.group_id, pos) == ("g", len(encoded))


def test_a_message_is_read_from_the_middle_of_a_buffer() -> None:
    encoded = encode(HeartbeatRequest(group_id="g", generation_id=5), 4)
    scratch = bytearray(b"\xff" * 10 + encoded + b"\xff" * 10)
    read, pos = reader(HeartbeatRequest, 4)(scratch, 10, 10 + len(encoded))
    assert (read.generation_id, pos) == (5, 10 + len(encoded))


@pytest.mark.parametrize("version", [0, 4])
def test_nothing_is_read_past_the_end_though_the_buffer_goes_on(version: int) -> None:
    encoded = encode(HeartbeatRequest(group_id="group", generation_id=5, member_id="member"), version)
    scratch = bytearray(encoded + encoded)
    for end in range(len(encoded)):
        with pytest.raises(MalformedFrame):
            reader(HeartbeatRequest, version)(scratch, 0, end)


def test_an_end_outside_of_the_buffer_is_refused() -> None:
    with pytest.raises(MalformedFrame, match="only 3 of 10 bytes"):
        decode(TopicRecord, 0, b"abc", 0, 10)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_read(kind: Any) -> None:
    request = _produce_request(b"records", Uuid(bytes(range(16))))
    buffer = kind(b"??" + encode(request, 13))
    read, pos = reader(ProduceRequest, 13)(buffer, 2, len(buffer))
    assert read == request
    assert pos == len(buffer)
    assert type(read.topic_data[0].topic_id) is Uuid


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_records_are_views_and_strings_are_copies(kind: Any) -> None:
    scratch = bytearray(encode(_produce_request(b"records"), 9))
    read = decode(ProduceRequest, 9, scratch if kind is bytearray else memoryview(scratch))
    where = scratch.index(b"records")
    scratch[where : where + 7] = b"CHANGED"
    scratch[scratch.index(b"topic")] = ord("T")
    records = read.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert bytes(records) == b"CHANGED"
    assert read.topic_data[0].name == "topic"


def test_a_writer_appends() -> None:
    out = bytearray(b"before")
    writer(FeatureLevelRecord, 0)(FeatureLevelRecord(name="f", feature_level=3), out)
    assert out == b"before" + bytes.fromhex("02 66 0003 00")


def test_a_frame_has_its_size_and_header_first() -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)])
    (frame,) = encode_chunks(response, 0, b"\0\0\0\x09")
    assert bytes(frame) == bytes.fromhex("00000010 00000009 0000 00000001 0012 0000 0004")


def test_large_records_are_handed_on_without_a_copy() -> None:
    large, small = memoryview(bytes(5000)), b"little"
    partitions = [PartitionData(partition_index=i, records=r) for i, r in enumerate((large, small, large))]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    chunks = encode_chunks(response, 12, b"HEAD\0")
    assert [chunk is large for chunk in chunks] == [False, True, False, True, False]
    frame = b"".join(chunks)
    assert struct.unpack(">i", frame[:4]) == (len(frame) - 4,)
    assert frame[4:] == b"HEAD\0" + encode(response, 12)
    assert decode(FetchResponse, 12, frame, 9) == response


def test_chunks_end_with_large_records_when_nothing_follows_them() -> None:
    partition = PartitionData(records=bytes(5000))
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    assert len(encode_chunks(response, 4, b"")) == 2


def test_a_message_without_records_is_one_chunk() -> None:
    assert len(encode_chunks(ApiVersionsRequest(client_software_name="x" * 9000), 3, b"")) == 1


def test_uuids_and_floats_and_bools_keep_their_types() -> None:
    read = decode(TopicRecord, 0, encode(TopicRecord(name="t"), 0))
    assert read.topic_id == ZERO_UUID
    assert type(read.topic_id) is Uuid


def test_the_text_of_a_reader_stays_on_it() -> None:
    source = reader(HeartbeatRequest, 4).__source__  # type: ignore[attr-defined]
    assert source.startswith("def codec(buf, pos, end")


def _produce_request(records: bytes, topic_id: Uuid = ZERO_UUID) -> ProduceRequest:
    name = "topic" if topic_id == ZERO_UUID else ""
    partition = PartitionProduceData(index=3, records=records)
    topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])


def _produce_response(partition: PartitionProduceResponse) -> ProduceResponse:
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[partition])])


def _list_offsets_response(**values: Any) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(**values)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])
