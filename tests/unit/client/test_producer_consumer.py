"""What is sent is read again, from wherever one starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ottla.client import admin, offsets
from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer, Reset
from ottla.client.partitioner import partition_of_key
from ottla.client.producer import Producer
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record
from ottla.protocol.errors import MessageTooLarge, OffsetOutOfRange, UnknownTopicOrPartition

Names = Callable[[str], str]


async def read(cluster: Cluster, starts: dict[TopicPartition, int], count: int) -> list[Record]:
    consumer = Consumer(cluster)
    consumer.assign(starts)
    found: list[Record] = []
    while len(found) < count:
        for each in await consumer.poll():
            found += each.records
    return found


@pytest.mark.parametrize("codec", range(5))
def test_records_come_back_as_they_were_sent(bootstrap: str, unique: Names, codec: int) -> None:
    topic = unique("topic")
    headers: list[tuple[str, bytes | None]] = [("trace", b"\x00\xff"), ("empty", b""), ("none", None)]

    async def client() -> list[Record]:
        async with Cluster(bootstrap) as cluster:
            async with Producer(cluster, codec=codec) as producer:
                await producer.send(topic, b"value", key=b"key", headers=headers, timestamp_ms=123_456)
                await producer.send(topic, None, key=b"gone")
                await producer.send(topic, b"")
            return await read(cluster, {TopicPartition(topic, 0): 0}, 3)

    first, second, third = asyncio.run(client())
    assert (first.offset, first.timestamp, first.key, first.value) == (0, 123_456, b"key", b"value")
    assert first.headers == headers
    assert (second.key, second.value) == (b"gone", None)
    assert (third.key, third.value) == (None, b"")


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_partition_keeps_the_order_whatever_the_acks(bootstrap: str, unique: Names, acks: int) -> None:
    topic = unique("topic")

    async def client() -> list[Record]:
        async with Cluster(bootstrap) as cluster:
            async with Producer(cluster, acks=acks, batch_bytes=500) as producer:
                sent = [await producer.send(topic, b"%d" % i) for i in range(300)]
                expected = -1 if acks == 0 else 299
                assert await sent[-1].offset() == expected
            return await read(cluster, {TopicPartition(topic, 0): 0}, 300)

    assert [each.value for each in asyncio.run(client())] == [b"%d" % i for i in range(300)]


def test_keys_stay_together_and_keyless_records_go_round(bootstrap: str, unique: Names) -> None:
    topic = unique("topic")

    async def client() -> None:
        async with Cluster(bootstrap) as cluster:
            await admin.create_topic(cluster, topic, partitions=3)
            async with Producer(cluster) as producer:
                for i in range(20):
                    key = b"key%d" % i
                    sent = await producer.send(topic, b"", key=key)
                    assert sent.partition == partition_of_key(key, 3)
                around = [(await producer.send(topic, b"")).partition for _ in range(6)]
                assert around == [0, 1, 2, 0, 1, 2]

    asyncio.run(client())


def test_a_record_that_is_too_large_fails_alone(bootstrap: str, unique: Names) -> None:
    topic = unique("topic")

    async def client() -> None:
        async with Cluster(bootstrap) as cluster:
            await admin.create_topic(cluster, topic, partitions=1, configs={"max.message.bytes": "1000"})
            async with Producer(cluster, batch_bytes=1) as producer:
                before = await producer.send(topic, b"before")
                large = await producer.send(topic, bytes(5000))
                after = await producer.send(topic, b"after")
                assert await before.offset() == 0
                with pytest.raises(MessageTooLarge, match=f"partition {topic}-0"):
                    await large.offset()
                assert await after.offset() == 1
                with pytest.raises(MessageTooLarge):
                    await producer.flush()

    asyncio.run(client())


def test_a_producer_that_may_create_nothing_says_so(bootstrap: str, unique: Names) -> None:
    async def client() -> None:
        async with Cluster(bootstrap) as cluster, Producer(cluster, create=False) as producer:
            with pytest.raises(UnknownTopicOrPartition):
                await producer.send(unique("topic"), b"")

    asyncio.run(client())


def test_starting_points(bootstrap: str, unique: Names) -> None:
    topic = unique("topic")
    partition = TopicPartition(topic, 0)

    async def client() -> None:
        async with Cluster(bootstrap) as cluster:
            async with Producer(cluster) as producer:
                for i in range(10):
                    await producer.send(topic, b"%d" % i, timestamp_ms=1_000_000 + 1000 * i)
            assert await offsets.beginnings(cluster, [partition]) == {partition: 0}
            assert await offsets.ends(cluster, [partition]) == {partition: 10}
            assert await offsets.at_time(cluster, [partition], 1_003_500) == {partition: 4}
            assert await offsets.at_time(cluster, [partition], 9_000_000) == {partition: 10}
            assert [r.value for r in await read(cluster, {partition: 7}, 3)] == [b"7", b"8", b"9"]

    asyncio.run(client())


def test_an_offset_that_is_gone(bootstrap: str, unique: Names) -> None:
    topic = unique("topic")
    partition = TopicPartition(topic, 0)

    async def client() -> None:
        async with Cluster(bootstrap) as cluster:
            async with Producer(cluster, batch_bytes=1) as producer:
                for i in range(5):
                    await producer.send(topic, b"%d" % i)
            assert await admin.delete_records(cluster, {partition: 3}) == {partition: 3}
            assert [r.offset for r in await read(cluster, {partition: 0}, 2)] == [3, 4]
            strict = Consumer(cluster, reset=Reset.NONE)
            strict.assign({partition: 0})
            with pytest.raises(OffsetOutOfRange):
                await strict.poll()
            latest = Consumer(cluster, reset=Reset.LATEST)
            latest.assign({partition: 0})
            await latest.poll(wait_ms=1)
            assert latest.positions == {partition: 5}

    asyncio.run(client())


def test_many_partitions_are_all_read_however_small_the_answers(bootstrap: str, unique: Names) -> None:
    topic = unique("topic")

    async def client() -> set[bytes | None]:
        async with Cluster(bootstrap) as cluster:
            await admin.create_topic(cluster, topic, partitions=4)
            async with Producer(cluster, batch_bytes=100) as producer:
                for i in range(200):
                    await producer.send(topic, b"%d" % i)
            consumer = Consumer(cluster, max_bytes=300, partition_bytes=200)
            consumer.assign({TopicPartition(topic, number): 0 for number in range(4)})
            found: set[bytes | None] = set()
            while len(found) < 200:
                for each in await consumer.poll():
                    found |= {record.value for record in each.records}
            return found

    assert asyncio.run(client()) == {b"%d" % i for i in range(200)}
