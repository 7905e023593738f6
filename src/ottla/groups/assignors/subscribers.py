"""What an assignor is told, and how members are brought together with topics.

Most groups have many members and one subscription. So members are first sorted by what they subscribe to, and
topics by who subscribes to them: `audiences` costs as much as the different subscriptions are long, however
many members share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from ottla.core.ids import Uuid

Partition = tuple[Uuid, int]
Assignment = frozenset[Partition]
PartitionCounts = Mapping[Uuid, int]


class Subscriber(NamedTuple):
    """A member of a group, as assignors see it."""

    topics: frozenset[Uuid]
    assigned: Set[Partition] = frozenset()  # by the last assignment
    instance_id: str | None = None
    rack_id: str | None = None  # no assignor looks at it, as in Kafka 4.3


class Audience(NamedTuple):
    """Topics that have the same subscribers."""

    members: list[str]
    topics: list[Uuid]


def audiences(members: Mapping[str, Subscriber], counts: PartitionCounts) -> list[Audience]:
    """Every topic that exists and has subscribers, once; members and topics in the order given by the ids."""
    alike: dict[frozenset[Uuid], list[str]] = {}
    for member_id in members:
        alike.setdefault(members[member_id].topics, []).append(member_id)
    if len(alike) == 1:
        ((topics, only),) = alike.items()
        existing = sorted(topic for topic in topics if topic in counts)
        return [Audience(only, existing)] if existing else []
    subscriptions: dict[Uuid, list[int]] = {}
    for index, topics in enumerate(alike):
        for topic in topics:
            if topic in counts:
                subscriptions.setdefault(topic, []).append(index)
    groups = list(alike.values())
    together: dict[tuple[int, ...], list[Uuid]] = {}
    for topic in sorted(subscriptions):
        together.setdefault(tuple(subscriptions[topic]), []).append(topic)
    return [
        Audience([member for index in indices for member in groups[index]], topics)
        for indices, topics in together.items()
    ]
