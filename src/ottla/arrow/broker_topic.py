"""A topic as a broker has it: where its partitions begin and end, and their batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ottla.arrow.log_directory import Piece
from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.blocking.fetch import fetch
from ottla.client.blocking.offsets import EARLIEST, LATEST
from ottla.client.security import Security
from ottla.core.types import TopicPartition


class BrokerTopic:
    """A topic read over Kafka's protocol. Its connections end with `close`."""

    def __init__(
        self, topic: str, bootstrap: str, properties: Mapping[str, str], isolation_level: int, timeout: float
    ) -> None:
        self.topic, self.isolation_level = topic, isolation_level
        self.cluster = BlockingCluster(
            bootstrap,
            client_id=properties.get("client.id", "ottla"),
            security=Security.from_properties(properties),
            timeout=timeout,
        )

    def close(self) -> None:
        self.cluster.close()

    def partitions(self) -> list[int]:
        return self.cluster.topics([self.topic])[self.topic]

    def starts(self, partitions: Iterable[int]) -> dict[int, int]:
        return self._offsets(partitions, EARLIEST)

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        return self._offsets(partitions, LATEST)

    def at(self, partitions: Iterable[int], timestamp_ms: int) -> dict[int, int]:
        """The first offset at or after a time; -1 where no record is that young."""
        return self._offsets(partitions, timestamp_ms)

    def read(self, partition: int, start: int, end: int) -> Iterator[Piece]:
        where = TopicPartition(self.topic, partition)
        for fetched in fetch(self.cluster, where, start, end, isolation_level=self.isolation_level):
            yield Piece(fetched.records, fetched.aborted)

    def _offsets(self, partitions: Iterable[int], spec: int) -> dict[int, int]:
        wanted = {TopicPartition(self.topic, number): spec for number in partitions}
        found = self.cluster.list_offsets(wanted, isolation_level=self.isolation_level)
        return {where.partition: each.offset for where, each in found.items()}
