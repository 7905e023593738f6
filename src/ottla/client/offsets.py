"""Offsets of partitions: where they begin and end, and what was the first record of a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.core.types import TopicPartition
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2

READ_UNCOMMITTED, READ_COMMITTED = 0, 1


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """The offset for each partition's timestamp; -1 where no record is that young."""

    async def all_leaders() -> dict[TopicPartition, int]:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in wanted:
            by_leader.setdefault(await cluster.leader(partition), []).append(partition)
        asked = (_of_leader(cluster, leader, wanted, mine, isolation) for leader, mine in by_leader.items())
        found: dict[TopicPartition, int] = {}
        for part in await asyncio.gather(*asked):
            found |= part
        return found

    return await cluster.persist(all_leaders) if wanted else {}


async def beginnings(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    return await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))


async def ends(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """High watermarks, or last stable offsets for those who read committed records only."""
    return await list_offsets(cluster, dict.fromkeys(partitions, LATEST), isolation=isolation)


async def at_time(
    cluster: Cluster, partitions: Iterable[TopicPartition], timestamp_ms: int
) -> dict[TopicPartition, int]:
    """The first record at or after a time; the end of a partition that has none."""
    found = await list_offsets(cluster, dict.fromkeys(partitions, timestamp_ms))
    later = await ends(cluster, [partition for partition, offset in found.items() if offset < 0])
    return {**found, **later}


async def _of_leader(
    cluster: Cluster,
    leader: int,
    wanted: Mapping[TopicPartition, int],
    partitions: list[TopicPartition],
    isolation: int,
) -> dict[TopicPartition, int]:
    topics: dict[str, ListOffsetsTopic] = {}
    for each in partitions:
        topic = topics.setdefault(each.topic, ListOffsetsTopic(name=each.topic))
        topic.partitions.append(ListOffsetsPartition(partition_index=each.partition, timestamp=wanted[each]))
    connection = await cluster.broker(leader)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=list(topics.values()),
        timeout_ms=int(cluster.timeout * 1000),
    )
    response = await connection.ask(request, ListOffsetsResponse, within=cluster.timeout)
    found = {}
    for answered in response.topics:
        for p in answered.partitions:
            check(p.error_code, f"{answered.name}-{p.partition_index}")
            found[TopicPartition(answered.name, p.partition_index)] = p.offset
    return found
