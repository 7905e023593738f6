"""Streaming reads: where they start, how much a batch takes, restarts, and what changes in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql.functions import spark_partition_id

from tools.spark_connector.jobs import Job
from tools.spark_connector.place import Facts, Place, flat, refused
from tools.spark_connector.read_jobs import offsets, time_of

STREAMS = "streams"
EARLIEST = {"startingOffsets": "earliest"}


def stream_jobs(count: int) -> Iterator[Job]:
    some = count // 4
    yield streaming("availableNow", subscribe="events", **EARLIEST)
    yield streaming(
        "maxOffsetsPerTrigger", subscribe="events,others", **EARLIEST, maxOffsetsPerTrigger=count // 2
    )
    yield streaming("minOffsetsPerTrigger", subscribe="events", **EARLIEST, minOffsetsPerTrigger=count * 9)
    yield Job(STREAMS, "minPartitions", lambda place: divided(place, minPartitions=5))
    yield Job(STREAMS, "maxRecordsPerPartition", lambda place: divided(place, maxRecordsPerPartition=some))
    yield streaming("includeHeaders", subscribe="events", **EARLIEST, includeHeaders="true")
    yield streaming("subscribePattern", subscribePattern="oth.*", **EARLIEST)
    yield streaming("assign", assign='{"events": [1]}', **EARLIEST)
    yield streaming("startingOffsets", subscribe="events", startingOffsets=offsets(p0=some, p1=-2, p2=count))
    # The rows only: ottla puts where it starts into the checkpoint by an empty first batch.
    yield Job(
        STREAMS,
        "startingOffsets, one partition at latest",
        lambda place: at_latest(place, offsets(p0=some, p1=-2, p2=-1)),
    )
    yield streaming("startingTimestamp", subscribe="events", startingTimestamp=time_of(some))
    yield streaming(
        "startingOffsetsByTimestamp",
        subscribe="events",
        startingOffsetsByTimestamp=offsets(p0=time_of(some), p1=time_of(0), p2=time_of(count - 1)),
    )
    yield streaming(
        "read_committed", subscribe="transactions", **EARLIEST, kafka__isolation__level="read_committed"
    )
    yield Job(STREAMS, "restarted, with more records", lambda place: restarted(place, count))
    yield Job(STREAMS, "started at latest, restarted", lambda place: from_latest(place, count))
    yield Job(STREAMS, "restarted, with a new partition", lambda place: grown(place, count))
    yield Job(STREAMS, "restarted, records deleted", lambda place: deleted(place, count, fail=True))
    yield Job(
        STREAMS,
        "restarted, records deleted, failOnDataLoss=false",
        lambda place: deleted(place, count, fail=False),
    )


def streaming(name: str, **options: object) -> Job:
    def run(place: Place) -> Facts:
        frame, checkpoint = place.stream(**options), place.checkpoint()
        batches = place.batches(frame, checkpoint)
        return {
            "schema": frame.schema.json(),
            "batches": batches,
            "rows": flat(batches),
            "offsets in the checkpoint": kept_offsets(checkpoint),
        }

    return Job(STREAMS, name, run)


def divided(place: Place, **options: object) -> Facts:
    """Which offsets each task reads, besides the rows."""
    frame = place.stream(subscribe="events", **EARLIEST, **options)
    found = flat(place.batches(frame.withColumn("task", spark_partition_id()), place.checkpoint()))
    offsets_of: dict[tuple[int, int], list[int]] = {}
    for *_, partition, offset, _, _, task in found:
        offsets_of.setdefault((partition, task), []).append(offset)
    pieces = sorted((partition, min(seen), max(seen)) for (partition, _), seen in offsets_of.items())
    return {"rows": [row[:-1] for row in found], "tasks": pieces}


def kept_offsets(checkpoint: Path) -> list[object]:
    """The end of each batch as Spark has it in its files."""
    files = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    return [json.loads(file.read_text().splitlines()[-1]) for file in files]


def restarted(place: Place, count: int) -> Facts:
    topic, checkpoint = place.topic("restarted", partitions=2), place.checkpoint()
    options = {"subscribe": topic, **EARLIEST, "maxOffsetsPerTrigger": count}
    place.broker.send(topic, range(count), partitions=2)
    first = place.batches(place.stream(**options), checkpoint)
    place.broker.send(topic, range(count, count + count // 2), partitions=2)
    second = place.batches(place.stream(**options), checkpoint)
    return {"batches": [first, second], "rows": flat(first + second)}


def at_latest(place: Place, starting: str) -> Facts:
    frame = place.stream(subscribe="events", startingOffsets=starting)
    return {"rows": flat(place.batches(frame, place.checkpoint()))}


def from_latest(place: Place, count: int) -> Facts:
    topic, checkpoint = place.topic("latest", partitions=2), place.checkpoint()
    place.broker.send(topic, range(count // 2), partitions=2)
    first = place.batches(place.stream(subscribe=topic), checkpoint)
    place.broker.send(topic, range(count // 2, count), partitions=2)
    second = place.batches(place.stream(subscribe=topic), checkpoint)
    return {"rows": flat(first + second)}


def grown(place: Place, count: int) -> Facts:
    topic, checkpoint = place.topic("grown"), place.checkpoint()
    place.broker.send(topic, range(count // 2))
    first = place.batches(place.stream(subscribe=topic, **EARLIEST), checkpoint)
    place.broker.add_partitions(topic, 2)
    place.broker.send(topic, range(count // 2, count), partitions=2)
    second = place.batches(place.stream(subscribe=topic, **EARLIEST), checkpoint)
    return {"batches": [first, second], "rows": flat(first + second)}


def deleted(place: Place, count: int, *, fail: bool) -> Facts:
    topic, checkpoint = place.topic("deleted"), place.checkpoint()
    options = {"subscribe": topic, **EARLIEST, "failOnDataLoss": str(fail).lower()}
    place.broker.send(topic, range(count // 2))
    first = place.batches(place.stream(**options), checkpoint)
    place.broker.send(topic, range(count // 2, count))
    place.broker.delete_before(topic, 0, count - count // 4)
    if fail:
        return {"rows": flat(first), **refused(lambda: place.batches(place.stream(**options), checkpoint))}
    second = place.batches(place.stream(**options), checkpoint)
    return {"batches": [first, second], "rows": flat(first + second)}
