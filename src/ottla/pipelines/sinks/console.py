"""The sink that prints: the first rows of every batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ottla.pipelines.sinks.sink import Attachment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True)
class ConsoleSink(Sink):
    """Prints where progress is shown too, so that the two do not garble each other."""

    rows: int = 20
    modes: ClassVar[tuple[str, ...]] = ("append", "update", "complete")

    def describe(self) -> str:
        return "console"

    def writer(self, rows: DataFrame, attachment: Attachment) -> DataStreamWriter:
        columns = rows.columns

        def show(batch: DataFrame, batch_id: int) -> None:
            shown = batch.take(self.rows)
            if shown:
                attachment.show(attachment.flow, batch_id, columns, [list(row) for row in shown])

        return rows.writeStream.foreachBatch(show)
