"""The source called as Spark's processes call it, but in this one: real brokers and records, no Spark job.

Most options are about which offsets are read, and that is decided here. That Spark gets the same rows is
shown by the tests that run it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

from ottla.spark.ranges import OffsetRange
from ottla.spark.reader import OttlaReader
from ottla.spark.source import OttlaDataSource
from ottla.spark.stream_reader import OttlaStreamReader


def source(options: Mapping[str, str]) -> OttlaDataSource:
    return OttlaDataSource(CaseInsensitiveDict(options))


def batch_reader(options: Mapping[str, str], schema: StructType | None = None) -> OttlaReader:
    made = source(options)
    return pickle.loads(pickle.dumps(made.reader(schema or made.schema())))


def stream_reader(options: Mapping[str, str]) -> OttlaStreamReader:
    made = source(options)
    return made.streamReader(made.schema())


def ranges(options: Mapping[str, str]) -> list[OffsetRange]:
    """What the tasks of a batch query would read."""
    return [partition.value for partition in batch_reader(options).partitions()]


def rows(options: Mapping[str, str], schema: StructType | None = None) -> list[dict[str, Any]]:
    """The rows of a batch query, by partition and offset as they come."""
    reader = batch_reader(options, schema)
    return [row for partition in reader.partitions() for row in table(reader, partition)]


def table(reader: OttlaReader | OttlaStreamReader, partition: Any) -> list[dict[str, Any]]:
    batches: list[pa.RecordBatch] = list(reader.read(pickle.loads(pickle.dumps(partition))))
    return [row for batch in batches for row in batch.to_pylist()]


def values(options: Mapping[str, str]) -> list[bytes]:
    return [row["value"] for row in rows(options)]


def between(reader: OttlaStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
    """The values of one micro-batch of a stream."""
    return [row["value"] for each in reader.partitions(start, end) for row in table(reader, each)]
