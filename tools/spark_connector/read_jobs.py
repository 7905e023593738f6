"""Batch reads: each way to say what to read, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyspark.sql import functions

from tools.spark_connector.jobs import Job
from tools.spark_connector.place import Facts, Place, refused, table
from tools.spark_connector.topics import BEGIN_MS, CODECS, STEP_MS

READS = "batch reads"
EVENTS = {"subscribe": "events"}


def time_of(number: int) -> int:
    return BEGIN_MS + number * STEP_MS


def offsets(topic: str = "events", **by_partition: int) -> str:
    return json.dumps({topic: {name.removeprefix("p"): value for name, value in by_partition.items()}})


def reading(name: str, **options: object) -> Job:
    return Job(READS, name, lambda place: table(place.read(**options)))


def refusing(name: str, **options: object) -> Job:
    return Job(READS, name, lambda place: refused(lambda: place.read(**options).collect()))


def read_jobs(count: int) -> Iterator[Job]:
    some, most = count // 4, count // 2
    yield reading("one topic, all of it", **EVENTS)
    yield reading("two topics", subscribe="events,others")
    yield reading("subscribePattern", subscribePattern="^(ev|oth).*s$")
    yield reading("assign", assign=json.dumps({"events": [0, 2], "others": [0]}))
    yield reading("an empty topic", subscribe="empty")
    yield reading("includeHeaders", **EVENTS, includeHeaders="true")
    yield reading(
        "starting and ending offsets",
        **EVENTS,
        startingOffsets=offsets(p0=some, p1=-2, p2=0),
        endingOffsets=offsets(p0=most, p1=some, p2=-1),
    )
    yield reading(
        "starting and ending timestamp",
        **EVENTS,
        startingTimestamp=time_of(some) + 1,
        endingTimestamp=time_of(most),
    )
    yield reading(
        "starting and ending offsets by timestamp",
        **EVENTS,
        startingOffsetsByTimestamp=offsets(p0=time_of(some), p1=time_of(0), p2=0),
        endingOffsetsByTimestamp=offsets(p0=time_of(most), p1=time_of(count * 2), p2=time_of(some)),
    )
    late = time_of(count * 2)
    yield reading(
        "a start that is not reached, strategy latest",
        **EVENTS,
        startingTimestamp=late,
        startingOffsetsByTimestampStrategy="latest",
    )
    yield refusing("a start that is not reached, strategy error", **EVENTS, startingTimestamp=late)
    yield Job(READS, "minPartitions", lambda place: tasks(place, minPartitions=7))
    # The rows only: the connector divides partitions of a batch query only if minPartitions is set as well.
    yield reading("maxRecordsPerPartition", **EVENTS, maxRecordsPerPartition=count // 3)
    for codec in CODECS:
        yield reading(f"compression: {codec}", subscribe=f"codec-{codec}", includeHeaders="true")
    yield reading("read_uncommitted", subscribe="transactions")
    yield reading("read_committed", subscribe="transactions", kafka__isolation__level="read_committed")
    yield Job(READS, "LogAppendTime", stamped)
    yield reading("records deleted, from earliest", subscribe="shortened")
    from_deleted = {"subscribe": "shortened", "startingOffsets": offsets("shortened", p0=0, p1=0)}
    yield refusing("records deleted, from offset 0, failOnDataLoss=true", **from_deleted)
    yield reading(
        "records deleted, from offset 0, failOnDataLoss=false", **from_deleted, failOnDataLoss="false"
    )
    yield refusing("refused: startingOffsets=latest", **EVENTS, startingOffsets="latest")
    yield refusing("refused: endingOffsets=earliest", **EVENTS, endingOffsets="earliest")
    yield refusing("refused: subscribe and assign", **EVENTS, assign='{"events": [0]}')
    yield refusing("refused: offsets for some partitions only", **EVENTS, startingOffsets=offsets(p0=1))
    yield refusing("refused: kafka.auto.offset.reset", **EVENTS, kafka__auto__offset__reset="earliest")


def tasks(place: Place, **options: object) -> Facts:
    """Which offsets each task reads, besides the rows."""
    frame = place.read(subscribe="events", **options)
    split = frame.groupBy(functions.spark_partition_id().alias("task"), "topic", "partition").agg(
        functions.min("offset").alias("first"), functions.max("offset").alias("last")
    )
    pieces = sorted((row.topic, row.partition, row.first, row.last) for row in split.collect())
    return {**table(frame), "tasks": [list(piece) for piece in pieces]}


def stamped(place: Place) -> Facts:
    """The times are the broker's own, so only their type can be the same everywhere."""
    return table(place.read(subscribe="stamped").drop("timestamp"))
