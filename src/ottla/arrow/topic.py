"""A topic, or a part of it, as an Arrow table: `read_topic("orders")`.

The columns are those of Spark's Kafka connector, and so are their types. What is read is settled before the
first record is: a topic that grows meanwhile does not keep anybody reading.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import Any, Final, Protocol

import pyarrow as pa

from ottla.arrow.broker_topic import BrokerTopic
from ottla.arrow.decode import Decoder
from ottla.arrow.directory_topic import DirectoryTopic
from ottla.arrow.log_directory import Piece
from ottla.arrow.schema import topic_schema
from ottla.protocol.errors import OffsetOutOfRange, UnknownTopicOrPartition

Position = str | int | datetime | timedelta
"""Where to begin or stop: "earliest", "latest", an offset, a time, or how long ago."""

ISOLATION_LEVELS: Final = {"read_uncommitted": 0, "read_committed": 1}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class Topic(Protocol):
    """A topic somewhere: what is asked of a broker, or of a data directory."""

    def partitions(self) -> list[int]: ...
    def starts(self, partitions: Iterable[int]) -> dict[int, int]: ...
    def ends(self, partitions: Iterable[int]) -> dict[int, int]: ...
    def at(self, partitions: Iterable[int], timestamp_ms: int) -> dict[int, int]: ...
    def read(self, partition: int, start: int, end: int) -> Iterator[Piece]: ...
    def close(self) -> None: ...


def read_topic(
    topic: str,
    *,
    bootstrap: str = "localhost:9092",
    directory: str | PathLike[str] | None = None,
    start: Position | Mapping[int, Position] = "earliest",
    end: Position | Mapping[int, Position] = "latest",
    partitions: Iterable[int] | None = None,
    columns: Sequence[str] | None = None,
    headers: bool = False,
    isolation_level: str = "read_uncommitted",
    properties: Mapping[str, str] | None = None,
    timeout: float = 30.0,
) -> pa.Table:
    """The records of a topic from `start` up to, but without, `end`, partition by partition.

    Positions are "earliest", "latest", an offset, a `datetime` (the first record at or after it) or a
    `timedelta` (so long ago); one for all partitions, or a mapping by partition, in which those left out are
    read from the earliest, or to the latest. An offset that is gone is an OffsetOutOfRange; an end that is
    not there yet is the latest. `partitions` reads only these. `columns` are those wanted, in this order;
    `headers=True` adds the headers to the others.

    `directory` reads a broker's data directory instead of asking a broker, which need not be running.
    `properties` are Kafka's client properties for security (`security.protocol`, `ssl.*`, `sasl.*`).
    """
    batches = read_batches(
        topic,
        bootstrap=bootstrap,
        directory=directory,
        start=start,
        end=end,
        partitions=partitions,
        columns=columns,
        headers=headers,
        isolation_level=isolation_level,
        properties=properties,
        timeout=timeout,
    )
    return pa.Table.from_batches(batches, schema=topic_schema(headers=headers, columns=columns))


def read_batches(
    topic: str,
    *,
    bootstrap: str = "localhost:9092",
    directory: str | PathLike[str] | None = None,
    start: Position | Mapping[int, Position] = "earliest",
    end: Position | Mapping[int, Position] = "latest",
    partitions: Iterable[int] | None = None,
    columns: Sequence[str] | None = None,
    headers: bool = False,
    isolation_level: str = "read_uncommitted",
    properties: Mapping[str, str] | None = None,
    timeout: float = 30.0,
) -> Iterator[pa.RecordBatch]:
    """As `read_topic`, one Arrow batch at a time, for what does not fit into memory.

    Nothing is asked before the first one is taken, and what has not been taken is not read.
    """
    topic_schema(headers=headers, columns=columns)  # refuses columns that there are not
    if isolation_level not in ISOLATION_LEVELS:
        raise ValueError(f"isolation_level is {isolation_level!r}; it can be {' or '.join(ISOLATION_LEVELS)}")
    isolation = ISOLATION_LEVELS[isolation_level]

    def opened() -> Topic:
        if directory is not None:
            return DirectoryTopic(topic, directory, isolation)
        return BrokerTopic(topic, bootstrap, properties or {}, isolation, timeout)

    def batches() -> Iterator[pa.RecordBatch]:
        source = opened()
        try:
            for partition, (first, last) in _ranges(topic, source, start, end, partitions).items():
                decoder = Decoder(
                    topic, partition, columns=columns, headers=headers, read_committed=bool(isolation)
                )
                position = first
                for records, aborted in source.read(partition, first, last):
                    for batch in decoder.batches(records, start=position, end=last, aborted=aborted):
                        if batch.num_rows:
                            yield batch
                    position = decoder.next_offset
        finally:
            source.close()

    return batches()


def _ranges(
    topic: str,
    source: Topic,
    start: Position | Mapping[int, Position],
    end: Position | Mapping[int, Position],
    partitions: Iterable[int] | None,
) -> dict[int, tuple[int, int]]:
    """The offsets to read of each partition that has any."""
    known = source.partitions()
    wanted = known if partitions is None else sorted(set(partitions))
    named = {
        *wanted,
        *(start if isinstance(start, Mapping) else ()),
        *(end if isinstance(end, Mapping) else ()),
    }
    for number in sorted(named - set(known)):
        raise UnknownTopicOrPartition(f"topic {topic} has no partition {number}: it has {len(known)}")
    starts, ends = source.starts(wanted), source.ends(wanted)
    now_ms = time.time_ns() // 1_000_000
    firsts = _resolve(source, start, "earliest", wanted, starts, ends, now_ms)
    lasts = _resolve(source, end, "latest", wanted, starts, ends, now_ms)
    for number in wanted:
        if firsts[number] < starts[number]:
            raise OffsetOutOfRange(
                f"partition {topic}-{number} holds offsets from {starts[number]} up to {ends[number]}; "
                f"{firsts[number]} is gone"
            )
    ranges = {number: (firsts[number], min(lasts[number], ends[number])) for number in wanted}
    return {number: (first, last) for number, (first, last) in ranges.items() if first < last}


def _resolve(
    source: Topic,
    given: Position | Mapping[int, Position],
    default: str,
    partitions: Sequence[int],
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    now_ms: int,
) -> dict[int, int]:
    """An offset for each partition."""
    positions = given if isinstance(given, Mapping) else dict.fromkeys(partitions, given)
    found: dict[int, int] = {}
    by_time: dict[int, list[int]] = {}
    for number in partitions:
        position = positions.get(number, default)
        if position == "earliest":
            found[number] = starts[number]
        elif position == "latest":
            found[number] = ends[number]
        elif isinstance(position, int) and not isinstance(position, bool) and position >= 0:
            found[number] = position
        else:
            by_time.setdefault(_milliseconds(position, now_ms), []).append(number)
    for timestamp_ms, numbers in by_time.items():
        for number, offset in source.at(numbers, timestamp_ms).items():
            found[number] = offset if offset >= 0 else ends[number]
    return found


def _milliseconds(position: Any, now_ms: int) -> int:
    if isinstance(position, timedelta):
        return max(0, now_ms - position // _MILLISECOND)
    if isinstance(position, datetime):
        if position.tzinfo is None:
            raise ValueError(
                f"{position} has no time zone: say which, as in datetime(..., tzinfo=timezone.utc)"
            )
        return max(0, -((_EPOCH - position) // _MILLISECOND))  # rounded up: at or after
    raise ValueError(
        f"{position!r} is no position: it can be 'earliest', 'latest', an offset, a datetime or a timedelta"
    )
