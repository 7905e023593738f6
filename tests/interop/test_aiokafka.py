"""aiokafka: the asyncio client, which speaks older versions of everything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError

from tests.interop.batches import headers
from tests.interop.requests import fetch
from tests.interop.topics import Names
from tests.interop.topics import NewTopic as MakeTopic
from tests.interop.wire import Wire

SECONDS = 45.0


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, SECONDS))


async def read(bootstrap: str, topic: str, count: int, partitions: Any = (0,), **settings: Any) -> list[Any]:
    defaults = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, **(defaults | settings))
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, partition) for partition in partitions])
        found: list[Any] = []
        while len(found) < count:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += records
        return found
    finally:
        await consumer.stop()


@pytest.mark.parametrize(
    ("codec", "number"), [(None, 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)]
)
def test_messages_of_every_codec_come_back(
    bootstrap: str, wire: Wire, topic: str, codec: str | None, number: int
) -> None:
    sent = [(b"key-%d" % index, b"a value that repeats " * 20 + b"%d" % index) for index in range(300)]

    async def scenario() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=codec, linger_ms=20
        ) as producer:
            for key, value in sent:
                await producer.send(topic, key=key, value=value)
        found = await read(bootstrap, topic, len(sent))
        assert [(record.key, record.value) for record in found] == sent

    run(scenario())
    assert {header.codec for header in headers(fetch(wire, topic, 0).records)} == {number}


@pytest.mark.parametrize(("acks", "idempotent"), [(0, False), (1, False), ("all", False), ("all", True)])
def test_every_level_of_acknowledgement(bootstrap: str, topic: str, acks: Any, idempotent: bool) -> None:
    async def scenario() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, acks=acks, enable_idempotence=idempotent
        ) as producer:
            for number in range(200):
                await producer.send(topic, b"%d" % number)
        found = await read(bootstrap, topic, 200)
        assert [record.value for record in found] == [b"%d" % number for number in range(200)]

    run(scenario())


def test_keys_values_headers_and_timestamps(bootstrap: str, topic: str) -> None:
    base = round(time.time() * 1000) - 86_400_000
    cases: list[tuple[Any, Any, tuple[Any, ...], int]] = [
        (None, b"value", (), base),
        (b"key", None, (("one", b"1"),), base + 5),
        (b"", b"", (("repeated", b"1"), ("repeated", b"2")), base + 2),
    ]

    async def scenario() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for key, value, header_list, timestamp in cases:
                await producer.send(
                    topic, key=key, value=value, headers=list(header_list), timestamp_ms=timestamp
                )
        found = await read(bootstrap, topic, len(cases))
        assert [(r.key, r.value, tuple(r.headers), r.timestamp) for r in found] == cases

    run(scenario())


def test_log_append_time_is_the_brokers(bootstrap: str, new_topic: MakeTopic) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    before = round(time.time() * 1000)

    async def scenario() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            sent = await producer.send_and_wait(topic, b"x", timestamp_ms=1000)
        (found,) = await read(bootstrap, topic, 1)
        assert before <= found.timestamp <= round(time.time() * 1000)
        assert (found.timestamp_type, found.timestamp) == (1, sent.timestamp)

    run(scenario())


def test_offsets_are_found_by_time_and_sought(bootstrap: str, topic: str) -> None:
    base = round(time.time() * 1000) - 1_000_000

    async def scenario() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for number in range(10):
                await producer.send(topic, b"%d" % number, timestamp_ms=base + 1000 * number)
        partition = TopicPartition(topic, 0)
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None) as consumer:
            consumer.assign([partition])
            found = (await consumer.offsets_for_times({partition: base + 3500}))[partition]
            assert (found.offset, found.timestamp) == (4, base + 4000)
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}
            consumer.seek(partition, 7)
            assert (await consumer.getone()).value == b"7"
            await consumer.seek_to_end(partition)
            assert await consumer.position(partition) == 10

    run(scenario())


def test_a_message_above_the_limit_is_refused(bootstrap: str, new_topic: MakeTopic) -> None:
    topic = new_topic(max_message_bytes=10_000)

    async def scenario() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(topic, bytes(20_000))
            assert (await producer.send_and_wait(topic, bytes(5_000))).offset == 0

    run(scenario())


def test_a_waiting_consumer_gets_a_new_message(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        async with AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, fetch_max_wait_ms=30_000
        ) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.seek_to_beginning()
            waiting = asyncio.create_task(consumer.getone())
            async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
                await producer.send_and_wait(topic, b"at last")
            assert (await waiting).value == b"at last"

    run(scenario())


def test_ten_thousand_messages_over_twenty_partitions(bootstrap: str, new_topic: MakeTopic) -> None:
    topic = new_topic(partitions=20)

    async def scenario() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
            for number in range(10_000):
                await producer.send(topic, b"%d" % number, partition=number % 20)
        found = await read(bootstrap, topic, 10_000, range(20))
        for partition in range(20):
            mine = [int(record.value) for record in found if record.partition == partition]
            assert mine == list(range(partition, 10_000, 20))

    run(scenario())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Asks again and again; `run` puts an end to it."""
    while not await condition():  # noqa: ASYNC110 - the broker sends no event to wait for
        await asyncio.sleep(0.01)


async def listed(admin: Any, name: str) -> bool:
    return name in await admin.list_topics()


async def unlisted(admin: Any, name: str) -> bool:
    return not await listed(admin, name)


async def has_partitions(admin: Any, name: str, count: int) -> bool:
    (topic,) = await admin.describe_topics([name])
    return len(topic["partitions"]) == count


def test_the_admin_client(bootstrap: str, unique: Names) -> None:
    name = unique("admin")

    async def scenario() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            created = await admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])
            assert [error[1] for error in created.topic_errors] == [0]
            await until(lambda: listed(admin, name))
            await admin.create_partitions({name: NewPartitions(3)})
            await until(lambda: has_partitions(admin, name, 3))
            resource = ConfigResource(ConfigResourceType.TOPIC, name)
            assert "604800000" in str(await admin.describe_configs([resource]))
            cluster = await admin.describe_cluster()
            assert len(cluster["brokers"]) == 1
            async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
                for _ in range(5):
                    await producer.send_and_wait(name, b"x", partition=0)
            partition = TopicPartition(name, 0)
            deleted = await admin.delete_records({partition: RecordsToDelete(before_offset=3)})
            assert deleted == {partition: 3}
            await admin.delete_topics([name])
            await until(lambda: unlisted(admin, name))
        finally:
            await admin.close()

    run(scenario())
