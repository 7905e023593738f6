"""Asks brokers, from the driver, which partitions a read has and where they start and end."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.security import Security
from ottla.core.types import TopicPartition
from ottla.protocol.errors import UnknownTopicOrPartition
from ottla.spark.data_loss import logger
from ottla.spark.offsets import EARLIEST, LATEST, Offsets, describe
from ottla.spark.options import ReadOptions
from ottla.spark.positions import At, AtTimestamp, AtTimestamps, Earliest, Latest, Position
from ottla.spark.properties import BadOption
from ottla.spark.subscription import Partitions, Pattern, Topics


class OffsetReader:
    """The offsets of what `options` subscribe to. Connects when first asked."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster: BlockingCluster | None = None
        self._partitions: list[TopicPartition] = []
        self._partitions_until = 0.0

    @property
    def cluster(self) -> BlockingCluster:
        if self._cluster is None:
            options = self._options
            for warning in options.warnings:
                logger.warning("%s", warning)
            self._cluster = BlockingCluster(
                options.bootstrap,
                client_id=options.client_id,
                security=Security.from_properties(options.properties),
                timeout=options.timeout_ms / 1000,
            )
        return self._cluster

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    # --- partitions ----------------------------------------------------------------------

    def partitions(self, known: Collection[TopicPartition] = ()) -> list[TopicPartition]:
        """What there is to read now. A topic that is not there is an error, unless some of it was `known`:
        then it was deleted, and the caller finds its partitions missing."""
        if self._partitions and time.monotonic() < self._partitions_until:
            return self._partitions
        found = self._look_up(known)
        if self._options.partition_cache_ms > 0:
            self._partitions_until = time.monotonic() + self._options.partition_cache_ms / 1000
        self._partitions = found
        return found

    def _look_up(self, known: Collection[TopicPartition]) -> list[TopicPartition]:
        match self._options.subscription:
            case Topics(names):
                topics = self._topics(names, known)
                return [TopicPartition(name, number) for name in sorted(topics) for number in topics[name]]
            case Pattern() as pattern:
                topics = self.cluster.topics()
                return [
                    TopicPartition(name, number)
                    for name in pattern.matching(topics)
                    for number in topics[name]
                ]
            case Partitions(partitions):
                topics = self._topics(sorted({name for name, _ in partitions}), known)
                there = [each for each in partitions if each.partition in topics.get(each.topic, ())]
                missing = set(partitions) - set(there) - set(known)
                if missing:
                    raise BadOption(f"option 'assign': there is no partition {describe(missing)}")
                return there

    def _topics(self, names: Collection[str], known: Collection[TopicPartition]) -> dict[str, list[int]]:
        """Partition numbers by topic. One that is not there is asked for again, as it may just be made."""
        was_there = {partition.topic for partition in known}
        for attempt in range(1, self._options.fetch_offset_attempts + 1):
            try:
                return self.cluster.topics(names)
            except UnknownTopicOrPartition:
                present = self.cluster.topics()
                missing = [name for name in names if name not in present]
                if was_there.issuperset(missing):
                    return {name: present[name] for name in names if name in present}
                if attempt == self._options.fetch_offset_attempts:
                    raise BadOption(
                        f"there is no topic {' or '.join(missing)} at {self._options.bootstrap}"
                    ) from None
                time.sleep(self._options.fetch_offset_retry_ms / 1000)
        raise AssertionError("at least one attempt is made")

    # --- offsets -------------------------------------------------------------------------

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each; those that have been deleted meanwhile are left out."""
        wanted = set(partitions)
        there = wanted.intersection(self.partitions(wanted)) if wanted else wanted
        return self._list(dict.fromkeys(there, EARLIEST))

    def latest(self, known: Offsets | None = None) -> dict[TopicPartition, int]:
        """The end of each partition. One that is before what is `known` may be the answer of a broker that
        has just become leader, so it is asked for again before it is believed."""
        for attempt in range(1, self._options.fetch_offset_attempts + 1):
            found = self._list(dict.fromkeys(self.partitions(known or ()), LATEST))
            behind = [p for p, offset in found.items() if known and offset < known.get(p, 0)]
            if not behind or attempt == self._options.fetch_offset_attempts:
                return found
            logger.warning("%s: the end is before what has been read; asking again", describe(behind))
            time.sleep(self._options.fetch_offset_retry_ms / 1000)
        raise AssertionError("at least one attempt is made")

    def at(self, position: Position, *, starting: bool) -> dict[TopicPartition, int]:
        """The position in each partition; `EARLIEST` and `LATEST` are left for `resolved`, or for tasks."""
        partitions = self.partitions()
        match position:
            case Earliest():
                return dict.fromkeys(partitions, EARLIEST)
            case Latest():
                return dict.fromkeys(partitions, LATEST)
            case At(offsets):
                self._check_all_named(offsets, partitions, "Offsets", starting)
                return dict(offsets)
            case AtTimestamps(timestamps, else_latest):
                self._check_all_named(timestamps, partitions, "OffsetsByTimestamp", starting)
                return self._at_times(timestamps, else_latest)
            case AtTimestamp(timestamp, else_latest):
                return self._at_times(dict.fromkeys(partitions, timestamp), else_latest)

    def resolved(self, offsets: Offsets) -> dict[TopicPartition, int]:
        """The same with offsets instead of `EARLIEST` and `LATEST`."""
        return {**offsets, **self._list({p: offset for p, offset in offsets.items() if offset < 0})}

    def _at_times(self, timestamps: Offsets, else_latest: bool) -> dict[TopicPartition, int]:
        found = self._list(timestamps)
        for partition, offset in found.items():
            if offset < 0 and not else_latest:
                raise BadOption(
                    f"partition {partition} has no record at or after the time {timestamps[partition]}; to "
                    "start at its end then, set the option startingOffsetsByTimestampStrategy to latest"
                )
        return {partition: LATEST if offset < 0 else offset for partition, offset in found.items()}

    def _list(self, specs: Offsets) -> dict[TopicPartition, int]:
        if not specs:
            return {}
        answer = self.cluster.list_offsets(specs, isolation_level=self._options.isolation_level)
        return {partition: found.offset for partition, found in answer.items()}

    def _check_all_named(
        self, named: Offsets, partitions: Collection[TopicPartition], option: str, starting: bool
    ) -> None:
        if named.keys() != set(partitions):
            raise BadOption(
                f"option '{'starting' if starting else 'ending'}{option}' has to name every partition that "
                f"is read and no other (-1 stands for latest, -2 for earliest). Named: {describe(named)}; "
                f"to be read: {describe(partitions)}"
            )
