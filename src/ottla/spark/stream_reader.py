"""Streaming reads: one process on the driver for as long as the query runs; tasks get a pickled copy.

The offset that Spark keeps in the checkpoint is `{"topic": {"0": 23}}`, in which 23 is the offset to read
next: the same as that of Spark's Kafka connector.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.client.errors import ClientError
from ottla.core.types import TopicPartition
from ottla.protocol.errors import KafkaError
from ottla.spark.data_loss import logger, report_data_loss
from ottla.spark.offset_reader import OffsetReader
from ottla.spark.offsets import LATEST, Offsets, available, from_json, limited, to_json
from ottla.spark.options import ReadOptions
from ottla.spark.ranges import OffsetRange, between, bundle_ranges, split_ranges
from ottla.spark.task import read_range

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

Json = dict[str, Any]

FEW_RECORDS: Final = 1000
"""So many are read by one task, from however many partitions. A task of a Python source, and of a Python sink
once more, costs as much as reading tens of thousands of records.

The tasks follow from the offsets in the checkpoint, so a batch that is run again has the same ones. It has
others if the first run was with another number here, or with minPartitions. An exactly-once sink finishes
such a batch all the same, or refuses it if the broker has given up a part: see `exactly_once`."""


class OttlaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The driver's side of one streaming source."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._offsets = OffsetReader(options)
        self._initial: dict[TopicPartition, int] | None = None
        self._starts_anywhere = False
        self._latest: dict[TopicPartition, int] | None = None
        self._until: dict[TopicPartition, int] | None = None
        self._is_available_now = False
        self._last_trigger: float | None = None
        self._committed: Json | None = None

    # --- where to start ------------------------------------------------------------------

    def initialOffset(self) -> Json:
        """Where a query without a checkpoint starts. Spark asks more than once and needs one answer."""
        if self._initial is None:
            asked = self._offsets.at(self._options.starting, starting=True)
            self._starts_anywhere = LATEST in asked.values()
            self._initial = self._offsets.resolved(asked)
        return to_json(self._initial)

    # --- how far to go -------------------------------------------------------------------

    def getDefaultReadLimit(self) -> ReadLimit:
        # Spark's Python sources cannot combine limits: `latestOffset` adds the other one.
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_available_now = True

    def reportLatestOffset(self) -> Json | None:
        return to_json(self._latest) if self._latest else None

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """The end of the next batch. Everything before `start` has been processed."""
        self._commit(start)
        begin = from_json(start)
        if self._until is None:
            self._latest = self._offsets.latest(begin)
            self._until = self._latest if self._is_available_now else None
        assert self._latest is not None
        if self._is_first_of_anywhere(begin):
            # The checkpoint has no place for the offset that a query starts with. An empty first batch puts
            # it there; else a restart before the first batch is done would look up the latest offset once
            # more, and what came in between would never be read.
            self._starts_anywhere = False
            return start
        return to_json(self._limited(begin, self._latest, limit))

    def _is_first_of_anywhere(self, begin: Offsets) -> bool:
        return self._starts_anywhere and begin == self._initial

    def _limited(self, begin: Offsets, latest: Offsets, limit: ReadLimit) -> Offsets:
        if isinstance(limit, ReadAllAvailable):
            return latest
        if self._is_too_early(begin, latest):
            return begin
        if self._options.max_offsets_per_trigger is None:
            return latest
        added = self._offsets.earliest(latest.keys() - begin.keys())
        return limited(self._options.max_offsets_per_trigger, {**begin, **added}, latest)

    def _is_too_early(self, begin: Offsets, latest: Offsets) -> bool:
        """Whether minOffsetsPerTrigger says to wait. What is available now is read whatever its size, as
        nothing is going to be added to it."""
        if self._options.min_offsets_per_trigger is None or self._is_available_now:
            return False
        now = time.monotonic()
        waited = None if self._last_trigger is None else (now - self._last_trigger) * 1000
        if (
            waited is not None
            and waited < self._options.max_trigger_delay_ms
            and available(begin, latest) < self._options.min_offsets_per_trigger
        ):
            return True
        self._last_trigger = now
        return False

    # --- what to read --------------------------------------------------------------------

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        begin, until = from_json(start), from_json(end)
        if self._starts_anywhere and begin == self._initial:
            # The empty first batch of a query that started at the latest offsets, and was restarted before
            # that batch was done. Where it started is where it ends, not what is the latest offset now.
            begin = until
        added = self._offsets.earliest(until.keys() - begin.keys())
        ranges, losses = between(begin, until, added)
        for loss in losses:
            report_data_loss(loss, fail=self._options.fail_on_data_loss)
        return [InputPartition(bundle) for bundle in self._bundles(ranges)]

    def _bundles(self, ranges: Sequence[OffsetRange]) -> list[tuple[OffsetRange, ...]]:
        """The ranges of each task. Who says how many tasks there should be gets no fewer."""
        minimum, maximum = self._options.min_partitions, self._options.max_records_per_partition
        pieces = split_ranges(ranges, min_partitions=minimum, max_records=maximum)
        return bundle_ranges(pieces, FEW_RECORDS if minimum is None and maximum is None else 0)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for wanted in partition.value:
            yield from read_range(self._options, self._schema, wanted)

    # --- what was done -------------------------------------------------------------------

    def commit(self, end: Json) -> None:
        """Nothing: Spark calls this for a batch when the next one is planned, so never for the last one."""

    def _commit(self, done: Json) -> None:
        """Show in the consumer group how far the query is, if that is wanted. The checkpoint does not need
        it, so a commit that fails is no reason to fail the query."""
        group = self._options.group_id
        if not self._options.commit_offsets or group is None or done == self._committed:
            return
        try:
            self._offsets.cluster.commit_offsets(group, from_json(done))
        except (KafkaError, ClientError) as error:
            logger.warning("the progress could not be committed to group %s: %s", group, error)
        else:
            self._committed = done

    def stop(self) -> None:
        self._offsets.close()
