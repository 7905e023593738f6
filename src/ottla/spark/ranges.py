"""From the offsets of a batch to the ranges that its tasks read, and what was lost in between. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.core.types import TopicPartition
from ottla.spark.offsets import Offsets, describe


class OffsetRange(NamedTuple):
    """Records of a partition from `start` to before `end`.

    `EARLIEST` and `LATEST` stand for offsets that the task itself finds out, when it starts.
    """

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """At most so many records: compaction and transactions leave gaps."""
        return self.end - self.start


def between(start: Offsets, end: Offsets, first: Offsets) -> tuple[list[OffsetRange], list[str]]:
    """(what a stream reads to get from one checkpoint to the next, what cannot be read any more).

    `first` has the first offset of the partitions that only `end` has. They were added, so they should start
    with 0.
    """
    losses = []
    added = end.keys() - start.keys()
    if added - first.keys():
        losses.append(f"partitions {describe(added - first.keys())} have been deleted before they were read")
    late = [partition for partition in sorted(added & first.keys()) if first[partition] > 0]
    losses += [
        f"partition {partition} is new and starts at {first[partition]} instead of 0" for partition in late
    ]
    deleted = start.keys() - end.keys()
    if deleted:
        losses.append(f"partitions {describe(deleted)} have been deleted")
    ranges = []
    for partition in sorted(end):
        begin = start.get(partition, first.get(partition))
        if begin is None:
            continue
        if end[partition] < begin:
            losses.append(
                f"partition {partition} was read up to offset {begin} and now ends at {end[partition]}: the "
                "topic was deleted and created again, or the query was started beyond the end"
            )
        ranges.append(OffsetRange(*partition, begin, end[partition]))
    return ranges, losses


def split_ranges(
    ranges: Iterable[OffsetRange], *, min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Ranges that are empty dropped, large ones divided, as Spark's Kafka connector divides them.

    First so that none has more than `max_records`; if there are fewer than `min_partitions` then, those with
    the most again, in proportion.
    """
    divided = [r for r in ranges if r.size > 0]
    if max_records is not None:
        divided = [piece for r in divided for piece in _divide(r, -(-r.size // max_records))]
    if min_partitions is None or len(divided) >= min_partitions or not divided:
        return divided
    total = sum(r.size for r in divided)
    # What stays whole is left out of the proportions of what is divided.
    whole = [r for r in divided if _parts(r.size, total, min_partitions) == 1]
    kept = {r.topic_partition for r in whole}
    total -= sum(r.size for r in whole)
    wanted = max(min_partitions - len(whole), 1)
    return [
        piece
        for r in divided
        for piece in _divide(r, 1 if r.topic_partition in kept else _parts(r.size, total, wanted))
    ]


def bundle_ranges(ranges: Iterable[OffsetRange], records: int) -> list[tuple[OffsetRange, ...]]:
    """What each task reads, if small ranges share one: neighbours, as long as they have no more than this.

    It depends on the ranges alone, so a batch that is run again has the same tasks.
    """
    bundles: list[list[OffsetRange]] = []
    room = 0
    for each in ranges:
        if each.size <= room:
            bundles[-1].append(each)
        else:
            bundles.append([each])
            room = records
        room -= each.size
    return [tuple(bundle) for bundle in bundles]


def _parts(size: int, total: int, wanted: int) -> int:
    return max(math.floor(size / total * wanted + 0.5), 1)


def _divide(whole: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    start, remaining = whole.start, whole.size
    for part in range(parts):
        taken = remaining // (parts - part)
        if taken:
            yield whole._replace(start=start, end=start + taken)
        start += taken
        remaining -= taken
