"""Our own clients, the one that blocks (Spark, `read_topic`) and the other, while leaders are killed."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.blocking.fetch import fetch
from ottla.client.cluster import Cluster
from ottla.client.producer import Producer
from ottla.core.types import TopicPartition
from ottla.testing.cluster import TestCluster

PARTITIONS = 3
EACH = 20


async def write(bootstrap: str, topic: str) -> None:
    async with Cluster(bootstrap) as cluster, Producer(cluster) as producer:
        for number in range(EACH * PARTITIONS):
            await producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


@pytest.mark.heavy
def test_they_follow_leaders_and_coordinators(cluster: TestCluster) -> None:
    topic = cluster.topic(partitions=PARTITIONS, min_insync_replicas=2)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    asyncio.run(write(cluster.bootstrap, topic))
    with BlockingCluster(cluster.bootstrap, timeout=60.0) as client:
        for round, node in enumerate(cluster.nodes, 1):
            wanted = dict.fromkeys(partitions, EACH * round)
            assert {
                at: found.offset for at, found in client.list_offsets(dict.fromkeys(partitions, -1)).items()
            } == wanted
            client.commit_offsets(f"{topic}-group", wanted)
            node.kill()
            for at in partitions:
                read = list(fetch(client, at, 0, wanted[at], timeout=60.0))
                assert read[-1].next_offset == wanted[at]
            committed = client.committed(f"{topic}-group", partitions)
            assert {at: found.offset for at, found in committed.items()} == wanted
            # Among the addresses that a new client is given is that of the dead node, the first time first.
            asyncio.run(write(cluster.bootstrap, topic))
            node.start()
            cluster.wait_until_stable()
