"""Topics, leaders, and what is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla import Broker
from ottla.client import admin, offsets
from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer
from ottla.client.errors import Unreachable
from ottla.client.producer import Producer
from ottla.client.topology import GROUP
from ottla.core.types import TopicPartition
from ottla.protocol.errors import InvalidTopic, NotLeaderOrFollower, UnknownTopicOrPartition


def test_a_topic_is_made_on_demand_only(bootstrap: str, unique: Callable[[str], str]) -> None:
    name = unique("topic")

    async def client() -> None:
        async with Cluster(bootstrap) as cluster:
            with pytest.raises(UnknownTopicOrPartition, match=f"topic {name}: "):
                await cluster.topic(name)
            made = await cluster.topic(name, create=True)
            assert made.available == [0]
            assert [each.name for each in await cluster.all_topics()].count(name) == 1
            assert cluster.name_of(made.id) == name
            with pytest.raises(InvalidTopic):
                await cluster.topic("no topic/can be called this", create=True)

    asyncio.run(client())


def test_a_partition_that_is_not_there_is_told(bootstrap: str, unique: Callable[[str], str]) -> None:
    name = unique("topic")

    async def client() -> None:
        async with Cluster(bootstrap) as cluster:
            await admin.create_topic(cluster, name, partitions=2)
            assert await cluster.leader(TopicPartition(name, 1)) in cluster.brokers
            with pytest.raises(UnknownTopicOrPartition, match="has no partition 2: it has 2"):
                await cluster.leader(TopicPartition(name, 2))
            with pytest.raises(Unreachable, match="there is no broker 77"):
                await cluster.broker(77)

    asyncio.run(client())


def test_the_first_connection_is_not_tried_again() -> None:
    async def client() -> None:
        async with Cluster("127.0.0.1:1") as cluster:
            with pytest.raises(Unreachable):
                await cluster.all_topics()

    asyncio.run(asyncio.wait_for(client(), 20))  # well below the cluster's 30 seconds


def test_any_of_several_addresses_will_do(bootstrap: str) -> None:
    async def client() -> str | None:
        async with Cluster(f"127.0.0.1:1,{bootstrap}") as cluster:
            await cluster.refresh()
            return cluster.id

    assert asyncio.run(client())


def test_the_coordinator_of_a_group_is_found(bootstrap: str, unique: Callable[[str], str]) -> None:
    async def client() -> None:
        async with Cluster(bootstrap) as cluster:
            coordinator = await cluster.persist(lambda: cluster.coordinator(GROUP, unique("group")))
            assert coordinator in cluster.brokers

    asyncio.run(client())


def test_errors_that_pass_are_tried_again_and_others_are_not(bootstrap: str) -> None:
    tries = 0

    async def third_time_lucky() -> str:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise NotLeaderOrFollower("it moves")
        return "there"

    async def never() -> None:
        nonlocal tries
        tries += 1
        raise InvalidTopic("it stays wrong")

    async def client() -> None:
        nonlocal tries
        async with Cluster(bootstrap, timeout=5) as cluster:
            await cluster.refresh()
            assert await cluster.persist(third_time_lucky) == "there"
            assert tries == 3
            tries = 0
            with pytest.raises(InvalidTopic):
                await cluster.persist(never)
            assert tries == 1

    asyncio.run(client())


def test_what_does_not_pass_in_time_is_raised(bootstrap: str) -> None:
    async def never() -> None:
        raise NotLeaderOrFollower("it moves on and on")

    async def client() -> None:
        async with Cluster(bootstrap, timeout=0.2) as cluster:
            await cluster.refresh()
            with pytest.raises(NotLeaderOrFollower):
                await cluster.persist(never)

    asyncio.run(client())


def test_a_broker_that_restarts_is_waited_for_and_nothing_is_stored_twice(tmp_path: Path) -> None:
    partition = TopicPartition("survivor", 0)

    async def client() -> list[bytes | None]:
        first = Broker(data_dir=tmp_path, port=0)
        await first.start()
        ((host, port),) = first.addresses
        async with Cluster(f"{host}:{port}") as cluster, Producer(cluster) as producer:
            sent = [await producer.send("survivor", b"%d" % i) for i in range(100)]
            assert await sent[-1].offset() == 99
            await first.stop()
            # Nobody is there now. These wait, and are tried until somebody is.
            sent += [await producer.send("survivor", b"%d" % i, partition=0) for i in range(100, 200)]
            async with Broker(data_dir=tmp_path, port=port):
                assert [await each.offset() for each in sent] == list(range(200))
                assert await offsets.ends(cluster, [partition]) == {partition: 200}
                consumer = Consumer(cluster)
                consumer.assign({partition: 0})
                found: list[bytes | None] = []
                while len(found) < 200:
                    for each in await consumer.poll():
                        found += [record.value for record in each.records]
                return found

    assert asyncio.run(client()) == [b"%d" % i for i in range(200)]
