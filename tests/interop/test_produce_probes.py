"""Produce requests that clients never send, or send by mistake: the error code for each."""

from __future__ import annotations

import gzip
import uuid

import pytest
import zstandard

from tests.interop import batches
from tests.interop.batches import batch, one_header, record
from tests.interop.requests import end_offset, fetch, list_offset, produce, producer_id
from tests.interop.topics import Names, NewTopic
from tests.interop.wire import Wire

HOUR = 3_600_000

NONE, CORRUPT_MESSAGE, UNKNOWN_TOPIC, MESSAGE_TOO_LARGE = 0, 2, 3, 10
INVALID_REQUIRED_ACKS, INVALID_TIMESTAMP, UNSUPPORTED_COMPRESSION, INVALID_RECORD = 21, 32, 76, 87
UNKNOWN_TOPIC_ID = 100


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]


@pytest.mark.parametrize(
    ("records", "error"),
    [
        pytest.param(batch(b"v"), NONE, id="a good batch"),
        pytest.param(batch(b"v", timestamp=0), NONE, id="timestamp 0"),
        pytest.param(batch(b"v", timestamp=-1), NONE, id="no timestamp"),
        pytest.param(batch(b"v", key=None), NONE, id="no key"),
        pytest.param(batch(None), NONE, id="no value"),
        pytest.param(batch(b"v", attributes=batches.LOG_APPEND_TIME), NONE, id="client sets LogAppendTime"),
        pytest.param(batch(b"v", crc=1), CORRUPT_MESSAGE, id="wrong CRC"),
        pytest.param(flipped(batch(b"some value"), -2), CORRUPT_MESSAGE, id="a flipped bit"),
        pytest.param(b"", INVALID_RECORD, id="no batch"),
        pytest.param(batch(b"v") + batch(b"w"), INVALID_RECORD, id="two batches"),
        pytest.param(batch(b"v", base_offset=5), INVALID_RECORD, id="base offset"),
        pytest.param(batch(b"v", magic=1), INVALID_RECORD, id="magic 1 in the new layout"),
        pytest.param(batches.message_set_v1([b"v"]), INVALID_RECORD, id="old message set"),
        pytest.param(batch(b"v", attributes=batches.CONTROL), INVALID_RECORD, id="control batch"),
        pytest.param(batch(b"v", count=2), INVALID_RECORD, id="fewer records than counted"),
        pytest.param(batch(b"v", b"w", count=1), INVALID_RECORD, id="more records than counted"),
        pytest.param(batch(b"v", count=0), INVALID_RECORD, id="counted none"),
        pytest.param(batch(b"v", count=-1), INVALID_RECORD, id="counted less than none"),
        pytest.param(batch(b"v", last_offset_delta=3), INVALID_RECORD, id="last offset delta too large"),
        pytest.param(batch(b"v", last_offset_delta=-1), INVALID_RECORD, id="last offset delta negative"),
        pytest.param(
            batch(b"v", producer_id=7, producer_epoch=0), INVALID_RECORD, id="producer, no sequence"
        ),
        pytest.param(batch(b"v", records=b"\x02\x00"), INVALID_RECORD, id="record cut short"),
        pytest.param(
            batch(b"v", records=record(0, b"k", b"v") + b"\0\0"), INVALID_RECORD, id="surplus bytes"
        ),
    ],
)
def test_a_batch_is_judged_before_it_is_stored(wire: Wire, topic: str, records: bytes, error: int) -> None:
    answer = produce(wire, topic, records)
    assert answer.error_code == error
    assert answer.base_offset == (0 if error == NONE else -1)
    assert end_offset(wire, topic) == (1 if error == NONE else 0)
    assert produce(wire, topic, batch(b"the next one")).error_code == NONE


@pytest.mark.parametrize(
    ("records", "attributes"),
    [
        pytest.param(b"\xff" * 20, 0, id="noise"),
        pytest.param(b"no gzip at all", batches.GZIP, id="noise that claims to be gzip"),
        pytest.param(gzip.compress(record(0, b"k", b"v"))[:-3], batches.GZIP, id="gzip cut short"),
        pytest.param(gzip.compress(b"\xff" * 20), batches.GZIP, id="noise in gzip"),
        pytest.param(
            gzip.compress(record(0, b"k", b"v") + b"\0\0"), batches.GZIP, id="surplus bytes in gzip"
        ),
        pytest.param(b"no snappy at all", batches.SNAPPY, id="noise that claims to be snappy"),
        pytest.param(b"no lz4 at all", batches.LZ4, id="noise that claims to be lz4"),
        pytest.param(b"no zstd at all", batches.ZSTD, id="noise that claims to be zstd"),
        pytest.param(record(0, b"k", b"v"), 7, id="a codec that does not exist"),
    ],
)
def test_noise_with_a_valid_checksum_is_refused(
    wire: Wire, topic: str, records: bytes, attributes: int
) -> None:
    """Apache Kafka answers UNKNOWN_SERVER_ERROR to some of these; any error will do."""
    answer = produce(wire, topic, batch(b"v", records=records, attributes=attributes))
    assert answer.error_code in (-1, CORRUPT_MESSAGE, UNSUPPORTED_COMPRESSION, INVALID_RECORD)
    assert end_offset(wire, topic) == 0
    assert produce(wire, topic, batch(b"the next one")).error_code == NONE


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_acks_are_none_one_or_all(wire: Wire, topic: str, acks: int) -> None:
    assert produce(wire, topic, batch(), acks=acks).error_code == INVALID_REQUIRED_ACKS
    assert end_offset(wire, topic) == 0


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_of_produce_appends(wire: Wire, topic: str, version: int) -> None:
    for base_offset in (0, 2):
        answer = produce(wire, topic, batch(b"a", b"b"), version=version)
        assert (answer.error_code, answer.base_offset) == (NONE, base_offset)
        assert answer.log_append_time is None
        assert getattr(answer, "log_start_offset", 0) == 0
    assert end_offset(wire, topic) == 4


def test_each_partition_of_a_request_has_its_own_answer(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    partitions = [
        {"index": 0, "records": batch(b"a")},
        {"index": 1, "records": batch(b"a", crc=1)},
        {"index": 2, "records": batch(b"a", b"b")},
        {"index": 3, "records": batch(b"a")},
    ]
    response = wire.ask(
        "produce", 9, acks=1, timeout=1000, topic_data=[{"name": topic, "partition_data": partitions}]
    )
    (answers,) = [answer.partition_responses for answer in response.responses]
    errors = {answer.index: int(answer.error_code) for answer in answers}
    assert errors == {0: NONE, 1: CORRUPT_MESSAGE, 2: NONE, 3: UNKNOWN_TOPIC}


def test_produce_without_acks_is_not_answered(wire: Wire, topic: str) -> None:
    records = [{"name": topic, "partition_data": [{"index": 0, "records": batch(b"a")}]}]
    for _ in range(3):
        wire.send("produce", 9, acks=0, timeout=1000, topic_data=records)
    assert end_offset(wire, topic) == 3, "the next answer on the connection is to the next request"


def test_an_error_without_acks_closes_the_connection(wire: Wire, topic: str) -> None:
    records = [{"name": topic, "partition_data": [{"index": 0, "records": batch(b"a", crc=1)}]}]
    wire.send("produce", 9, acks=0, timeout=1000, topic_data=records)
    assert wire.is_closed()


def test_an_unknown_topic_is_not_created_by_produce(wire: Wire, unique: Names) -> None:
    name = unique("absent")
    assert produce(wire, name, batch()).error_code == UNKNOWN_TOPIC
    (found,) = wire.ask("metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False).topics
    assert found.error_code == UNKNOWN_TOPIC


def test_an_unknown_topic_id_is_named_as_such(wire: Wire) -> None:
    records = [{"topic_id": uuid.uuid4(), "partition_data": [{"index": 0, "records": batch()}]}]
    response = wire.ask("produce", 13, acks=1, timeout=1000, topic_data=records)
    ((answer,),) = [topic.partition_responses for topic in response.responses]
    assert answer.error_code == UNKNOWN_TOPIC_ID


def test_zstd_needs_version_seven(wire: Wire, topic: str) -> None:
    records = batch(b"v", records=zstandard.compress(record(0, b"k", b"v")), attributes=batches.ZSTD)
    assert produce(wire, topic, records, version=6).error_code == UNSUPPORTED_COMPRESSION
    assert produce(wire, topic, records, version=7).error_code == NONE


def test_a_batch_may_be_as_large_as_max_message_bytes(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic(max_message_bytes=2000)
    overhead = len(batch(bytes(1900))) - 1900
    assert produce(wire, topic, batch(bytes(2000 - overhead))).error_code == NONE
    assert produce(wire, topic, batch(bytes(2001 - overhead))).error_code == MESSAGE_TOO_LARGE
    assert end_offset(wire, topic) == 1


class TestTimestamps:
    def test_a_record_from_the_future_is_refused_and_named(self, wire: Wire, topic: str) -> None:
        answer = produce(wire, topic, batch(b"v", timestamp=batches.now_ms() + 2 * HOUR))
        assert answer.error_code == INVALID_TIMESTAMP
        assert [error.batch_index for error in answer.record_errors] == [0]
        assert answer.error_message

    def test_a_record_from_half_an_hour_ahead_is_taken(self, wire: Wire, topic: str) -> None:
        assert produce(wire, topic, batch(b"v", timestamp=batches.now_ms() + HOUR // 2)).error_code == NONE

    def test_a_topic_can_refuse_old_records(self, wire: Wire, new_topic: NewTopic) -> None:
        topic = new_topic(message_timestamp_before_max_ms=HOUR)
        assert produce(wire, topic, batch(b"v", timestamp=batches.now_ms() - HOUR // 2)).error_code == NONE
        old = batch(b"v", timestamp=batches.now_ms() - 2 * HOUR)
        assert produce(wire, topic, old).error_code == INVALID_TIMESTAMP

    def test_the_largest_timestamp_is_counted_not_believed(self, wire: Wire, topic: str) -> None:
        now = batches.now_ms()
        assert produce(wire, topic, batch(b"v", timestamp=now, max_timestamp=now + 5000)).error_code == NONE
        header = one_header(fetch(wire, topic, 0).records)
        assert header.max_timestamp == now
        assert header.crc_is_right

    def test_a_client_that_sets_log_append_time_is_not_believed(self, wire: Wire, topic: str) -> None:
        produce(wire, topic, batch(b"v", attributes=batches.LOG_APPEND_TIME))
        header = one_header(fetch(wire, topic, 0).records)
        assert header.attributes == 0
        assert header.crc_is_right

    def test_log_append_time_is_the_brokers(self, wire: Wire, new_topic: NewTopic) -> None:
        topic = new_topic(message_timestamp_type="LogAppendTime")
        before = batches.now_ms()
        answer = produce(wire, topic, batch(b"v", timestamp=1000))
        assert answer.error_code == NONE
        appended = round(answer.log_append_time.timestamp() * 1000)
        assert before <= appended <= batches.now_ms()
        header = one_header(fetch(wire, topic, 0).records)
        assert header.attributes & batches.LOG_APPEND_TIME
        assert header.max_timestamp == appended
        assert header.base_timestamp == 1000
        assert header.crc_is_right

    def test_a_batch_that_claims_log_append_time_is_refused_there(
        self, wire: Wire, new_topic: NewTopic
    ) -> None:
        topic = new_topic(message_timestamp_type="LogAppendTime")
        answer = produce(wire, topic, batch(b"v", attributes=batches.LOG_APPEND_TIME))
        assert answer.error_code == INVALID_TIMESTAMP


class TestTopicSettings:
    def test_a_compacted_topic_wants_keys_and_says_which_lack(self, wire: Wire, new_topic: NewTopic) -> None:
        topic = new_topic(cleanup_policy="compact")
        records = record(0, b"k", b"v") + record(1, None, b"v") + record(2, None, b"v")
        answer = produce(wire, topic, batch(b"1", b"2", b"3", records=records))
        assert answer.error_code == INVALID_RECORD
        assert [error.batch_index for error in answer.record_errors] == [1, 2]
        assert produce(wire, topic, batch(b"v", key=b"k")).error_code == NONE

    def test_the_codec_of_the_producer_is_kept(self, wire: Wire, topic: str) -> None:
        packed = gzip.compress(record(0, b"k", b"v"), mtime=0)
        sent = batch(b"v", records=packed, attributes=batches.GZIP)
        assert produce(wire, topic, sent).error_code == NONE
        stored = fetch(wire, topic, 0).records
        assert stored[61:] == packed

    @pytest.mark.parametrize(
        ("compression", "codec"),
        [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4), ("uncompressed", 0)],
    )
    def test_a_topic_can_choose_its_codec(
        self, wire: Wire, new_topic: NewTopic, compression: str, codec: int
    ) -> None:
        topic = new_topic(compression_type=compression)
        packed = gzip.compress(record(0, b"k", b"v" * 500), mtime=0)
        plain = batch(b"v" * 500)
        assert produce(wire, topic, plain).error_code == NONE
        sent = batch(b"v", records=packed, attributes=batches.GZIP)
        assert produce(wire, topic, sent).error_code == NONE
        stored = list(batches.headers(fetch(wire, topic, 0).records))
        assert [header.codec for header in stored] == [codec, codec]
        assert all(header.crc_is_right for header in stored)
        assert [header.base_offset for header in stored] == [0, 1]


class TestIdempotence:
    """One producer id, sequences sent by hand."""

    def send(
        self, wire: Wire, topic: str, pid: int, sequence: int, count: int = 1, epoch: int = 0
    ) -> tuple[int, int]:
        values = [b"%d" % number for number in range(count)]
        records = batch(*values, producer_id=pid, producer_epoch=epoch, sequence=sequence)
        answer = produce(wire, topic, records)
        return int(answer.error_code), int(answer.base_offset)

    def test_a_repeated_batch_is_acknowledged_but_not_stored_again(self, wire: Wire, topic: str) -> None:
        pid = producer_id(wire)
        for number in range(5):
            assert self.send(wire, topic, pid, number) == (0, number)
        for number in range(5):
            assert self.send(wire, topic, pid, number) == (0, number)
        assert end_offset(wire, topic) == 5

    def test_a_repeat_is_answered_with_the_time_of_the_original(self, wire: Wire, topic: str) -> None:
        pid, then = producer_id(wire), batches.now_ms() - 5000
        records = batch(b"v", producer_id=pid, producer_epoch=0, sequence=0, timestamp=then)
        assert produce(wire, topic, records).log_append_time is None
        assert round(produce(wire, topic, records).log_append_time.timestamp() * 1000) == then

    def test_a_repeat_older_than_five_batches_is_out_of_order(self, wire: Wire, topic: str) -> None:
        pid = producer_id(wire)
        for number in range(6):
            self.send(wire, topic, pid, number)
        assert self.send(wire, topic, pid, 0) == (45, -1)
        assert self.send(wire, topic, pid, 6) == (0, 6)

    @pytest.mark.parametrize(("sequence", "count"), [(4, 1), (1, 1), (1, 2), (0, 2), (2, 2)])
    def test_a_gap_or_an_overlap_is_out_of_order(
        self, wire: Wire, topic: str, sequence: int, count: int
    ) -> None:
        pid = producer_id(wire)
        assert self.send(wire, topic, pid, 0, count=3) == (0, 0)
        assert self.send(wire, topic, pid, sequence, count) == (45, -1)
        assert self.send(wire, topic, pid, 3) == (0, 3)

    def test_a_producer_unknown_on_the_partition_may_start_anywhere(self, wire: Wire, topic: str) -> None:
        pid = producer_id(wire)
        assert self.send(wire, topic, pid, 42) == (0, 0)
        assert self.send(wire, topic, pid, 44) == (45, -1)
        assert self.send(wire, topic, pid, 43) == (0, 1)

    def test_an_older_epoch_is_fenced(self, wire: Wire, topic: str) -> None:
        pid = producer_id(wire)
        assert self.send(wire, topic, pid, 0, epoch=1) == (0, 0)
        assert self.send(wire, topic, pid, 1, epoch=0) == (47, -1)
        assert end_offset(wire, topic) == 1

    def test_a_newer_epoch_starts_again_at_zero(self, wire: Wire, topic: str) -> None:
        pid = producer_id(wire)
        assert self.send(wire, topic, pid, 0) == (0, 0)
        assert self.send(wire, topic, pid, 1, epoch=1) == (45, -1)
        assert self.send(wire, topic, pid, 0, epoch=1) == (0, 1)

    def test_sequences_wrap_to_zero(self, wire: Wire, topic: str) -> None:
        pid = producer_id(wire)
        assert self.send(wire, topic, pid, 2**31 - 2, count=2) == (0, 0)
        assert self.send(wire, topic, pid, 0) == (0, 2)

    def test_a_batch_may_wrap_in_the_middle(self, wire: Wire, topic: str) -> None:
        pid = producer_id(wire)
        assert self.send(wire, topic, pid, 2**31 - 2, count=4) == (0, 0)
        assert self.send(wire, topic, pid, 2, count=1) == (0, 4)
        assert self.send(wire, topic, pid, 2**31 - 2, count=4) == (0, 0)

    def test_partitions_are_counted_apart(self, wire: Wire, new_topic: NewTopic) -> None:
        topic, pid = new_topic(partitions=2), producer_id(wire)
        for partition in (0, 1):
            for sequence in (0, 1):
                records = batch(b"v", producer_id=pid, producer_epoch=0, sequence=sequence)
                assert produce(wire, topic, records, partition=partition).error_code == NONE

    def test_two_producers_never_get_the_same_id(self, wire: Wire) -> None:
        assert len({producer_id(wire) for _ in range(50)}) == 50

    def test_an_empty_transactional_id_is_refused(self, wire: Wire) -> None:
        answer = wire.ask("init_producer_id", 4, transactional_id="", transaction_timeout=1000)
        assert answer.error_code == 42

    def test_active_producers_can_be_described(self, wire: Wire, topic: str) -> None:
        pid = producer_id(wire)
        self.send(wire, topic, pid, 0, count=3)
        response = wire.ask("describe_producers", 0, topics=[{"name": topic, "partition_indexes": [0]}])
        ((partition,),) = [found.partitions for found in response.topics]
        (producer,) = partition.active_producers
        assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (pid, 0, 2)
        assert producer.current_txn_start_offset == -1


def test_offsets_and_leader_epoch_are_written_into_the_batch(wire: Wire, topic: str) -> None:
    for _ in range(3):
        produce(wire, topic, batch(b"a", b"b"))
    stored = list(batches.headers(fetch(wire, topic, 0).records))
    assert [(header.base_offset, header.leader_epoch) for header in stored] == [(0, 0), (2, 0), (4, 0)]
    assert all(header.crc_is_right for header in stored)
    assert list_offset(wire, topic, -1).offset == 6
