"""Batch and streaming writes; what arrived is read with another client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame

from tools.spark_connector.jobs import Job
from tools.spark_connector.place import CONNECTOR, Facts, Place, refused
from tools.spark_connector.topics import Written

WRITES = "writes"
KEYED = ("cast(id % 40 as string) as key", "concat('value-', cast(id as string)) as value")
BINARY = ("cast(cast(id % 40 as string) as binary) as key", "unhex(hex(id)) as value")
HEADERS = (
    "case when id % 3 = 0 then array(struct('number' as key, cast(cast(id as string) as binary) as value), "
    "struct('none' as key, cast(null as binary) as value)) end as headers"
)


def write_jobs(count: int) -> Iterator[Job]:
    yield writing("keys and values, strings", count, *KEYED)
    yield writing("keys and values, binary", count, *BINARY)
    yield writing("null values", count, KEYED[0], "if(id % 5 = 0, null, 'x') as value")
    yield writing("headers", count, *KEYED, HEADERS)
    yield writing("a partition column", count, *KEYED, "cast(id % 4 as int) as partition")
    yield writing("a partition column with nulls", count, *KEYED, "if(id % 2 = 0, 3, null) as partition")
    yield writing("other columns beside", count, *KEYED, "id", "current_timestamp() as timestamp")
    yield writing("values without keys", count, KEYED[1], keyed=False)
    yield writing("no rows", 0, *KEYED)
    yield Job(WRITES, "a topic column", lambda place: two_topics(place, count))
    yield Job(WRITES, "a stream, topic to topic", lambda place: copied(place, count))
    yield Job(WRITES, "a stream, with limits and a restart", lambda place: copied(place, count, limit=count))
    yield refusing("refused: no value", "cast(id as string) as key")
    yield refusing("refused: a value that is a number", "id as value")
    yield refusing("refused: a partition that is a long", *KEYED, "id as partition")
    yield refusing("refused: overwrite", *KEYED, mode="overwrite")
    yield refusing("refused: no topic", *KEYED, topic=False)
    yield refusing("refused: a null topic", *KEYED, "cast(null as string) as topic", topic=False)
    yield refusing("refused: a partition that is not there", *KEYED, "99 as partition")


def rows_of(place: Place, count: int, columns: Iterable[str]) -> DataFrame:
    return place.spark.range(0, count, 1, 3).selectExpr(*columns)


def writing(name: str, count: int, *columns: str, keyed: bool = True) -> Job:
    def run(place: Place) -> Facts:
        topic = place.topic("written", partitions=4)
        place.write(rows_of(place, count, columns), topic=topic)
        return arrived(place, topic, keyed=keyed)

    return Job(WRITES, name, run)


def arrived(place: Place, topic: str, *, keyed: bool = True) -> Facts:
    """What is in the topic, in no particular order; without keys a producer may choose any partition."""
    found = place.broker.read(topic)
    return {"rows": sorted(map(repr, found if keyed else [without_partition(each) for each in found]))}


def without_partition(record: Written) -> tuple[object, ...]:
    return record[1:]


def two_topics(place: Place, count: int) -> Facts:
    one, two = place.topic("one", partitions=2), place.topic("two", partitions=2)
    place.write(rows_of(place, count, [*KEYED, f"if(id % 3 = 0, '{one}', '{two}') as topic"]))
    first, second = arrived(place, one), arrived(place, two)
    return {"one": first["rows"], "two": second["rows"], "rows": first["rows"] + second["rows"]}


def copied(place: Place, count: int, limit: int | None = None) -> Facts:
    source, sink = place.topic("source", partitions=2), place.topic("sink", partitions=4)
    checkpoint = place.checkpoint()
    limits = {} if limit is None else {"maxOffsetsPerTrigger": limit}
    for turn in range(2 if limit else 1):
        place.broker.send(source, range(turn * count, turn * count + count), partitions=2)
        frame = place.stream(subscribe=source, startingOffsets="earliest", includeHeaders="true", **limits)
        # Those without a key could go anywhere.
        frame = frame.where("key is not null").select("key", "value", "headers")
        place.write_stream(frame, checkpoint, topic=sink)
    return arrived(place, sink)


def refusing(name: str, *columns: str, mode: str = "append", topic: bool = True) -> Job:
    def run(place: Place) -> Facts:
        name = place.topic("refused")
        # Kafka's producer waits a minute for a partition that is not there, unless told otherwise.
        patience = {"kafka__max__block__ms": 2000} if place.format == CONNECTOR else {}
        options = {**patience, **({"topic": name} if topic else {})}
        frame = rows_of(place, 10, columns)
        facts = refused(lambda: place.write(frame, mode=mode, **options))
        return {**facts, "rows": arrived(place, name)["rows"]}

    return Job(WRITES, name, run)
