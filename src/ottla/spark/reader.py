"""Batch reads: planned on the driver, read by tasks in executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.spark.offset_reader import OffsetReader
from ottla.spark.offsets import LATEST, Offsets
from ottla.spark.options import ReadOptions
from ottla.spark.properties import BadOption
from ottla.spark.ranges import OffsetRange, split_ranges
from ottla.spark.task import read_range

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class OttlaReader(DataSourceReader):
    """Pickled into every task, so it holds what was asked for and no connection."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        offsets = OffsetReader(self._options)
        try:
            return [InputPartition(each) for each in plan_batch(offsets, self._options)]
        finally:
            offsets.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark runs one task without a range when there is nothing to read.
        return read_range(self._options, self._schema, partition.value) if partition.value else iter(())


def plan_batch(offsets: OffsetReader, options: ReadOptions) -> list[OffsetRange]:
    """The ranges of a batch query.

    Earliest and latest stay words, and each task finds out what they are. Spark plans a DataFrame once: were
    they offsets already, a second action on it would not see what came in between.
    """
    start = offsets.at(options.starting, starting=True)
    if LATEST in start.values():  # of times that no record has reached
        start = offsets.resolved(start)
    end = offsets.at(options.ending, starting=False)
    # Partitions that appeared between the two questions are left for the next query.
    partitions = sorted(start.keys() & end.keys())
    for partition in partitions:
        if 0 <= end[partition] < start[partition]:
            raise BadOption(
                f"partition {partition} would be read from offset {start[partition]} up to {end[partition]}: "
                "the start is after the end"
            )
    if options.min_partitions is None and options.max_records_per_partition is None:
        ranges = [OffsetRange(*p, start[p], end[p]) for p in partitions]
        return [each for each in ranges if each.start < 0 or each.end < 0 or each.size > 0]
    first, last = offsets.resolved(start), offsets.resolved(end)
    pieces = split_ranges(
        [OffsetRange(*p, first[p], last[p]) for p in partitions],
        min_partitions=options.min_partitions,
        max_records=options.max_records_per_partition,
    )
    return [_as_asked(piece, first, last, start, end) for piece in pieces]


def _as_asked(piece: OffsetRange, first: Offsets, last: Offsets, start: Offsets, end: Offsets) -> OffsetRange:
    """The outer pieces of a partition with the words again that were asked for."""
    partition = piece.topic_partition
    if piece.start == first[partition]:
        piece = piece._replace(start=start[partition])
    if piece.end == last[partition]:
        piece = piece._replace(end=end[partition])
    return piece
