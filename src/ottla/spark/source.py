"""The Spark data source `ottla`: topics of Ottla, or of Apache Kafka, as DataFrames.

    spark.read.format("ottla").option("kafka.bootstrap.servers", ...).option("subscribe", "orders").load()

The columns and options are those of Spark's Kafka connector. Spark finds the source by the package
`pyspark_ottla`, without registration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.client.security import Security
from ottla.spark.options import parse_read
from ottla.spark.properties import BadOption

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter

    from ottla.spark.reader import OttlaReader
    from ottla.spark.stream_reader import OttlaStreamReader

HEADERS: Final = StructField(
    "headers", ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
)
COLUMNS: Final = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)


class OttlaDataSource(DataSource):
    """Made anew in each process that needs it, from the options; the modules it needs are imported then."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> StructType:
        # Asked for at load(), so what is wrong with the options is said there and not when the query starts.
        options = parse_read(self.options)
        Security.from_properties(options.properties)
        return StructType([*COLUMNS, HEADERS] if options.include_headers else list(COLUMNS))

    def reader(self, schema: StructType) -> OttlaReader:
        from ottla.spark.reader import OttlaReader

        check_projection(schema)
        return OttlaReader(parse_read(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> OttlaStreamReader:
        from ottla.spark.stream_reader import OttlaStreamReader

        check_projection(schema)
        return OttlaStreamReader(parse_read(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from ottla.spark.writer import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        from ottla.spark.stream_writer import stream_writer

        return stream_writer(self.options, schema)


def check_projection(schema: StructType) -> None:
    """A user's schema names some of the columns, in any order; what it leaves out is not decoded."""
    types = {field.name: field.dataType for field in (*COLUMNS, HEADERS)}
    if not schema.fields:
        raise BadOption(f"the schema names no column; a topic has {', '.join(types)}")
    for field in schema.fields:
        if field.name not in types:
            raise BadOption(f"a topic has no column '{field.name}'; it has {', '.join(types)}")
        if field.dataType != types[field.name]:
            raise BadOption(
                f"column '{field.name}' of a topic is {types[field.name].simpleString()}, not "
                f"{field.dataType.simpleString()}: read it as it is and cast it"
            )
    if len(set(schema.names)) < len(schema.names):
        raise BadOption(f"the schema names a column twice: {', '.join(schema.names)}")
