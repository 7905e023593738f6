"""Flows as Spark's streaming queries: built, named, given a checkpoint and started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.context import Building, Surroundings, building
from ottla.pipelines.dead_letter import dead_letters
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.flows import Flow
from ottla.pipelines.progress import OBSERVATION
from ottla.pipelines.sinks.sink import Attachment, Show, Sink
from ottla.pipelines.sinks.topic import TopicSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

COLLECTED_OFFSETS: Final = 500_000
"""How many records a batch has at most when its sink takes it through the driver's memory, unless the flow
says
otherwise: some hundred megabytes."""


@dataclass(frozen=True)
class Query:
    """A query that could be started. `flow` is its name; a flow with a dead-letter topic is two."""

    flow: str
    sink: str
    writer: DataStreamWriter
    topics: tuple[str, ...]
    columns: tuple[str, ...]


def build(flow: Flow, spark: SparkSession, surroundings: Surroundings, show: Show) -> list[Query]:
    """The queries of a flow. Its function runs here, and Spark checks what it made."""
    bound = COLLECTED_OFFSETS if flow.sink is not None and flow.sink.collects else None
    built = Building(spark, surroundings, flow.name, flow.dead_letter is not None, bound)
    with building(built):
        made = flow.function(spark)
    topics = tuple(dict.fromkeys(built.topics))
    attachment = Attachment(flow.name, surroundings, show)
    queries = [_main(flow, made, topics, attachment)]
    if flow.dead_letter is not None:
        rows = dead_letters(flow.name, built.sources)
        sink = TopicSink(flow.dead_letter)
        writer = sink.writer(_counted(rows), attachment).outputMode("append")
        queries.append(Query(flow.dead_letter_name, sink.describe(), writer, topics, tuple(rows.columns)))
    return queries


def _main(flow: Flow, made: Any, topics: tuple[str, ...], attachment: Attachment) -> Query:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    if isinstance(made, DataStreamWriter):
        if flow.sink is not None:
            raise PipelineError(f"flow {flow.name} has a sink and returns a writer; it wants one of the two")
        return Query(flow.name, "its own sink", made, topics, ())
    if not isinstance(made, DataFrame):
        raise PipelineError(f"flow {flow.name} returns {type(made).__name__} instead of a DataFrame")
    if not made.isStreaming:
        raise PipelineError(f"flow {flow.name} returns a batch DataFrame; read with read.topic or readStream")
    sink = _sink(flow)
    if flow.mode not in sink.modes:
        raise PipelineError(
            f"flow {flow.name}: {sink.describe()} takes mode {' or '.join(sink.modes)}, not {flow.mode}"
        )
    writer = sink.writer(_counted(made), attachment).outputMode(flow.mode)
    return Query(flow.name, sink.describe(), writer, topics, tuple(made.columns))


def _sink(flow: Flow) -> Sink:
    if flow.sink is None:
        raise PipelineError(f"flow {flow.name} has no sink; name one: @flow(sink=sinks.console())")
    return flow.sink


def _counted(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.observe(OBSERVATION, F.count(F.lit(1)).alias("rows"))


def start(query: Query, checkpoint: str, *, available_now: bool, trigger: str | None) -> StreamingQuery:
    """Start it. With `available_now` it ends by itself when it has read what there is."""
    writer = query.writer.queryName(query.flow).option("checkpointLocation", checkpoint)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    return writer.start()
