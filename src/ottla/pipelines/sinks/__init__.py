"""Sinks: where the rows of a flow go.

| sink | a batch that is replayed |
|---|---|
| topic, parquet | is written once, by Ottla's and by Spark's own sink |
| delta, iceberg | is found in the table and left out |
| jdbc | is written again |
| console | is printed again |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.pipelines.sinks.console import ConsoleSink
from ottla.pipelines.sinks.delta import DeltaSink
from ottla.pipelines.sinks.files import ParquetSink
from ottla.pipelines.sinks.iceberg import IcebergSink
from ottla.pipelines.sinks.jdbc import JdbcSink
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.sinks.topic import TopicSink
from ottla.pipelines.sinks.upserts import upsert_of


def topic(name: str, *, key: str | None = None, options: Mapping[str, str] | None = None) -> Sink:
    """A topic. Rows without a column `value` become JSON objects; `key` names the column that is the record's
    key."""
    return TopicSink(name, key, options or {})


def parquet(path: str, *, partition_by: Sequence[str] = (), options: Mapping[str, str] | None = None) -> Sink:
    """A directory of Parquet files, below the project unless the path is absolute or an address."""
    return ParquetSink(path, tuple(partition_by), options or {})


def delta(
    path: str,
    *,
    key: str | Sequence[str] = (),
    order_by: str | None = None,
    delete_when: str | None = None,
    partition_by: Sequence[str] = (),
    storage_options: Mapping[str, str] | None = None,
) -> Sink:
    """A Delta table. Rows are added; with `key` they replace the row of that key, if they are later by
    `order_by`, and delete it where the condition `delete_when` holds."""
    upsert = upsert_of(key, order_by, delete_when)
    return DeltaSink(path, upsert, tuple(partition_by), storage_options or {})


def iceberg(
    table: str,
    *,
    key: str | Sequence[str] = (),
    order_by: str | None = None,
    delete_when: str | None = None,
    partition_by: Sequence[str] = (),
    catalog: str | Mapping[str, str] | None = None,
) -> Sink:
    """An Iceberg table such as "shop.orders"; `key`, `order_by` and `delete_when` as for a Delta table. The
    catalog is a file of the project unless one is named."""
    return IcebergSink(table, upsert_of(key, order_by, delete_when), tuple(partition_by), catalog)


def jdbc(url: str, table: str, **options: str) -> Sink:
    """A table of a database, at least once. Options are those of Spark's JDBC writer; its driver's jar comes
    with `spark.jars.packages` in pipeline.toml."""
    return JdbcSink(url, table, options)


def console(rows: int = 20) -> Sink:
    """The terminal: the first rows of every batch."""
    return ConsoleSink(rows)


__all__ = ["Sink", "console", "delta", "iceberg", "jdbc", "parquet", "topic"]
