"""Batch queries of a real Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql.types import StructType

from tests.spark.conftest import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The schema of Spark's Kafka connector, as Spark's documentation has it.
CONNECTOR = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
HEADERS = "headers array<struct<key: string, value: binary>>"


def load(spark: SparkSession, options: dict[str, str], schema: str | None = None) -> DataFrame:
    reader = spark.read.format("ottla").options(**options)
    return (reader.schema(schema) if schema else reader).load()


def test_rows_have_the_columns_and_types_of_the_kafka_connector(spark: SparkSession, broker: Broker) -> None:
    topic = broker.topic(partitions=2, retention_ms=-1)
    broker.send(
        topic, [b"v"], key=b"k", timestamp=1_700_000_000_123, partition=1, headers=[("a", b"1"), ("b", None)]
    )
    broker.send(topic, [None], timestamp=1_700_000_000_456, partition=1)
    assert load(spark, broker.options(topic)).schema == StructType.fromDDL(CONNECTOR)
    frame = load(spark, broker.options(topic, includeHeaders="true"))
    assert frame.schema == StructType.fromDDL(f"{CONNECTOR}, {HEADERS}")
    full, empty = frame.selectExpr("*", "coalesce(headers, array()) as pairs").orderBy("offset").collect()
    assert full["timestamp"].astimezone(UTC) == datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)
    assert full["headers"] == [("a", b"1"), ("b", None)]
    assert tuple(full)[:5] == (b"k", b"v", topic, 1, 0)
    assert full["timestampType"] == 0
    assert tuple(empty)[:5] == (None, None, topic, 1, 1)
    assert (empty["headers"], empty["pairs"]) == (None, []), "null, as the connector has it"


def test_a_schema_of_the_user_is_a_projection(spark: SparkSession, broker: Broker) -> None:
    topic = broker.filled(3)
    frame = load(spark, broker.options(topic), "offset bigint not null, value binary")
    assert [tuple(row) for row in frame.collect()] == [(0, b"0-0"), (1, b"0-1"), (2, b"0-2")]
    with pytest.raises(AnalysisException, match="column 'value' of a topic is binary, not string"):
        load(spark, broker.options(topic), "value string").collect()


def test_options_are_refused_when_the_frame_is_made(spark: SparkSession, broker: Broker) -> None:
    with pytest.raises(AnalysisException, match="did you mean 'startingOffsets'"):
        load(spark, broker.options("orders", startingOffset="earliest"))


def test_a_second_action_on_a_frame_sees_what_came_in_between(spark: SparkSession, broker: Broker) -> None:
    topic = broker.filled(50, partitions=2)
    frame = load(spark, broker.options(topic, minPartitions=4))
    frame.createOrReplaceTempView("records")
    counted = spark.sql("select count(distinct value) as n from records where offset >= 10")
    assert counted.collect()[0].n == 80
    broker.send(topic, [b"more"])
    assert frame.count() == 101


def test_an_empty_topic_is_an_empty_frame(spark: SparkSession, broker: Broker) -> None:
    assert load(spark, broker.options(broker.topic(partitions=2))).collect() == []
    assert load(spark, broker.options(subscribePattern="^no such topic$")).collect() == []


def test_lost_data_fails_a_job_with_words_to_act_on(spark: SparkSession, broker: Broker) -> None:
    topic = broker.filled(2)
    options = broker.options(
        topic, startingOffsets=f'{{"{topic}": {{"0": 5}}}}', endingOffsets=f'{{"{topic}": {{"0": 9}}}}'
    )
    with pytest.raises(PythonException, match="set the option failOnDataLoss to false"):
        load(spark, options).collect()
