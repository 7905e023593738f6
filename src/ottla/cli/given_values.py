"""Reading what was given as `name=value`, and which partitions of which topics are meant."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cli.running import Misused
from ottla.client.cluster import Cluster
from ottla.client.topology import Topic
from ottla.core.types import TopicPartition


def pairs(given: Iterable[str], option: str) -> list[tuple[str, str]]:
    """`name=value` pairs in the order they were given; the value may hold further equals signs."""
    found = []
    for each in given:
        name, separator, value = each.partition("=")
        if not separator or not name.strip():
            raise Misused(f"{option} {each}: it should look like name=value")
        found.append((name.strip(), value))
    return found


def assignments(given: Iterable[str], option: str) -> dict[str, str]:
    """The same where a name has one value: the last one that was given."""
    return dict(pairs(given, option))


async def partitions_of(
    cluster: Cluster, topics: Iterable[str], only: Iterable[int] = ()
) -> list[TopicPartition]:
    """All partitions of the topics, or those with these numbers."""
    wanted = list(only)
    found = []
    for name in dict.fromkeys(topics):
        topic = await cluster.topic(name)
        missing = [number for number in wanted if number not in topic.partitions]
        if missing:
            raise no_partition(topic, missing[0])
        found += [TopicPartition(name, number) for number in (wanted or topic.partitions)]
    return found


def no_partition(topic: Topic, number: int) -> Misused:
    last = len(topic.partitions) - 1
    return Misused(f"topic {topic.name} has no partition {number}, only {f'0 to {last}' if last else 0}")
