"""The jobs of `bench.spark`: what is read, where it goes, and how long that takes."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.spark_ready import READY, Ready, write_ready
from ottla.testing.asking import create_topic

OTTLA, CONNECTOR, PARQUET = "ottla", "kafka", "parquet"
ALL = (OTTLA, CONNECTOR, READY, PARQUET)
THOUSANDS = "thousand rows/s"
TOPIC = "rows"
# Not to be compressed away: Parquet would otherwise read next to nothing.
VALUE = "cast(concat(md5(string(id)), md5(string(-id)), md5(string(2 * id)), '----') as binary) as value"
KEY = "cast(lpad(string(id), 9, '0') as binary) as key"
PAUSE_SECONDS = 0.02
# Long enough for every small batch of a query, whoever reads it.
FLOOR_SECONDS = 300.0
BATCHES = 3
"""Of a stream."""


@dataclass
class Bench:
    """A session, a broker with a filled topic, and the same rows as a Parquet file and as Arrow batches."""

    spark: SparkSession
    bootstrap: str
    directory: Path
    rows: int
    batches: int
    partitions: ClassVar[int] = 4
    _numbers: Any = field(default_factory=itertools.count)

    @property
    def parquet(self) -> str:
        return str(self.directory / "rows.parquet")

    @property
    def ready(self) -> str:
        return str(self.directory / "rows.arrow")

    def fill(self) -> None:
        self.create(TOPIC)
        made = self.spark.range(0, self.rows, 1, self.partitions).selectExpr(KEY, VALUE)
        made.write.format(OTTLA).options(**self.options(topic=TOPIC)).mode("append").save()
        self.read(OTTLA).write.parquet(self.parquet)
        write_ready(Path(self.parquet), Path(self.ready), BATCHES)
        self.spark.dataSource.register(Ready)

    def create(self, topic: str) -> None:
        create_topic(self.bootstrap, topic, self.partitions, {})

    def remove(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for done in admin.delete_topics([topic]).values():
            done.result(30)

    def fresh(self, stem: str) -> str:
        return f"{stem}-{next(self._numbers)}"

    def folder(self, stem: str) -> str:
        return str(self.directory / self.fresh(stem))

    def options(self, **more: object) -> dict[str, str]:
        given = {name: str(value) for name, value in more.items()}
        return {"kafka.bootstrap.servers": self.bootstrap, **given}

    def read(self, source: str, columns: str | None = None) -> DataFrame:
        """All rows. `columns` are decoded alone where a source can: Spark cannot tell a Python source."""
        if source == PARQUET:
            frame = self.spark.read.parquet(self.parquet)
            return frame.select(*columns.split(",")) if columns else frame
        given = {"path": self.ready} if source == READY else self.options(subscribe=TOPIC)
        reader = self.spark.read.format(source).options(**given)
        if source != CONNECTOR and columns:
            return reader.schema(", ".join(f"{name} binary" for name in columns.split(","))).load()
        return reader.load().select(*columns.split(",")) if columns else reader.load()

    def stream(self, source: str, topic: str = TOPIC, **options: object) -> DataFrame:
        given = {"path": self.ready} if source == READY else self.options(subscribe=topic, **options)
        return self.spark.readStream.format(source).options(**given).load()


class Job(NamedTuple):
    name: str
    unit: str
    sources: tuple[str, ...]
    run: Callable[[Bench, str], float]


def jobs() -> Iterator[Job]:
    def batch(name: str, act: Callable[[Bench, str], None]) -> Job:
        def run(bench: Bench, source: str) -> float:
            return rate(bench, lambda: act(bench, source))

        return Job(f"batch: {name}", THOUSANDS, ALL, run)

    yield batch("count", lambda bench, source: swallow(bench.read(source).count()))
    yield batch("sum(length(value))", lambda bench, source: lengths(bench.read(source)))
    yield batch("value alone, sum(length)", lambda bench, source: lengths(bench.read(source, "value")))
    yield batch("all columns to noop", lambda bench, source: to_noop(bench.read(source)))
    yield batch("all columns to Parquet", lambda bench, source: to_parquet(bench, bench.read(source)))
    pair, python = (OTTLA, CONNECTOR), (OTTLA, CONNECTOR, READY)
    yield Job("batch: key, value to a topic", THOUSANDS, python, to_topic)
    yield Job(
        "batch: key, value to a topic, at_least_once",
        THOUSANDS,
        python,
        lambda bench, source: to_topic(bench, source, **_once_or_more(source)),
    )
    yield Job("stream: to noop", THOUSANDS, python, lambda bench, source: streamed(bench, source, "noop"))
    yield Job(
        "stream: to Parquet", THOUSANDS, python, lambda bench, source: streamed(bench, source, "parquet")
    )
    yield Job("stream: to a topic", THOUSANDS, python, lambda bench, source: streamed(bench, source, "topic"))
    yield Job("small batch: to noop", "ms", pair, lambda bench, source: floor(bench, source, "noop"))
    yield Job("small batch: to a topic", "ms", pair, lambda bench, source: floor(bench, source, "topic"))
    yield Job(
        "small batch: to a topic, at_least_once",
        "ms",
        pair,
        lambda bench, source: floor(bench, source, "topic", **_once_or_more(source)),
    )


def _once_or_more(source: str) -> dict[str, object]:
    """What the connector does whatever it is told."""
    return {"semantic": "at_least_once"} if source == OTTLA else {}


# --- batches -----------------------------------------------------------------------------------


def rate(bench: Bench, act: Callable[[], None]) -> float:
    """Thousand rows a second."""
    began = time.monotonic()
    act()
    return bench.rows / (time.monotonic() - began) / 1000


def swallow(_: object) -> None:
    """For what is run for its time alone."""


def lengths(frame: DataFrame) -> None:
    frame.selectExpr("sum(length(value))").collect()


def to_noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def to_parquet(bench: Bench, frame: DataFrame) -> None:
    frame.write.parquet(bench.folder("written"))


def to_topic(bench: Bench, source: str, **options: object) -> float:
    """From Parquet, so that only the writing is compared; ready rows have a sink that drops them instead."""
    topic = bench.fresh("written")
    bench.create(topic)
    frame = bench.read(PARQUET, "key,value")
    writer = frame.write.format(source).options(**bench.options(topic=topic, **options)).mode("append")
    found = rate(bench, writer.save)
    bench.remove(topic)
    return found


# --- streams -----------------------------------------------------------------------------------


def streamed(bench: Bench, source: str, sink: str) -> float:
    """Thousand rows a second of all batches but the first, which also starts what the query needs.

    The rows that are left by rounding are a batch of their own, and not counted either.
    """
    size = bench.rows // BATCHES
    frame = bench.stream(source, startingOffsets="earliest", maxOffsetsPerTrigger=size)
    query, topic = started(bench, frame, source, sink, {"availableNow": True})
    query.awaitTermination()
    progress = [each for each in query.recentProgress if each.numInputRows > size // 2][1:]
    if topic is not None:
        bench.remove(topic)
    seconds = sum(each.durationMs["triggerExecution"] for each in progress) / 1000
    return sum(each.numInputRows for each in progress) / seconds / 1000


def floor(bench: Bench, source: str, sink: str, **options: object) -> float:
    """The median time of a batch of a few records, in milliseconds."""
    topic = bench.fresh("small")
    bench.create(topic)
    frame = bench.stream(source, topic, startingOffsets="earliest")
    query, written = started(bench, frame, source, sink, {"processingTime": "0 seconds"}, options)
    ended = threading.Event()
    feeder = threading.Thread(target=feed, args=(bench.bootstrap, topic, ended))
    feeder.start()
    try:
        times: dict[int, float] = {}
        deadline = time.monotonic() + FLOOR_SECONDS
        while len(times) < bench.batches:
            if time.monotonic() > deadline:
                raise RuntimeError(f"only {len(times)} of {bench.batches} small batches came from {source}")
            if (error := query.exception()) is not None:
                raise error
            for each in query.recentProgress:
                if each.numInputRows:
                    times[each.batchId] = each.durationMs["triggerExecution"]
            time.sleep(0.2)
    finally:
        ended.set()
        feeder.join()
        query.stop()
    for name in filter(None, (topic, written)):
        bench.remove(name)
    # The first ones also start processes and compile.
    return statistics.median(list(times.values())[bench.batches // 4 :])


def feed(bootstrap: str, topic: str, ended: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    while not ended.wait(PAUSE_SECONDS):
        producer.produce(topic, b"v" * 100)
        producer.poll(0)
    producer.flush(30)


def started(
    bench: Bench,
    frame: DataFrame,
    source: str,
    sink: str,
    trigger: dict[str, Any],
    options: Mapping[str, object] = MappingProxyType({}),
) -> tuple[StreamingQuery, str | None]:
    """The query, and the topic that it writes to if it does."""
    topic = None
    if sink == "topic":
        topic = bench.fresh("written")
        bench.create(topic)
        writer = frame.select("key", "value").writeStream.format(source)
        writer = writer.options(**bench.options(topic=topic, **options))
    else:
        writer = frame.writeStream.format(sink)
        if sink == "parquet":
            writer = writer.option("path", bench.folder("written"))
    writer = writer.option("checkpointLocation", bench.folder("checkpoint"))
    return writer.trigger(**trigger).start(), topic
