"""One query, begun with one format and gone on with by the other, on the same checkpoint: every record once.

At the place of the connector these are restarts of the connector itself, which the others have to equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from tools.spark_connector.jobs import Job
from tools.spark_connector.place import CONNECTOR, Facts, Place, Row, flat
from tools.spark_connector.stream_jobs import EARLIEST

CHECKPOINTS = "checkpoints"
PLACE = slice(3, 5)  # partition and offset


def checkpoint_jobs(count: int) -> Iterator[Job]:
    yield Job(CHECKPOINTS, "the connector's, gone on with", lambda place: handed_over(place, count))
    yield Job(
        CHECKPOINTS,
        "the connector's, broken off in a batch, gone on with",
        lambda place: handed_over(place, count, fail_in=1),
    )
    yield Job(
        CHECKPOINTS,
        "the connector's, broken off in the first batch, gone on with",
        lambda place: handed_over(place, count, fail_in=0),
    )
    yield Job(
        CHECKPOINTS,
        "the connector's, gone on with, with a new partition",
        lambda place: handed_over(place, count, partitions=3),
    )
    yield Job(
        CHECKPOINTS, "gone on with by the connector", lambda place: handed_over(place, count, back=True)
    )
    yield Job(CHECKPOINTS, "there and back again", there_and_back)


def handed_over(
    place: Place, count: int, *, fail_in: int | None = None, partitions: int = 2, back: bool = False
) -> Facts:
    begun, gone_on = (place.format, CONNECTOR) if back else (CONNECTOR, place.format)
    topic, checkpoint = place.topic("handed", partitions=2), place.checkpoint()
    options = {"subscribe": topic, **EARLIEST, "maxOffsetsPerTrigger": count // 2}
    place.broker.send(topic, range(count), partitions=2)
    first = place.batches(place.stream_of(begun, options), checkpoint, fail_in=fail_in)
    if partitions > 2:
        place.broker.add_partitions(topic, partitions)
    place.broker.send(topic, range(count, 2 * count), partitions=partitions)
    second = place.batches(place.stream_of(gone_on, options), checkpoint)
    return {"batches": [first, second], "rows": each_once(first + second, count * (2 + partitions))}


def each_once(batches: list[list[Row]], count: int) -> list[Row]:
    """The rows of all batches, if they are so many different ones."""
    found = flat(batches)
    places = {row[PLACE] for row in found}
    if not len(found) == len(places) == count:
        raise AssertionError(f"{count} records: {len(found)} rows, {len(places)} different ones")
    return found


def there_and_back(place: Place) -> Facts:
    topic, checkpoint = place.topic("there", partitions=2), place.checkpoint()
    found = []
    for turn, format in enumerate((CONNECTOR, place.format, CONNECTOR, place.format)):
        place.broker.send(topic, range(turn * 50, turn * 50 + 50), partitions=2)
        found += place.batches(place.stream_of(format, {"subscribe": topic, **EARLIEST}), checkpoint)
    return {"batches": found, "rows": each_once(found, 400)}
