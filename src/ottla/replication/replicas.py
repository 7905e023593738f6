"""Every partition that has a replica on this node."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.protocol.errors import InconsistentTopicId, KafkaStorageError, UnknownTopicOrPartition
from ottla.replication.partition import Partition
from ottla.storage.files import is_of_the_disk
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory


class Replicas:
    """Found by name on every request, so the lookup is one dictionary per topic."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self._topics: dict[str, dict[int, Partition]] = {}
        # Partitions that took appends in this turn of the loop and have bytes still to be written.
        self.dirty: list[Partition] = []

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._topics.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(map(len, self._topics.values()))

    def find(self, topic: str, partition: int) -> Partition | None:
        partitions = self._topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def get(self, topic: str, partition: int, topic_id: Uuid | None = None) -> Partition:
        """The replica, or the Kafka error that says why there is none."""
        found = self.find(topic, partition)
        if found is None:
            raise UnknownTopicOrPartition
        if topic_id is not None and topic_id != found.topic_id:
            raise InconsistentTopicId
        if found.offline:
            raise KafkaStorageError
        return found

    def of_topic(self, topic: str, topic_id: Uuid) -> list[Partition]:
        """The replicas of one topic, and not of another that has had its name."""
        return [each for each in self._topics.get(topic, {}).values() if each.topic_id == topic_id]

    def add(self, name: TopicPartition, topic_id: Uuid, log: Log, directory: LogDirectory) -> Partition:
        made = Partition(name, topic_id, log, directory, self.node_id, self.dirty)
        self._topics.setdefault(name.topic, {})[name.partition] = made
        return made

    def remove(self, name: TopicPartition) -> Partition | None:
        partitions = self._topics.get(name.topic)
        if partitions is None:
            return None
        gone = partitions.pop(name.partition, None)
        if not partitions:
            del self._topics[name.topic]
        return gone

    def write_pending(self) -> set[Partition]:
        """Write what this turn appended, one gather-write per log; answers the partitions where that failed.

        Called before the turn's answers leave: an acks=1 answer promises that the bytes are with the kernel.
        """
        dirty = self.dirty
        failed = set()
        again = []
        while dirty:
            partition = dirty.pop()
            try:
                partition.write()
            except OSError as error:
                partition.directory.fail(error)
                failed.add(partition)
                if not is_of_the_disk(error):
                    again.append(partition)
            except KafkaStorageError:
                # It could not be written earlier in the turn, for a reader or a new segment, or is deleted.
                failed.add(partition)
        dirty.extend(again)
        return failed

    def write_now(self, partition: Partition) -> None:
        """Write one log ahead of the others, for a caller who must know whether it could be written."""
        try:
            partition.write()
        except OSError as error:
            # It stays with the dirty ones: others who appended to it in this turn are to hear of it too.
            raise partition.directory.fail(error) from error
        if self.dirty and self.dirty[-1] is partition:
            self.dirty.pop()
