"""How far a group is behind, and where a reset would take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ottla.cli.given_values import partitions_of
from ottla.cli.running import Refused
from ottla.cli.times import local_now, parse_time
from ottla.client import group_admin, offsets
from ottla.client.cluster import Cluster
from ottla.client.group_admin import Group
from ottla.core.types import TopicPartition
from ottla.protocol.errors import UnknownTopicOrPartition


@dataclass(slots=True)
class PartitionLag:
    group: str
    partition: TopicPartition
    committed: int | None
    end: int | None
    member: str | None

    @property
    def lag(self) -> int | None:
        """Records to read; unknown where nothing was committed or the topic is gone."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)

    def as_dict(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "committed": self.committed,
            "end": self.end,
            "lag": self.lag,
            "member": self.member,
        }


@dataclass(slots=True)
class Move:
    partition: TopicPartition
    before: int | None
    after: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "from": self.before,
            "to": self.after,
        }


async def lags_of(cluster: Cluster, group: Group) -> list[PartitionLag]:
    """Every partition that the group has committed or is reading."""
    if group.type == "share":
        return []  # it commits nothing: every record has a state of its own
    committed = await group_admin.committed_offsets(cluster, group.id)
    owners = {partition: member.id for member in group.members for partition in member.partitions}
    partitions = sorted({*committed, *owners})
    ends = await offsets.ends(cluster, await _existing(cluster, partitions))
    return [
        PartitionLag(group.id, each, committed.get(each), ends.get(each), owners.get(each))
        for each in partitions
    ]


async def moves_of(
    cluster: Cluster,
    group_id: str,
    topics: Sequence[str],
    *,
    start: str | None,
    offset: int | None,
    time: str | None,
    shift: int | None,
) -> list[Move]:
    """Where each partition is now and where it would be, within what the partition holds."""
    committed = await group_admin.committed_offsets(cluster, group_id)
    partitions = await _named(cluster, topics) if topics else await _existing(cluster, sorted(committed))
    if not partitions:
        raise Refused(f"group {group_id} has committed nothing; say which topics with --topic")
    begins, ends = await offsets.beginnings(cluster, partitions), await offsets.ends(cluster, partitions)
    if time is not None:
        wanted = await offsets.at_time(cluster, partitions, parse_time(time, local_now()))
    elif start is not None:
        wanted = ends if start == "end" else begins
    elif offset is not None:
        wanted = dict.fromkeys(partitions, offset)
    else:
        wanted = {each: committed.get(each, begins[each]) + (shift or 0) for each in partitions}
    return [
        Move(each, committed.get(each), min(max(wanted[each], begins[each]), ends[each]))
        for each in partitions
    ]


async def _named(cluster: Cluster, topics: Sequence[str]) -> list[TopicPartition]:
    found = []
    for text in topics:
        name, separator, number = text.rpartition(":")
        if separator and number.isdecimal():
            found += await partitions_of(cluster, [name], [int(number)])
        else:
            found += await partitions_of(cluster, [text])
    return list(dict.fromkeys(found))


async def _existing(cluster: Cluster, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Without those of topics that have been deleted."""
    found = []
    for each in partitions:
        try:
            topic = await cluster.topic(each.topic)
        except UnknownTopicOrPartition:
            continue
        if each.partition in topic.available:
            found.append(each)
    return found
