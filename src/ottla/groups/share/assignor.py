"""The assignor of share groups, `simple`: several members may read one partition.

Every partition gets as many members as it takes for everybody to have one, and as far as that allows members
keep what they had. Where members subscribe to different topics, each topic is shared out by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from ottla.core.ids import Uuid
from ottla.groups.assignors.subscribers import Assignment, Partition, Subscriber

NAME = "simple"


def assign(
    members: Mapping[str, Subscriber], assignable: Mapping[Uuid, Collection[int]]
) -> dict[str, Assignment]:
    """What each member is to have of the partitions that are ready to be read."""
    shared: dict[str, set[Partition]] = {member_id: set() for member_id in members}
    for member_ids, topics in _audiences(members):
        partitions = [
            (topic_id, index) for topic_id in sorted(topics) for index in sorted(assignable.get(topic_id, ()))
        ]
        if partitions:
            had = {member_id: members[member_id].assigned for member_id in member_ids}
            for member_id, given in _share_out(member_ids, partitions, had).items():
                shared[member_id] |= given
    return {member_id: frozenset(given) for member_id, given in shared.items()}


def _audiences(members: Mapping[str, Subscriber]) -> Iterable[tuple[list[str], Collection[Uuid]]]:
    """Members, and the topics that are shared out among them."""
    subscriptions = {member.topics for member in members.values()}
    if len(subscriptions) == 1:
        return [(list(members), subscriptions.pop())]
    readers: dict[Uuid, list[str]] = {}
    for member_id, member in members.items():
        for topic_id in member.topics:
            readers.setdefault(topic_id, []).append(member_id)
    return [(member_ids, [topic_id]) for topic_id, member_ids in readers.items()]


def _share_out(
    member_ids: Sequence[str],
    partitions: Sequence[Partition],
    had: Mapping[str, Collection[Partition]],
) -> dict[str, set[Partition]]:
    places = -(-len(member_ids) // len(partitions))  # of each partition
    due = _dues(places * len(partitions), len(member_ids))
    readers = dict.fromkeys(partitions, 0)
    given: dict[str, set[Partition]] = {}
    waiting: deque[tuple[str, int]] = deque()
    for member_id, count in zip(member_ids, due, strict=True):
        mine = given[member_id] = set()
        # What it keeps: as much as it is due, of partitions that have a place left.
        for partition in sorted(partition for partition in had[member_id] if partition in readers):
            if len(mine) < count and readers[partition] < places:
                mine.add(partition)
                readers[partition] += 1
        if len(mine) < count:
            waiting.append((member_id, count))
    for partition in partitions:
        passed_over = []
        while waiting and readers[partition] < places:
            member_id, count = waiting.popleft()
            if partition in given[member_id]:
                passed_over.append((member_id, count))
                continue
            given[member_id].add(partition)
            readers[partition] += 1
            if len(given[member_id]) < count:
                waiting.append((member_id, count))
        waiting.extendleft(reversed(passed_over))
    return given


def _dues(total: int, members: int) -> list[int]:
    """How many places each member is due, so that the difference is one at the most."""
    ends = [-(-total * number // members) for number in range(members + 1)]
    return [end - start for start, end in pairwise(ends)]
