"""A data source of `bench.spark` that does nothing: it has its rows as Arrow batches in files, and drops what
it is given to write. So it is as fast as Spark lets a source, or a sink, in Python be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ottla.spark.source import COLUMNS

READY = "ready"
ROWS = 50_000
"""Of one Arrow batch: about as many as ottla hands over."""


def write_ready(parquet: Path, directory: Path, batches: int) -> None:
    """The rows of each Parquet file in as many files as a stream has batches."""
    directory.mkdir()
    schema = to_arrow_schema(StructType(list(COLUMNS)), timezone="UTC")
    for number, path in enumerate(sorted(parquet.glob("*.parquet"))):
        table = pq.read_table(path).cast(schema)
        ends = [table.num_rows * batch // batches for batch in range(batches + 1)]
        for batch in range(batches):
            with pa.ipc.new_file(directory / f"{batch}-{number}.arrow", schema) as file:
                file.write_table(table.slice(ends[batch], ends[batch + 1] - ends[batch]), ROWS)


class Ready(DataSource):
    @classmethod
    def name(cls) -> str:
        return READY

    def schema(self) -> StructType:
        return StructType(list(COLUMNS))

    def reader(self, schema: StructType) -> ReadyReader:
        return ReadyReader(Path(self.options["path"]), schema.names)

    def streamReader(self, schema: StructType) -> ReadyStreamReader:
        return ReadyStreamReader(Path(self.options["path"]), schema.names)

    def writer(self, schema: StructType, overwrite: bool) -> Dropped:
        return Dropped()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DroppedStream:
        return DroppedStream()


class ReadyReader(DataSourceReader):
    def __init__(self, directory: Path, columns: Sequence[str]) -> None:
        self._directory, self._columns = directory, columns

    def partitions(self) -> Sequence[InputPartition]:
        numbers = sorted(path.name.partition("-")[2] for path in self._directory.glob("0-*"))
        return [InputPartition(sorted(self._directory.glob(f"*-{number}"))) for number in numbers]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return ready(partition.value, self._columns)


class ReadyStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The offset is how many batches are done."""

    def __init__(self, directory: Path, columns: Sequence[str]) -> None:
        self._directory, self._columns = directory, columns

    def initialOffset(self) -> dict[str, int]:
        return {"batches": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        """All there is was there before."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        batch = start["batches"]
        return {"batches": batch + any(self._directory.glob(f"{batch}-*"))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [
            InputPartition([path])
            for batch in range(start["batches"], end["batches"])
            for path in sorted(self._directory.glob(f"{batch}-*"))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return ready(partition.value, self._columns)


def ready(paths: Sequence[Path], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        file = pa.ipc.open_file(pa.memory_map(str(path)))
        for number in range(file.num_record_batches):
            yield file.get_batch(number).select(list(columns))


def drop(batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
    for _ in batches:
        pass
    return WriterCommitMessage()


class Dropped(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return drop(iterator)


class DroppedStream(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return drop(iterator)
