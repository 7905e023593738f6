"""The sink that writes to a topic, exactly once, through Ottla's data source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.pipelines.sinks.sink import Attachment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True)
class TopicSink(Sink):
    """Rows with a column `value` are records as they are; others become JSON objects."""

    name: str
    key: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> str:
        return f"topic {self.name}"

    def writer(self, rows: DataFrame, attachment: Attachment) -> DataStreamWriter:
        writer = as_records(rows, self.key).writeStream.format("ottla").option("topic", self.name)
        return writer.options(**attachment.surroundings.connector_options()).options(**self.options)


def as_records(rows: DataFrame, key: str | None) -> DataFrame:
    """Rows as a topic takes them: key and value."""
    from pyspark.sql import functions as F

    if "value" in rows.columns:
        return rows if key is None else rows.withColumn("key", F.col(key).cast("string"))
    value = F.to_json(F.struct(*(F.col(f"`{name}`") for name in rows.columns))).alias("value")
    return rows.select(value) if key is None else rows.select(F.col(key).cast("string").alias("key"), value)
