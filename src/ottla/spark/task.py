"""What a task does: fetch a range of one partition and hand it to Spark as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ottla.client.blocking.cluster import BlockingCluster, cached_cluster
from ottla.client.blocking.fetch import fetch
from ottla.client.security import Security
from ottla.core.types import TopicPartition
from ottla.protocol.errors import OffsetOutOfRange
from ottla.spark.data_loss import report_data_loss
from ottla.spark.heap import freeze_imports
from ottla.spark.offsets import EARLIEST, LATEST
from ottla.spark.options import ReadOptions
from ottla.spark.ranges import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

FETCH_BYTES: Final = 8 * 1024 * 1024
"""Of one request, and so about the size of an Arrow batch: large ones are cheaper, up to some 50,000 rows."""
LEAST_FETCH_BYTES: Final = 64 * 1024
RECORD_BYTES: Final = 1024
"""What is asked for each record of a small range, so that little is fetched that belongs to the next one."""


def read_range(options: ReadOptions, schema: StructType, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The records of a range, in the columns of `schema`.

    Records that are gone are an error or, with failOnDataLoss=false, passed over as far as they are gone.
    """
    # Spark's worker processes serve one task after another, and so do their connections.
    cluster = cached_cluster(
        options.bootstrap,
        Security.from_properties(options.properties),
        options.client_id,
        timeout=options.timeout_ms / 1000,
    )
    position, end = _bound(cluster, wanted, options)
    # Who asked for whatever is there has lost nothing when the first records go just now.
    is_bound_late = wanted.start == EARLIEST
    while position < end:
        try:
            for batch, next_offset in _batches(
                cluster, options, schema, wanted.topic_partition, position, end
            ):
                position, is_bound_late = next_offset, False
                yield batch
            return
        except OffsetOutOfRange:
            if not is_bound_late:
                report_data_loss(
                    f"cannot read partition {wanted.topic_partition} from offset {position} up to {end}",
                    fail=options.fail_on_data_loss,
                )
        first, last = _ends(cluster, wanted.topic_partition, options)
        position = end if position >= last else max(position, first)


def _batches(
    cluster: BlockingCluster,
    options: ReadOptions,
    schema: StructType,
    partition: TopicPartition,
    start: int,
    end: int,
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Arrow batches, each with the offset to go on from after it."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from ottla.arrow.decode import Decoder

    freeze_imports()
    columns = schema.names
    decoder = Decoder(
        *partition, columns=columns, read_committed=options.read_committed, verify_crc=options.check_crcs
    )
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    position = start
    for fetched in fetch(
        cluster,
        partition,
        start,
        end,
        isolation_level=options.isolation_level,
        max_bytes=options.max_fetch_bytes or _fetch_bytes(end - start),
        timeout=options.timeout_ms / 1000,
    ):
        found = decoder.batches(fetched.records, start=position, end=end, aborted=fetched.aborted)
        for batch in found:
            if batch.num_rows:
                yield _as_declared(batch, arrow_schema), decoder.next_offset
        position = fetched.next_offset


def _fetch_bytes(records: int) -> int:
    return min(FETCH_BYTES, max(LEAST_FETCH_BYTES, records * RECORD_BYTES))


def _as_declared(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same columns under the schema that Spark expects to the letter (a user may declare NOT NULL)."""
    columns = batch.columns
    if "headers" in schema.names:
        index = schema.get_field_index("headers")
        columns[index] = _null_where_empty(columns[index])
    elif batch.schema.equals(schema):
        return batch
    return type(batch).from_arrays(columns, schema=schema)


def _null_where_empty(headers: pa.ListArray) -> pa.ListArray:
    """No headers are NULL, as in Spark's Kafka connector."""
    import pyarrow.compute as pc

    is_empty = pc.equal(pc.list_value_length(headers), 0)
    return type(headers).from_arrays(headers.offsets, headers.values, type=headers.type, mask=is_empty)


def _bound(cluster: BlockingCluster, wanted: OffsetRange, options: ReadOptions) -> tuple[int, int]:
    if wanted.start >= 0 and wanted.end >= 0:
        return wanted.start, wanted.end
    first, last = _ends(cluster, wanted.topic_partition, options)
    return first if wanted.start == EARLIEST else wanted.start, last if wanted.end == LATEST else wanted.end


def _ends(cluster: BlockingCluster, partition: TopicPartition, options: ReadOptions) -> tuple[int, int]:
    found: list[Any] = [
        cluster.list_offsets({partition: spec}, isolation_level=options.isolation_level)[partition].offset
        for spec in (EARLIEST, LATEST)
    ]
    return found[0], found[1]
