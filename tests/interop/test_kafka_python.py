"""kafka-python: producer, consumer without a group, admin client, and the requests of old releases."""

from __future__ import annotations

import time
from typing import Any

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import MessageSizeTooLargeError, TopicAlreadyExistsError

from kafka import KafkaConsumer, TopicPartition
from tests.interop.batches import headers
from tests.interop.clients import kafka_python_producer, read_with_kafka_python
from tests.interop.requests import fetch
from tests.interop.topics import Names, eventually
from tests.interop.topics import NewTopic as MakeTopic
from tests.interop.wire import Wire

SECONDS = 30.0
FETCH = 1


@pytest.mark.parametrize(("codec", "number"), [(None, 0), ("gzip", 1), ("lz4", 3), ("zstd", 4)])
def test_messages_of_every_codec_come_back(
    bootstrap: str, wire: Wire, topic: str, codec: str | None, number: int
) -> None:
    sent = [(b"key-%d" % index, b"a value that repeats " * 20 + b"%d" % index) for index in range(300)]
    with kafka_python_producer(bootstrap, compression_type=codec, linger_ms=20) as producer:
        for key, value in sent:
            producer.send(topic, key=key, value=value)
    found = read_with_kafka_python(bootstrap, topic, len(sent))
    assert [(record.key, record.value) for record in found] == sent
    assert [record.offset for record in found] == list(range(300))
    assert {header.codec for header in headers(fetch(wire, topic, 0).records)} == {number}


@pytest.mark.parametrize(("acks", "idempotent"), [(0, False), (1, False), ("all", False), ("all", True)])
def test_every_level_of_acknowledgement(bootstrap: str, topic: str, acks: Any, idempotent: bool) -> None:
    settings = {"acks": acks, "enable_idempotence": idempotent}
    with kafka_python_producer(bootstrap, **settings) as producer:
        futures = [producer.send(topic, b"%d" % number) for number in range(200)]
        producer.flush(timeout=SECONDS)
        offsets = [future.get(SECONDS).offset for future in futures]
    if acks != 0:
        assert offsets == list(range(200))
    found = read_with_kafka_python(bootstrap, topic, 200)
    assert [record.value for record in found] == [b"%d" % number for number in range(200)]


def test_keys_values_headers_and_timestamps(bootstrap: str, topic: str) -> None:
    base = round(time.time() * 1000) - 86_400_000
    cases: list[tuple[Any, Any, list[tuple[str, bytes]], int]] = [
        (None, b"value", [], base),
        (b"key", None, [("one", b"1")], base + 5),
        (b"", b"", [("repeated", b"1"), ("repeated", b"2")], base + 2),
        ("ключ".encode(), bytes(range(256)), [("ünïcode", "値".encode())], base + 3),
    ]
    with kafka_python_producer(bootstrap) as producer:
        for key, value, header_list, timestamp in cases:
            producer.send(topic, key=key, value=value, headers=header_list, timestamp_ms=timestamp)
    found = read_with_kafka_python(bootstrap, topic, len(cases))
    assert [(r.key, r.value, list(r.headers), r.timestamp) for r in found] == cases
    assert {record.timestamp_type for record in found} == {0}


def test_log_append_time_is_the_brokers(bootstrap: str, new_topic: MakeTopic) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    before = round(time.time() * 1000)
    with kafka_python_producer(bootstrap) as producer:
        sent = producer.send(topic, b"x", timestamp_ms=1000).get(SECONDS)
    (found,) = read_with_kafka_python(bootstrap, topic, 1)
    assert before <= found.timestamp <= round(time.time() * 1000)
    assert (found.timestamp_type, found.timestamp) == (1, sent.timestamp)


def test_offsets_are_found_by_time(bootstrap: str, topic: str) -> None:
    base = round(time.time() * 1000) - 1_000_000
    with kafka_python_producer(bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"x", timestamp_ms=base + 1000 * number)
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    try:
        found = consumer.offsets_for_times({partition: base + 3500})[partition]
        assert (found.offset, found.timestamp) == (4, base + 4000)
        assert consumer.offsets_for_times({partition: base + 9001})[partition] is None
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 10}
        assert consumer.partitions_for_topic(topic) == {0}
        assert topic in consumer.topics()
    finally:
        consumer.close()


def test_a_message_above_the_limit_is_refused(bootstrap: str, new_topic: MakeTopic) -> None:
    topic = new_topic(max_message_bytes=10_000)
    with kafka_python_producer(bootstrap, enable_idempotence=False) as producer:
        with pytest.raises(MessageSizeTooLargeError):
            producer.send(topic, bytes(20_000)).get(SECONDS)
        assert producer.send(topic, bytes(5_000)).get(SECONDS).offset == 0


def test_a_large_message_comes_back(bootstrap: str, new_topic: MakeTopic) -> None:
    topic = new_topic(max_message_bytes=6_000_000)
    value = bytes(range(250)) * 20_000
    with kafka_python_producer(bootstrap, max_request_size=8_000_000) as producer:
        producer.send(topic, value).get(SECONDS)
    (found,) = read_with_kafka_python(bootstrap, topic, 1)
    assert found.value == value


def test_five_thousand_messages_over_ten_partitions(bootstrap: str, new_topic: MakeTopic) -> None:
    topic = new_topic(partitions=10)
    with kafka_python_producer(bootstrap, linger_ms=5) as producer:
        for number in range(5000):
            producer.send(topic, b"%d" % number, partition=number % 10)
    found = read_with_kafka_python(bootstrap, topic, 5000, partitions=range(10))
    for partition in range(10):
        mine = [int(record.value) for record in found if record.partition == partition]
        assert mine == list(range(partition, 5000, 10))


@pytest.mark.parametrize("release", [(0, 11), (1, 0), (2, 0), (2, 6), (3, 9)])
def test_clients_that_speak_as_of_old(bootstrap: str, topic: str, release: tuple[int, int]) -> None:
    """The versions that Apache Kafka 4 still serves."""
    with kafka_python_producer(bootstrap, api_version=release, enable_idempotence=False) as producer:
        for number in range(50):
            producer.send(topic, b"%d" % number, key=b"k")
    found = read_with_kafka_python(bootstrap, topic, 50, api_version=release)
    assert [record.value for record in found] == [b"%d" % number for number in range(50)]


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("release", [(0, 8, 2), (0, 9), (0, 10), (0, 10, 1)])
def test_clients_older_than_apache_kafka_serves(
    bootstrap: str, wire: Wire, topic: str, release: tuple[int, ...], codec: str | None
) -> None:
    """Message sets of magic 0 and 1 are stored as batches, and turned back for who asks that way."""
    oldest = {key.api_key: key.min_version for key in wire.ask("api_versions", 0).api_keys}
    if oldest[FETCH] > 0:
        pytest.skip("Apache Kafka 4 gave these versions up; Ottla serves them")
    settings: dict[str, Any] = {"api_version": release, "compression_type": codec}
    with kafka_python_producer(bootstrap, enable_idempotence=False, **settings) as producer:
        for number in range(50):
            producer.send(topic, b"%d" % number, key=b"k")
    for version in (release, (2, 6)):
        found = read_with_kafka_python(bootstrap, topic, 50, api_version=version)
        assert [record.value for record in found] == [b"%d" % number for number in range(50)]
        assert [record.offset for record in found] == list(range(50))


class TestAdmin:
    @pytest.fixture
    def client(self, bootstrap: str) -> Any:
        client = KafkaAdminClient(bootstrap_servers=bootstrap)
        yield client
        client.close()

    def test_a_topic_is_created_described_and_deleted(self, client: Any, unique: Names) -> None:
        name = unique("lifecycle")
        client.create_topics([NewTopic(name=name, num_partitions=2, replication_factor=1)])
        eventually(lambda: name in client.list_topics())
        with pytest.raises(TopicAlreadyExistsError):
            client.create_topics([NewTopic(name=name, num_partitions=2, replication_factor=1)])
        client.delete_topics([name])
        eventually(lambda: name not in client.list_topics())

    def test_configs_are_described_and_altered(self, client: Any, topic: str) -> None:
        wanted = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "4321"})
        client.alter_configs([wanted])
        asked = ConfigResource(ConfigResourceType.TOPIC, topic)

        def found() -> str:
            return str(client.describe_configs([asked], config_filter="all"))

        eventually(lambda: "4321" in found())

    def test_the_cluster_describes_itself(self, client: Any) -> None:
        found = client.describe_cluster()
        assert len(found["brokers"]) == 1
        assert len(found["cluster_id"]) == 22

    def test_records_are_deleted(self, client: Any, bootstrap: str, topic: str) -> None:
        with kafka_python_producer(bootstrap) as producer:
            for _ in range(10):
                producer.send(topic, b"x")
        client.delete_records({TopicPartition(topic, 0): 6})
        found = read_with_kafka_python(bootstrap, topic, 4)
        assert [record.offset for record in found] == [6, 7, 8, 9]

    def test_log_dirs_are_described(self, client: Any, bootstrap: str, topic: str) -> None:
        with kafka_python_producer(bootstrap) as producer:
            producer.send(topic, bytes(1000)).get(SECONDS)
        found = str(client.describe_log_dirs())
        assert topic in found
