"""What a sink is: it turns a flow's rows into a streaming writer, and knows what it has to clear for a fresh
start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.pipelines.context import Surroundings

Show = Callable[[str, int, list[str], list[list[Any]]], None]


@dataclass(frozen=True)
class Attachment:
    """What a sink learns about the flow it belongs to. `show` prints a batch: flow, batch, columns, rows."""

    flow: str
    surroundings: Surroundings
    show: Show


class Sink(ABC):
    """Where the rows of a flow go."""

    collects: ClassVar[bool] = False
    """Whether batches go through the driver's memory, so that they want a bound."""

    modes: ClassVar[tuple[str, ...]] = ("append",)
    """Spark's output modes that it can take."""

    @abstractmethod
    def describe(self) -> str:
        """In a few words, for tables: `topic totals`, `parquet out/orders`."""

    @abstractmethod
    def writer(self, rows: DataFrame, attachment: Attachment) -> DataStreamWriter:
        """The writer for these rows; the runner adds name, checkpoint and trigger."""

    def check(self) -> None:
        """Raise PipelineError if something is not installed or makes no sense, before anything starts."""
        return None

    def holds(self, surroundings: Surroundings) -> str | None:
        """What `clear` would remove, in words; None if nothing."""
        return None

    def clear(self, surroundings: Surroundings) -> None:
        """For a full refresh: remove what earlier runs wrote, where that can be done."""
        return None


def query_id(batch: DataFrame) -> str:
    """The id of the streaming query that a batch belongs to; it stays the same over restarts."""
    identifier = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not identifier:
        raise RuntimeError("Spark does not say which streaming query this batch belongs to")
    return identifier


def collected(batch: DataFrame) -> pa.Table:
    """A batch as an Arrow table on the driver, with times in UTC whatever zone the session shows them in."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return batch.toArrow().cast(to_arrow_schema(batch.schema, timezone="UTC"))
