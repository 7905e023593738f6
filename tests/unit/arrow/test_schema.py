from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from ottla.arrow.schema import topic_schema

# As Spark's Kafka connector declares it.
HEADER = StructType().add("key", StringType()).add("value", BinaryType())
CONNECTOR = (
    StructType()
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add("offset", LongType())
    .add("timestamp", TimestampType())
    .add("timestampType", IntegerType())
)


@pytest.mark.parametrize("headers", [False, True])
def test_the_schema_is_the_one_that_spark_makes_of_the_connectors(headers: bool) -> None:
    schema = CONNECTOR if not headers else StructType([*CONNECTOR.fields]).add("headers", ArrayType(HEADER))
    expected = to_arrow_schema(schema, timezone="UTC")
    assert topic_schema(headers=headers).equals(expected, check_metadata=True)


def test_columns_come_in_the_order_they_are_asked_for() -> None:
    schema = topic_schema(columns=["offset", "headers", "key"])
    assert schema.names == ["offset", "headers", "key"]
    assert schema.field("key").type == pa.binary()


def test_a_column_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no column 'vlaue'; it has key, value, topic"):
        topic_schema(columns=["vlaue"])
    with pytest.raises(ValueError, match="asked for twice: key, key"):
        topic_schema(columns=["key", "key"])
