"""Where a job runs: a Spark session, a broker, and one of the two formats."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tools.spark_connector.topics import Broker

CONNECTOR, OURS = "kafka", "ottla"
STREAM_SECONDS = 300
INNER = re.compile(r"(\w+\.)+\w+: |Caused by: ")
SHOWN = "(said)"
INTERRUPTION = "broken off, as if the machine had gone"

Row = tuple[Any, ...]
Facts = dict[str, Any]
"""What a job came to, under names; two runs are equal if all of it is."""


@dataclass
class Place:
    spark: SparkSession
    broker: Broker
    format: str
    directory: Path
    _numbers: Any = field(default_factory=itertools.count)

    def options(self, **more: object) -> dict[str, str]:
        """Options for either format; a dot in a name is written as two underscores."""
        given = {name.replace("__", "."): str(value) for name, value in more.items()}
        return {"kafka.bootstrap.servers": self.broker.bootstrap, **given}

    def topic(self, stem: str, **settings: Any) -> str:
        """A topic for this job alone; `rows` takes what makes its name different off again."""
        return self.broker.create(f"{stem}.{self.format}.{next(self._numbers)}", **settings)

    def checkpoint(self) -> Path:
        return self.directory / f"checkpoint-{next(self._numbers)}"

    # --- reading -------------------------------------------------------------------------

    def read(self, **options: object) -> DataFrame:
        return self.spark.read.format(self.format).options(**self.options(**options)).load()

    def stream(self, **options: object) -> DataFrame:
        return self.stream_of(self.format, options)

    def stream_of(self, format: str, options: Mapping[str, object]) -> DataFrame:
        return self.spark.readStream.format(format).options(**self.options(**options)).load()

    def batches(self, frame: DataFrame, checkpoint: Path, *, fail_in: int | None = None) -> list[list[Row]]:
        """The rows of each batch of all that is available now. `fail_in` breaks off in that batch, after its
        rows were seen, and they are not in what is returned."""
        seen: list[list[Row]] = []

        def take(batch: DataFrame, number: int) -> None:
            found = rows(batch)
            if number == fail_in:
                raise RuntimeError(INTERRUPTION)
            seen.append(found)

        query = (
            frame.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            await_end(query)
        except StreamingQueryException as error:
            if fail_in is None or INTERRUPTION not in str(error):
                raise
        return seen

    # --- writing -------------------------------------------------------------------------

    def write(self, frame: DataFrame, *, mode: str = "append", **options: object) -> None:
        frame.write.format(self.format).options(**self.options(**options)).mode(mode).save()

    def write_stream(self, frame: DataFrame, checkpoint: Path, **options: object) -> None:
        query = (
            frame.writeStream.format(self.format)
            .options(**self.options(**options))
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        await_end(query)


def await_end(query: StreamingQuery) -> None:
    if not query.awaitTermination(STREAM_SECONDS):
        query.stop()
        raise TimeoutError(f"the query took more than {STREAM_SECONDS} s")


def rows(frame: DataFrame) -> list[Row]:
    """All rows, in the order of their offsets."""
    names = frame.columns
    place = [names.index(name) for name in ("topic", "partition", "offset")]
    found = [tuple(_plain(value) for value in row) for row in frame.collect()]
    named = [_without_name(row, place[0]) for row in found]
    return sorted(named, key=lambda row: tuple(row[index] for index in place))


def flat(batches: Iterable[list[Row]]) -> list[Row]:
    return list(itertools.chain.from_iterable(batches))


def table(frame: DataFrame) -> Facts:
    return {"schema": frame.schema.json(), "rows": rows(frame)}


def refused(act: Callable[[], object]) -> Facts:
    """That it was refused. In which words may differ, so they are only shown."""
    try:
        act()
    except Exception as error:
        return {"refused": True, SHOWN: first_line(error)}
    return {"refused": False}


def first_line(error: Exception) -> str:
    """What an error says, or the Python error inside what Spark made of it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    inner = [line for line in lines if INNER.match(line) and "PySparkRuntimeError" not in line]
    return f"{type(error).__name__}: {(inner or lines or [''])[-1 if inner else 0]}"[:400]


def _without_name(row: Row, at: int) -> Row:
    return (*row[:at], row[at].partition(".")[0], *row[at + 1 :])


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, tuple):
        return tuple(_plain(each) for each in value)
    return value
