"""Committed positions of one shard: those in force, and those of transactions that are still open."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.core.outcome import Applied, LogRecord
from ottla.groups.group import Committed
from ottla.groups.records import record, tombstone
from ottla.protocol.stored.groups import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

Positions = dict[str, dict[int, Committed]]  # topic -> partition -> position


class Offsets:
    """What the OffsetCommit records of a shard say."""

    def __init__(self) -> None:
        self.by_group: dict[str, Positions] = {}
        # Positions in open transactions: producer id -> group -> ...
        self.pending: dict[int, dict[str, Positions]] = {}
        # Which transactions hold a position: group -> (topic, partition) -> producer ids
        self.holders: dict[str, dict[tuple[str, int], set[int]]] = {}

    # Reading

    def get(self, group_id: str, topic: str, partition: int) -> Committed | None:
        positions = self.by_group.get(group_id)
        if positions is None:
            return None
        partitions = positions.get(topic)
        return None if partitions is None else partitions.get(partition)

    def of_group(self, group_id: str) -> Positions:
        """All positions in force of a group; not to be changed."""
        return self.by_group.get(group_id, {})

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has a position for this partition."""
        held = self.holders.get(group_id)
        return held is not None and (topic, partition) in held

    def has_open_transactions(self, group_id: str) -> bool:
        return group_id in self.holders

    def partitions_of(self, group_id: str, topic: str) -> set[int]:
        """The partitions of a topic with a position, in force or pending."""
        held = self.holders.get(group_id, ())
        return {*self.of_group(group_id).get(topic, ()), *(place[1] for place in held if place[0] == topic)}

    def everything_of(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Every partition with a position, in force or pending."""
        for topic, partitions in self.of_group(group_id).items():
            for partition in partitions:
                yield topic, partition
        for topic, partition in self.holders.get(group_id, ()):
            if self.get(group_id, topic, partition) is None:
                yield topic, partition

    # The log

    def apply(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        at: Applied,
    ) -> None:
        if value is None:
            _remove(self.by_group, key.group, key.topic, key.partition)
            for producer_id in list(self.holders.get(key.group, {}).get((key.topic, key.partition), ())):
                self._release(producer_id, key.group, key.topic, key.partition)
                _remove(self.pending[producer_id], key.group, key.topic, key.partition)
            return
        committed = _committed(value, at.offset)
        if at.producer_id < 0:
            _put(self.by_group, key.group, key.topic, key.partition, committed)
            return
        _put(self.pending.setdefault(at.producer_id, {}), key.group, key.topic, key.partition, committed)
        held = self.holders.setdefault(key.group, {})
        held.setdefault((key.topic, key.partition), set()).add(at.producer_id)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """A marker: what the transaction committed takes force, or is forgotten.

        A position that was committed later, outside the transaction, stays.
        """
        for group_id, positions in self.pending.pop(producer_id, {}).items():
            for topic, partitions in positions.items():
                for partition, position in partitions.items():
                    self._release(producer_id, group_id, topic, partition)
                    if not committed:
                        continue
                    existing = self.get(group_id, topic, partition)
                    if existing is None or position.record_offset > existing.record_offset:
                        _put(self.by_group, group_id, topic, partition, position)

    def _release(self, producer_id: int, group_id: str, topic: str, partition: int) -> None:
        held = self.holders[group_id]
        producers = held[topic, partition]
        producers.discard(producer_id)
        if not producers:
            del held[topic, partition]
            if not held:
                del self.holders[group_id]


def commit_record(group_id: str, topic: str, partition: int, position: Committed) -> LogRecord:
    """The record of a position, in the version that Kafka 4.3 writes it in."""
    value = OffsetCommitValue(
        offset=position.offset,
        leader_epoch=position.leader_epoch,
        metadata=position.metadata,
        commit_timestamp=position.commit_timestamp,
        expire_timestamp=position.expire_timestamp,
        topic_id=position.topic_id,
    )
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return record(key, value, 4 if position.expire_timestamp == -1 else 1)


def commit_tombstone(group_id: str, topic: str, partition: int) -> LogRecord:
    return tombstone(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def _committed(value: OffsetCommitValue | LegacyOffsetCommitValue, record_offset: int) -> Committed:
    if isinstance(value, LegacyOffsetCommitValue):
        return Committed(
            value.offset, -1, value.metadata, value.commit_timestamp, record_offset=record_offset
        )
    return Committed(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        record_offset,
    )


def _put(
    groups: dict[str, Positions], group_id: str, topic: str, partition: int, position: Committed
) -> None:
    positions = groups.get(group_id)
    if positions is None:
        positions = groups[group_id] = {}
    partitions = positions.get(topic)
    if partitions is None:
        partitions = positions[topic] = {}
    partitions[partition] = position


def _remove(groups: dict[str, Positions], group_id: str, topic: str, partition: int) -> None:
    positions = groups.get(group_id, {})
    partitions = positions.get(topic, {})
    if partitions.pop(partition, None) is not None and not partitions:
        del positions[topic]
        if not positions:
            del groups[group_id]
