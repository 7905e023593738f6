"""Which partitions of a share group have a state with the share coordinator.

A partition can be assigned once its state is initialized. That is done by the share coordinator, so it is
written here first that it is being done, and afterwards that it has been: a coordinator that takes over in
between asks again. Deleting goes the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.core.ids import Uuid
from ottla.protocol.stored import groups as stored

Indices = Mapping[Uuid, Iterable[int]]


class SharedTopic(NamedTuple):
    name: str
    partitions: frozenset[int]
    since_ms: int = 0  # wall time


class PartitionStates:
    """By topic id, what was written of the group's partitions. It does not change."""

    __slots__ = ("deleting", "initialized", "initializing")

    def __init__(
        self,
        initializing: Mapping[Uuid, SharedTopic] | None = None,
        initialized: Mapping[Uuid, SharedTopic] | None = None,
        deleting: Mapping[Uuid, str] | None = None,
    ) -> None:
        self.initializing = dict(initializing or {})
        self.initialized = dict(initialized or {})
        self.deleting = dict(deleting or {})

    @classmethod
    def from_record(
        cls, value: stored.ShareGroupStatePartitionMetadataValue, timestamp_ms: int
    ) -> PartitionStates:
        return cls(
            {
                each.topic_id: SharedTopic(each.topic_name, frozenset(each.partitions), timestamp_ms)
                for each in value.initializing_topics
            },
            {
                each.topic_id: SharedTopic(each.topic_name, frozenset(each.partitions), timestamp_ms)
                for each in value.initialized_topics
            },
            {each.topic_id: each.topic_name for each in value.deleting_topics},
        )

    def missing(
        self, topic_id: Uuid, partition_count: int, retry_after_ms: int, now_ms: int
    ) -> frozenset[int]:
        """Partitions of a topic that nobody is initializing, or not for as long as one should wait."""
        known: frozenset[int] = frozenset()
        if topic_id in self.initialized:
            known = self.initialized[topic_id].partitions
        under_way = self.initializing.get(topic_id)
        if under_way is not None and now_ms - under_way.since_ms < retry_after_ms:
            known |= under_way.partitions
        return frozenset(range(partition_count)) - known

    def begin(self, topics: Mapping[Uuid, SharedTopic]) -> PartitionStates:
        """These are being initialized, whatever was to become of them."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return PartitionStates(_united(self.initializing, topics), self.initialized, deleting)

    def finish(self, topics: Mapping[Uuid, SharedTopic]) -> PartitionStates:
        """These are initialized."""
        given_up = self.give_up({topic_id: topic.partitions for topic_id, topic in topics.items()})
        return PartitionStates(given_up.initializing, _united(self.initialized, topics), self.deleting)

    def give_up(self, indices: Indices) -> PartitionStates:
        """These could not be initialized."""
        initializing = dict(self.initializing)
        for topic_id, partitions in indices.items():
            topic = initializing.pop(topic_id, None)
            left = topic.partitions - frozenset(partitions) if topic is not None else frozenset()
            if topic is not None and left:
                initializing[topic_id] = topic._replace(partitions=left)
        return PartitionStates(initializing, self.initialized, self.deleting)

    def without(self, topic_ids: Iterable[Uuid]) -> PartitionStates:
        """These topics are no more, or their states are not."""
        gone = set(topic_ids)
        return PartitionStates(
            {topic_id: topic for topic_id, topic in self.initializing.items() if topic_id not in gone},
            {topic_id: topic for topic_id, topic in self.initialized.items() if topic_id not in gone},
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in gone},
        )

    def topic_ids(self) -> set[Uuid]:
        return {*self.initializing, *self.initialized, *self.deleting}


def _united(some: Mapping[Uuid, SharedTopic], more: Mapping[Uuid, SharedTopic]) -> dict[Uuid, SharedTopic]:
    united = dict(some)
    for topic_id, topic in more.items():
        known = united.get(topic_id)
        if known is not None:
            topic = topic._replace(partitions=known.partitions | topic.partitions)
        united[topic_id] = topic
    return united
