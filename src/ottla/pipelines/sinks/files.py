"""The sink that writes files: Parquet, by Spark's own file sink, exactly once.

Spark keeps the list of files that count in `_spark_metadata` below the directory, by batch. A checkpoint that
starts anew would find its first batches listed there and skip them, so a full refresh clears the directory
too.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.sink import Attachment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.pipelines.context import Surroundings

_LOG = "_spark_metadata"


@dataclass(frozen=True)
class ParquetSink(Sink):
    """A directory of Parquet files."""

    path: str
    partition_by: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> str:
        return f"parquet {self.path}"

    def writer(self, rows: DataFrame, attachment: Attachment) -> DataStreamWriter:
        writer = rows.writeStream.format("parquet").option("path", attachment.surroundings.path(self.path))
        writer = writer.options(**self.options)
        return writer.partitionBy(*self.partition_by) if self.partition_by else writer

    def holds(self, surroundings: Surroundings) -> str | None:
        path = surroundings.path(self.path)
        if "://" in path:
            return f"the files below {path}"
        return f"the files below {path}" if Path(path).exists() else None

    def clear(self, surroundings: Surroundings) -> None:
        path = surroundings.path(self.path)
        if "://" in path:
            raise PipelineError(
                f"a full refresh cannot clear {path}; remove what is below it, then run again"
            )
        folder = Path(path)
        if not folder.exists():
            return
        # Only a directory that this sink has written to: a wrong path must not cost anybody their files.
        if not (folder / _LOG).is_dir():
            raise PipelineError(f"{folder} was not written by a flow (it has no {_LOG}); it is left alone")
        shutil.rmtree(folder)
