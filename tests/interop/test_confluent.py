"""librdkafka through confluent-kafka: what is produced comes back as it was."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from tests.interop.batches import headers
from tests.interop.clients import ConfluentProducer, confluent_consumer, poll_until, read_with_confluent
from tests.interop.requests import fetch
from tests.interop.topics import Names, NewTopic
from tests.interop.wire import Wire

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("codec", CODECS)
def test_messages_of_every_codec_come_back(bootstrap: str, topic: str, codec: str) -> None:
    producer = ConfluentProducer(bootstrap, compression_type=codec)
    sent = [(b"key-%d" % number, b"a value that repeats " * 20 + b"%d" % number) for number in range(500)]
    for key, value in sent:
        producer.send(topic, value, key=key)
    producer.flush()
    found = read_with_confluent(bootstrap, topic, len(sent))
    assert [(message.key(), message.value()) for message in found] == sent
    assert [message.offset() for message in found] == list(range(500))


@pytest.mark.parametrize(("codec", "number"), [("gzip", 1), ("snappy", 2), ("zstd", 4)])
def test_compressed_batches_stay_compressed(
    bootstrap: str, wire: Wire, topic: str, codec: str, number: int
) -> None:
    producer = ConfluentProducer(bootstrap, compression_type=codec, linger_ms=50)
    for _ in range(100):
        producer.send(topic, b"again " * 100)
    producer.flush()
    found = list(headers(fetch(wire, topic, 0).records))
    assert {header.codec for header in found} == {number}


@pytest.mark.parametrize(("acks", "idempotent"), [("0", False), ("1", False), ("all", False), ("all", True)])
def test_every_level_of_acknowledgement(bootstrap: str, topic: str, acks: str, idempotent: bool) -> None:
    producer = ConfluentProducer(bootstrap, acks=acks, enable_idempotence=idempotent)
    for number in range(300):
        producer.send(topic, b"%d" % number)
    assert len(producer.flush()) == 300
    found = read_with_confluent(bootstrap, topic, 300)
    assert [message.value() for message in found] == [b"%d" % number for number in range(300)]


def test_keys_values_and_headers_may_be_empty_or_missing(bootstrap: str, topic: str) -> None:
    cases = [
        (None, None, None),
        (b"", b"", []),
        (b"key", None, [("one", b"1")]),
        (None, b"value", [("repeated", b"1"), ("repeated", b"2"), ("null", None), ("empty", b"")]),
        ("ключ".encode(), bytes(range(256)), [("ünïcode", "値".encode())]),
    ]
    producer = ConfluentProducer(bootstrap)
    for key, value, header_list in cases:
        producer.send(topic, value, key=key, headers=header_list)
    producer.flush()
    found = read_with_confluent(bootstrap, topic, len(cases))
    seen = [(message.key(), message.value(), message.headers() or None) for message in found]
    assert seen == [(key, value, header_list or None) for key, value, header_list in cases]


def test_create_time_is_the_producers(bootstrap: str, topic: str) -> None:
    base = round(time.time() * 1000) - 86_400_000
    producer = ConfluentProducer(bootstrap)
    for number in (5, 1, 3):
        producer.send(topic, b"x", timestamp=base + number)
    producer.flush()
    found = read_with_confluent(bootstrap, topic, 3)
    assert [message.timestamp() for message in found] == [
        (TIMESTAMP_CREATE_TIME, base + number) for number in (5, 1, 3)
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time_is_the_brokers(bootstrap: str, new_topic: NewTopic, codec: str) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    before = round(time.time() * 1000)
    producer = ConfluentProducer(bootstrap, compression_type=codec)
    for _ in range(20):
        producer.send(topic, b"x" * 100, timestamp=1000)
    producer.flush()
    after = round(time.time() * 1000)
    for message in read_with_confluent(bootstrap, topic, 20):
        kind, timestamp = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert before <= timestamp <= after


def test_fifty_thousand_small_messages(bootstrap: str, topic: str) -> None:
    count = 50_000
    producer = ConfluentProducer(bootstrap, linger_ms=5, compression_type="none")
    for number in range(count):
        producer.send(topic, b"%d" % number)
    producer.flush()
    found = read_with_confluent(bootstrap, topic, count)
    assert [message.value() for message in found] == [b"%d" % number for number in range(count)]


def test_one_message_per_request(bootstrap: str, topic: str) -> None:
    producer = ConfluentProducer(bootstrap, linger_ms=0, batch_num_messages=1, enable_idempotence=True)
    for number in range(2000):
        producer.send(topic, b"%d" % number)
    producer.flush()
    found = read_with_confluent(bootstrap, topic, 2000)
    assert [message.value() for message in found] == [b"%d" % number for number in range(2000)]


def test_messages_up_to_the_limit_come_back(bootstrap: str, topic: str) -> None:
    producer = ConfluentProducer(bootstrap, message_max_bytes=1_000_000)
    sizes = [1, 60_000, 64 * 1024, 500_000, 999_000]
    for size in sizes:
        producer.send(topic, bytes(size))
    producer.flush()
    assert [len(message.value()) for message in read_with_confluent(bootstrap, topic, 5)] == sizes


def test_a_topic_can_allow_ten_megabytes(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(max_message_bytes=11_000_000)
    producer = ConfluentProducer(bootstrap, message_max_bytes=12_000_000)
    value = bytes(range(256)) * (10_000_000 // 256)
    for _ in range(2):
        producer.send(topic, value)
    producer.flush()
    small_fetches = {"fetch_message_max_bytes": 100_000, "receive_message_max_bytes": 100_000_000}
    found = read_with_confluent(bootstrap, topic, 2, **small_fetches)
    assert [message.value() == value for message in found] == [True, True]


def test_a_message_above_the_limit_is_refused(bootstrap: str, topic: str) -> None:
    producer = ConfluentProducer(bootstrap, message_max_bytes=5_000_000)
    producer.send(topic, bytes(2_000_000))
    with pytest.raises(KafkaException) as refused:
        producer.flush()
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    producer.failed.clear()
    producer.send(topic, b"small")
    producer.flush()
    assert read_with_confluent(bootstrap, topic, 1)[0].value() == b"small"


def test_two_hundred_partitions(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=200)
    producer = ConfluentProducer(bootstrap)
    for number in range(2000):
        producer.send(topic, b"%d" % number, partition=number % 200)
    producer.flush()
    found = read_with_confluent(bootstrap, topic, 2000, partitions=range(200))
    by_partition: dict[int, list[int]] = {}
    for message in found:
        by_partition.setdefault(message.partition(), []).append(int(message.value()))
    assert by_partition == {number: list(range(number, 2000, 200)) for number in range(200)}


def test_a_consumer_starts_where_it_is_told(bootstrap: str, topic: str) -> None:
    producer = ConfluentProducer(bootstrap)
    for number in range(100):
        producer.send(topic, b"%d" % number)
    producer.flush()
    with confluent_consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0, 40)])
        found = poll_until(consumer, lambda found: len(found) >= 60)
        assert [message.offset() for message in found] == list(range(40, 100))
        consumer.seek(TopicPartition(topic, 0, 90))
        found = poll_until(consumer, lambda found: len(found) >= 10)
        assert [message.offset() for message in found] == list(range(90, 100))
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 100)


def test_a_waiting_consumer_gets_a_new_message(bootstrap: str, topic: str) -> None:
    with confluent_consumer(bootstrap, enable_partition_eof=True, fetch_wait_max_ms=500) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        deadline = time.monotonic() + 30
        at_end = None
        while at_end is None and time.monotonic() < deadline:
            at_end = consumer.poll(0.5)
        assert at_end is not None
        assert at_end.error().code() == KafkaError._PARTITION_EOF
        producer = ConfluentProducer(bootstrap)
        producer.send(topic, b"at last")
        producer.flush()
        message = None
        while message is None and time.monotonic() < deadline:
            message = consumer.poll(0.5)
        assert message is not None
        assert message.value() == b"at last"


def test_an_offset_that_is_gone_is_out_of_range(bootstrap: str, topic: str) -> None:
    with confluent_consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0, 1000)])
        with pytest.raises(KafkaException) as refused:
            poll_until(consumer, lambda found: bool(found))
    assert refused.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


def test_read_committed_sees_what_no_transaction_wrote(bootstrap: str, topic: str) -> None:
    producer = ConfluentProducer(bootstrap, enable_idempotence=True)
    for number in range(50):
        producer.send(topic, b"%d" % number)
    producer.flush()
    for level in ("read_committed", "read_uncommitted"):
        assert len(read_with_confluent(bootstrap, topic, 50, isolation_level=level)) == 50


def test_a_missing_topic_is_created_by_the_first_message(bootstrap: str, unique: Names) -> None:
    name = unique("first-message")
    producer = ConfluentProducer(bootstrap, allow_auto_create_topics=True)
    producer.send(name, b"hello")
    producer.flush()
    found = read_with_confluent(bootstrap, name, 1, offset=OFFSET_BEGINNING)
    assert found[0].value() == b"hello"


def test_many_producers_share_a_partition(bootstrap: str, topic: str) -> None:
    producers = [ConfluentProducer(bootstrap, enable_idempotence=True) for _ in range(8)]
    for number in range(200):
        for index, producer in enumerate(producers):
            producer.send(topic, b"%d" % number, key=b"%d" % index)
    for producer in producers:
        producer.flush()
    found = read_with_confluent(bootstrap, topic, 1600)
    for index in range(8):
        mine = [int(message.value()) for message in found if message.key() == b"%d" % index]
        assert mine == list(range(200))
