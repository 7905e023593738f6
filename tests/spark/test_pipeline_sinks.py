"""Sinks on real Spark: tables by deltalake and pyiceberg, a database, and batches that come twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from ottla.pipelines.context import Surroundings
from ottla.pipelines.sinks.delta import DeltaSink
from ottla.pipelines.sinks.iceberg import IcebergSink
from ottla.pipelines.sinks.upserts import Upsert
from tests.spark.pipelines import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.spark.conftest import Broker

UPSERT = Upsert(("id",), "at", "deleted")


@pytest.fixture
def as_query(spark: SparkSession) -> Iterator[SparkSession]:
    """The session as it is while a streaming query hands a batch to a sink."""
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "a-query")
    yield spark
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", None)  # type: ignore[arg-type]


def changes(spark: SparkSession, *rows: tuple[int, int, str | None, bool]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id long, at long, name string, deleted boolean")


FIRST = [
    (1, 1, "a", False),
    (1, 3, "c", False),
    (1, 2, "b", False),
    (2, 1, "x", False),
    (3, 1, "y", False),
]
# Key 1 gets an older change, 2 is deleted, 3 is deleted by a change older than its row, 4 never was there.
SECOND = [
    (1, 2, "late", False),
    (2, 2, None, True),
    (3, 0, None, True),
    (4, 1, None, True),
    (5, 1, "new", False),
]
EXPECTED = [
    {"id": 1, "at": 3, "name": "c"},
    {"id": 3, "at": 1, "name": "y"},
    {"id": 5, "at": 1, "name": "new"},
]


def test_a_delta_table_has_the_last_row_of_each_key_however_often_batches_come(
    as_query: SparkSession, tmp_path: Path
) -> None:
    sink, path = DeltaSink("table", UPSERT), str(tmp_path / "table")
    sink.write(path, changes(as_query, *FIRST), 0)
    sink.write(path, changes(as_query, *SECOND), 1)
    version = deltalake.DeltaTable(path).version()
    sink.write(path, changes(as_query, (9, 9, "twice", False)), 1)
    sink.write(path, changes(as_query, (9, 9, "twice", False)), 0)
    table = deltalake.DeltaTable(path)
    assert table.to_pyarrow_table().sort_by("id").to_pylist() == EXPECTED
    assert table.version() == version
    assert table.transaction_version("a-query") == 1
    surroundings = Surroundings(tmp_path)
    assert sink.holds(surroundings) == f"the rows of the Delta table {path}"
    sink.clear(surroundings)
    assert deltalake.DeltaTable(path).to_pyarrow_table().num_rows == 0


def test_an_iceberg_table_has_the_last_row_of_each_key_however_often_batches_come(
    as_query: SparkSession, tmp_path: Path
) -> None:
    sink, surroundings = IcebergSink("shop.orders", UPSERT), Surroundings(tmp_path)
    assert sink.holds(surroundings) is None
    catalog = sink._catalog(surroundings)
    try:
        sink.write(catalog, changes(as_query, *FIRST), 0)
        sink.write(catalog, changes(as_query, *SECOND), 1)
        snapshots = len(catalog.load_table("shop.orders").snapshots())
        sink.write(catalog, changes(as_query, (9, 9, "twice", False)), 1)
        table = catalog.load_table("shop.orders")
        assert table.scan().to_arrow().sort_by("id").to_pylist() == EXPECTED
        assert len(table.snapshots()) == snapshots
        assert sink.holds(surroundings) == "the rows of the Iceberg table shop.orders"
        sink.clear(surroundings)
        assert catalog.load_table("shop.orders").scan().to_arrow().num_rows == 0
    finally:
        catalog.close()


def test_new_columns_join_a_table(as_query: SparkSession, tmp_path: Path) -> None:
    delta, path = DeltaSink("table", partition_by=["day"]), str(tmp_path / "table")
    iceberg = IcebergSink("orders", partition_by=["day"])
    catalog = iceberg._catalog(Surroundings(tmp_path))
    old = as_query.createDataFrame([(0, "mon")], "id long, day string")
    new = as_query.createDataFrame([(1, "tue", "a")], "id long, day string, name string")
    expected = [{"id": 0, "day": "mon", "name": None}, {"id": 1, "day": "tue", "name": "a"}]
    try:
        for number, batch in enumerate((old, new)):
            delta.write(path, batch, number)
            iceberg.write(catalog, batch, number)
        assert deltalake.DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist() == expected
        assert deltalake.DeltaTable(path).metadata().partition_columns == ["day"]
        table = catalog.load_table("default.orders")
        assert table.scan().to_arrow().sort_by("id").to_pylist() == expected
        assert [field.name for field in table.spec().fields] == ["day"]
    finally:
        catalog.close()


def test_a_batch_that_spark_replays_is_in_a_table_once(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    orders = broker.topic()
    broker.send(orders, [b'{"id": 1, "at": "2026-01-01T00:00:00Z"}', b'{"id": 2}'])
    database = f"jdbc:derby:memory:{tmp_path.name};create=true"
    pipeline = Pipeline(spark, tmp_path / "project", broker.bootstrap).write(
        f"""
        def orders(spark):
            return read.topic("{orders}", decode=read.json("id long, at timestamp"))

        to_delta = flow(name="to_delta", sink=sinks.delta("delta"))(orders)
        to_iceberg = flow(name="to_iceberg", sink=sinks.iceberg("shop.orders"))(orders)
        to_jdbc = flow(name="to_jdbc", sink=sinks.jdbc("{database}", "orders"))(orders)
        """
    )
    told = pipeline.run()
    assert {each.flow: each.rows_out for each in told.flows} == {"to_delta": 2, "to_iceberg": 2, "to_jdbc": 2}

    def found() -> tuple[list[int], list[int], list[int]]:
        delta = deltalake.DeltaTable(str(pipeline.root / "delta")).to_pyarrow_table()
        catalog = IcebergSink("shop.orders")._catalog(pipeline.project.surroundings())
        iceberg = catalog.load_table("shop.orders").scan().to_arrow()
        catalog.close()
        jdbc = spark.read.format("jdbc").options(url=database, dbtable="orders").load().collect()
        return (
            sorted(delta["id"].to_pylist()),
            sorted(iceberg["id"].to_pylist()),
            sorted(row["id"] for row in jdbc),
        )

    assert found() == ([1, 2], [1, 2], [1, 2])
    # As if the driver had died after the sinks had the batch and before Spark noted that it is done.
    for name in ("to_delta", "to_iceberg", "to_jdbc"):
        for file in (pipeline.root / ".ottla/checkpoints" / name / "commits").iterdir():
            file.unlink()
    broker.send(orders, [b'{"id": 3}'])
    pipeline.run()
    assert found() == ([1, 2, 3], [1, 2, 3], [1, 1, 2, 2, 3])
