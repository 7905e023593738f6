"""Compacted topics as clients see them. With `--referee` the same is asked of Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tests.interop.clients import ConfluentProducer, confluent_consumer
from tests.interop.nodes import Node, new_node
from tests.interop.requests import end_offset
from tests.interop.topics import create_topic, eventually
from tests.interop.wire import Wire

MEGABYTE = 1024 * 1024  # the smallest segment there may be
COMPACTED = {"cleanup_policy": "compact", "segment_bytes": MEGABYTE, "min_cleanable_dirty_ratio": 0.01}
SOON = {
    "log.cleaner.backoff.ms": "100",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": str(MEGABYTE),
    "log.cleaner.min.cleanable.ratio": "0.01",
}


@pytest.fixture
def node(referee: bool) -> Iterator[Node]:
    node = new_node(referee, SOON)
    try:
        node.start()
        yield node
    finally:
        node.kill()
        node.remove()


def read_to_the_end(node: Node, topic: str) -> list[Message]:
    """Every record there is, by a client that checks what it gets."""
    with Wire(node.bootstrap) as wire:
        end = end_offset(wire, topic)
    with confluent_consumer(node.bootstrap, check_crcs=True) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Message] = []

        def is_at_the_end() -> bool:
            found.extend(consumer.consume(1000, 0.1))
            return position(consumer, topic) >= end

        eventually(is_at_the_end)
    return found


def position(consumer: Consumer, topic: str) -> int:
    (at,) = consumer.position([TopicPartition(topic, 0)])
    return int(at.offset)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_the_last_value_of_every_key_stays_at_its_offset(node: Node, codec: str) -> None:
    create_topic(node.bootstrap, "orders", 1, COMPACTED)
    producer = ConfluentProducer(node.bootstrap, compression_type=codec, enable_idempotence=True)
    last: dict[bytes, tuple[int, bytes | None]] = {}
    count = 6000 if codec == "none" else 60_000
    for number in range(count):
        key = b"order %d" % (number * 7919 % 200)
        value = b"%d " % number * 100 if number % 50 else None
        producer.send("orders", value, key=key)
        last[key] = number, value
    producer.flush()

    def is_compacted() -> bool:
        return len(read_to_the_end(node, "orders")) < count / 2

    eventually(is_compacted)
    found = read_to_the_end(node, "orders")
    offsets = [message.offset() for message in found]
    assert offsets == sorted(offsets)
    seen = {message.key(): (message.offset(), message.value()) for message in found}
    assert seen == last

    # Whoever wrote may go on: its sequence numbers are known though its records are gone.
    producer.send("orders", b"one more", key=b"order 0")
    producer.flush()
    node.kill()
    node.start()
    again = {message.key(): message.value() for message in read_to_the_end(node, "orders")}
    assert again == {**{key: value for key, (_, value) in last.items()}, b"order 0": b"one more"}


def test_committed_offsets_are_found_again_in_a_compacted_log(node: Node) -> None:
    create_topic(node.bootstrap, "orders", 100)
    with confluent_consumer(node.bootstrap, group_id="tellers") as consumer:
        for number in range(200):
            places = [TopicPartition("orders", partition, number + partition) for partition in range(100)]
            consumer.commit(offsets=places, asynchronous=False)

        def is_compacted() -> bool:
            return len(read_to_the_end(node, "__consumer_offsets")) < 15_000

        eventually(is_compacted)
    node.kill()
    node.start()
    with confluent_consumer(node.bootstrap, group_id="tellers") as consumer:
        places = [TopicPartition("orders", partition) for partition in range(100)]
        found: list[int] = []

        def answers() -> bool:
            try:
                found[:] = [place.offset for place in consumer.committed(places, timeout=30)]
            except KafkaException:
                return False  # the coordinator is still reading its log
            return True

        eventually(answers)
    assert found == [199 + partition for partition in range(100)]
