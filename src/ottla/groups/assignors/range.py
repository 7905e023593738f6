"""The range assignor: of each topic, consecutive partitions to each subscriber, in the order of their ids.

Topics with the same number of partitions and the same subscribers are divided alike, so whoever has
partition 3 of one has partition 3 of the other: what joining two topics needs. Who had what does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.groups.assignors.subscribers import Assignment, Partition, PartitionCounts, Subscriber, audiences


def assign(members: Mapping[str, Subscriber], counts: PartitionCounts) -> dict[str, Assignment]:
    assigned: dict[str, list[Partition]] = {member_id: [] for member_id in members}
    for audience in audiences(members, counts):
        # Static members come first, by the name that survives their restarts.
        ranked = sorted(audience.members, key=lambda member_id: _rank(member_id, members[member_id]))
        for topic in audience.topics:
            count = counts[topic]
            each, extra = divmod(count, len(ranked))
            start = 0
            for index, member_id in enumerate(ranked[:count]):
                end = start + each + (index < extra)
                assigned[member_id].extend((topic, partition) for partition in range(start, end))
                start = end
    return {member_id: frozenset(partitions) for member_id, partitions in assigned.items()}


def _rank(member_id: str, member: Subscriber) -> tuple[bool, str]:
    if member.instance_id is None:
        return True, member_id
    return False, member.instance_id
