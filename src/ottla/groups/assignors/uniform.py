"""The uniform assignor: as many partitions to each member as to any other, and as few of them moved as that
allows.

Topics with the same subscribers are dealt with together: their partitions are divided so that the members'
loads become as level as they can be, whatever else the members have. With one subscription in the group this
is the whole work. With several, dividing one audience's partitions changes the loads another audience has to
level out, so it is repeated until nothing moves. A round only ever moves a partition to a member that has at
least two fewer, hence it ends; for subscriptions made to be difficult it is stopped after a number of rounds,
and the group is a little less level than it could be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from ottla.core.ids import Uuid
from ottla.groups.assignors.subscribers import (
    Assignment,
    Audience,
    Partition,
    PartitionCounts,
    Subscriber,
    audiences,
)

MAX_ROUNDS: Final = 16  # the first levels most groups, the second finds nothing to do


def assign(members: Mapping[str, Subscriber], counts: PartitionCounts) -> dict[str, Assignment]:
    # The most constrained first: who can have few topics should not find others' partitions in their place.
    shares = [
        _Share(audience, members, counts)
        for audience in sorted(audiences(members, counts), key=lambda each: len(each.members))
    ]
    loads = dict.fromkeys(members, 0)
    for share in shares:
        for member_id, partitions in share.held.items():
            loads[member_id] += len(partitions)
    for _ in range(MAX_ROUNDS):
        if not sum([share.level(loads) for share in shares]) or len(shares) == 1:
            break
    assigned: dict[str, list[Partition]] = {member_id: [] for member_id in members}
    for share in shares:
        for member_id, partitions in share.held.items():
            assigned[member_id] += partitions
    return {member_id: frozenset(partitions) for member_id, partitions in assigned.items()}


class _Share:
    """The partitions of an audience's topics, and which of its members holds which."""

    __slots__ = ("free", "held")

    def __init__(
        self, audience: Audience, members: Mapping[str, Subscriber], counts: PartitionCounts
    ) -> None:
        topics = set(audience.topics)
        taken: set[Partition] = set()
        self.held: dict[str, list[Partition]] = {}
        for member_id in sorted(audience.members):
            # A partition may have gone with its topic, or (when members were merged) have two owners.
            kept = sorted(
                partition
                for partition in members[member_id].assigned
                if partition[0] in topics and partition[1] < counts[partition[0]] and partition not in taken
            )
            taken.update(kept)
            self.held[member_id] = _by_turns(kept)
        self.free = [
            (topic, index)
            for topic in audience.topics
            for index in range(counts[topic])
            if (topic, index) not in taken
        ]

    def level(self, loads: dict[str, int]) -> int:
        """Give the partitions to the members with the least; how many changed hands."""
        wanted = self._wanted(loads)
        for member_id, partitions in self.held.items():
            surplus = len(partitions) - wanted[member_id]
            if surplus > 0:
                self.free += partitions[-surplus:]
                del partitions[-surplus:]
                loads[member_id] -= surplus
        moved = len(self.free)
        if moved:
            # In turns, so that the partitions of a topic, which may be a busy one, go to different members.
            self.free.sort(reverse=True)
            for member_id in self._turns(wanted):
                self.held[member_id].append(self.free.pop())
                loads[member_id] += 1
            assert not self.free, f"{len(self.free)} partitions were left over"
        return moved

    def _wanted(self, loads: dict[str, int]) -> dict[str, int]:
        """How many partitions of this share each member is to hold: up to the common level, like water."""
        total = len(self.free) + sum(map(len, self.held.values()))
        elsewhere = sorted((loads[member_id] - len(held), member_id) for member_id, held in self.held.items())
        level, poured, wet = elsewhere[0][0], 0, 0
        while True:
            while wet < len(elsewhere) and elsewhere[wet][0] <= level:
                wet += 1
            brim = elsewhere[wet][0] if wet < len(elsewhere) else level + total + 1
            step = min(brim - level, (total - poured) // wet)
            level += step
            poured += step * wet
            if level < brim:
                break
        wanted = {member_id: max(level - load, 0) for load, member_id in elsewhere}
        # What does not divide: first to those that have it now, so that it need not move.
        extra = total - poured
        if extra:
            under = [member_id for _, member_id in elsewhere[:wet]]
            under.sort(key=lambda member_id: len(self.held[member_id]) <= wanted[member_id])
            for member_id in under[:extra]:
                wanted[member_id] += 1
        return wanted

    def _turns(self, wanted: dict[str, int]) -> Iterator[str]:
        missing = {
            member_id: wanted[member_id] - len(held)
            for member_id, held in self.held.items()
            if wanted[member_id] > len(held)
        }
        while missing:
            for member_id in list(missing):
                yield member_id
                missing[member_id] -= 1
                if not missing[member_id]:
                    del missing[member_id]


def _by_turns(partitions: list[Partition]) -> list[Partition]:
    """The first of each topic, then the second of each, and so on.

    Partitions are given up from the end, so that whoever has something of many topics keeps some of many.
    """
    seen: Counter[Uuid] = Counter()
    ranked = []
    for partition in partitions:
        ranked.append((seen[partition[0]], partition))
        seen[partition[0]] += 1
    return [partition for _, partition in sorted(ranked)]
