"""A broker that goes away and comes back, stopped or killed, while clients go on."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from tests.interop import batches
from tests.interop.batches import batch, headers
from tests.interop.clients import (
    ConfluentProducer,
    confluent_consumer,
    poll_until,
    read_with_confluent,
    read_with_kafka_python,
)
from tests.interop.nodes import Node
from tests.interop.requests import end_offset, fetch, list_offset, produce, producer_id, topic_id
from tests.interop.topics import create_topic, eventually
from tests.interop.wire import Wire

GO_DOWN: list[Callable[[Node], object]] = [lambda node: node.stop(), lambda node: node.kill()]
pytestmark = pytest.mark.parametrize("go_down", GO_DOWN, ids=["stopped", "killed"])


def come_back(node: Node) -> None:
    node.start()

    def serves() -> bool:
        with Wire(node.bootstrap) as wire:
            return bool(wire.ask("metadata", 12, topics=[]).brokers)

    eventually(serves)


def test_everything_is_found_again(node: Node, go_down: Callable[[Node], object]) -> None:
    create_topic(node.bootstrap, "kept", 3, {"retention_ms": 123456})
    create_topic(node.bootstrap, "deleted")
    with Wire(node.bootstrap) as wire:
        identity = topic_id(wire, "kept")
        cluster = wire.ask("metadata", 12, topics=[]).cluster_id
        wire.ask("delete_topics", 6, timeout=10_000, topics=[{"name": "deleted"}])
    producer = ConfluentProducer(node.bootstrap, compression_type="zstd")
    for number in range(3000):
        producer.send("kept", b"%d" % number, partition=number % 3)
    producer.flush()

    for _ in range(2):
        go_down(node)
        come_back(node)
        with Wire(node.bootstrap) as wire:
            eventually(lambda wire=wire: fetch(wire, "kept", 0).error_code == 0)
            assert topic_id(wire, "kept") == identity
            answer = wire.ask("metadata", 12, topics=None)
            assert answer.cluster_id == cluster
            assert "deleted" not in {topic.name for topic in answer.topics}
            resource = {"resource_type": 2, "resource_name": "kept", "configuration_keys": ["retention.ms"]}
            (found,) = wire.ask("describe_configs", 4, resources=[resource]).results
            assert [config.value for config in found.configs] == ["123456"]
        found = read_with_kafka_python(node.bootstrap, "kept", 3000, partitions=range(3))
        for partition in range(3):
            mine = [int(record.value) for record in found if record.partition == partition]
            assert mine == list(range(partition, 3000, 3))


def test_deleted_records_stay_deleted_and_offsets_go_on(
    node: Node, go_down: Callable[[Node], object]
) -> None:
    create_topic(node.bootstrap, "trimmed")
    base = batches.now_ms() - 100_000
    with Wire(node.bootstrap) as wire:
        for number in range(10):
            produce(wire, "trimmed", batch(b"%d" % number, timestamp=base + number))
        trim = [{"name": "trimmed", "partitions": [{"partition_index": 0, "offset": 4}]}]
        wire.ask("delete_records", 2, timeout=10_000, topics=trim)
        # Apache Kafka writes the log start offset every minute and on a clean stop. A fetch below it
        # is refused until then; what survives a kill is that offsets are never given out twice.
        assert list_offset(wire, "trimmed", -2).offset == 4
    go_down(node)
    come_back(node)
    with Wire(node.bootstrap) as wire:
        eventually(lambda: list_offset(wire, "trimmed", -1).error_code == 0)
        assert list_offset(wire, "trimmed", -2).offset in (0, 4)
        assert end_offset(wire, "trimmed") == 10
        assert list_offset(wire, "trimmed", base + 7).offset == 7
        assert produce(wire, "trimmed", batch(b"next")).base_offset == 10


def test_sequences_of_an_idempotent_producer_are_remembered(
    node: Node, go_down: Callable[[Node], object]
) -> None:
    create_topic(node.bootstrap, "sequenced")
    with Wire(node.bootstrap) as wire:
        pid = producer_id(wire)

        def send(wire: Wire, sequence: int) -> tuple[int, int]:
            records = batch(b"v", producer_id=pid, producer_epoch=0, sequence=sequence)
            answer = produce(wire, "sequenced", records)
            return int(answer.error_code), int(answer.base_offset)

        assert [send(wire, number) for number in range(7)] == [(0, number) for number in range(7)]
    go_down(node)
    come_back(node)
    with Wire(node.bootstrap) as wire:
        eventually(lambda: list_offset(wire, "sequenced", -1).error_code == 0)
        assert send(wire, 6) == (0, 6), "a batch sent again is known"
        assert send(wire, 9)[0] == 45, "a gap is noticed"
        assert send(wire, 7) == (0, 7)
        assert producer_id(wire) > pid, "a producer id is never given out twice"


def test_no_acknowledged_message_is_lost_or_doubled(node: Node, go_down: Callable[[Node], object]) -> None:
    """An idempotent producer keeps sending while the broker goes down twice."""
    create_topic(node.bootstrap, "steady", 4)
    producer = ConfluentProducer(
        node.bootstrap,
        enable_idempotence=True,
        linger_ms=1,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=200,
        retry_backoff_ms=20,
        retry_backoff_max_ms=200,
    )
    done, sent = threading.Event(), 0

    def keep_sending() -> None:
        nonlocal sent
        while not done.is_set():
            producer.send("steady", b"%d" % sent, partition=sent % 4)
            sent += 1
            producer.producer.poll(0.0005)

    sender = threading.Thread(target=keep_sending)
    sender.start()
    try:
        for _ in range(2):
            delivered = len(producer.delivered)
            eventually(lambda enough=delivered + 500: len(producer.delivered) > enough)
            go_down(node)
            come_back(node)
        delivered = len(producer.delivered)
        eventually(lambda: len(producer.delivered) > delivered + 100)
    finally:
        done.set()
        sender.join()
    producer.flush()
    assert len(producer.delivered) == sent

    found = read_with_confluent(node.bootstrap, "steady", sent, partitions=range(4))
    for partition in range(4):
        mine = [int(message.value()) for message in found if message.partition() == partition]
        assert mine == list(range(partition, sent, 4))
    for message in producer.delivered[:: max(1, sent // 50)]:
        with Wire(node.bootstrap) as wire:
            stored = fetch(wire, "steady", message.offset(), partition=message.partition())
        first = next(headers(stored.records))
        assert first.base_offset <= message.offset() < first.next_offset


def test_a_consumer_goes_on_where_it_was(node: Node, go_down: Callable[[Node], object]) -> None:
    create_topic(node.bootstrap, "followed")
    fast = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 200}
    producer = ConfluentProducer(node.bootstrap, **fast)
    with confluent_consumer(node.bootstrap, **fast) as consumer:
        consumer.assign([TopicPartition("followed", 0, OFFSET_BEGINNING)])
        seen: list[int] = []
        for round_number in range(3):
            for number in range(100):
                producer.send("followed", b"%d" % (100 * round_number + number))
            producer.flush()
            seen += [
                int(message.value()) for message in poll_until(consumer, lambda found: len(found) >= 100)
            ]
            assert seen == list(range(100 * (round_number + 1)))
            if round_number < 2:
                go_down(node)
                come_back(node)
