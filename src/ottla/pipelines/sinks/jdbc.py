"""The sink that writes to a database, by Spark's own JDBC writer.

At least once: Spark's writer knows nothing of batches, so one that failed after it had written is written
again. Give the table a primary key and a driver that ignores or replaces duplicates where that matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.sink import Attachment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True)
class JdbcSink(Sink):
    """A table. `options` are those of Spark's JDBC writer: user, password, driver, batchsize, ..."""

    url: str
    table: str
    options: Mapping[str, str] = field(default_factory=dict)
    modes: ClassVar[tuple[str, ...]] = ("append", "update")

    def describe(self) -> str:
        return f"jdbc {self.table}"

    def check(self) -> None:
        if not self.url.startswith("jdbc:"):
            raise PipelineError(
                f"{self.url!r} is no JDBC address; it starts with jdbc:, as in jdbc:postgresql://host/db"
            )

    def writer(self, rows: DataFrame, attachment: Attachment) -> DataStreamWriter:
        def write(batch: DataFrame, batch_id: int) -> None:
            writer = batch.write.format("jdbc").option("url", self.url).option("dbtable", self.table)
            writer.options(**self.options).mode("append").save()

        return rows.writeStream.foreachBatch(write)
