"""Where a read starts or ends, as the options say it: not yet offsets, since a broker has to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.core.types import TopicPartition
from ottla.spark.offsets import describe
from ottla.spark.properties import BadOption


@dataclass(frozen=True)
class Earliest:
    """The first record that each partition still has."""


@dataclass(frozen=True)
class Latest:
    """Behind the last record of each partition."""


@dataclass(frozen=True)
class At:
    """An offset for each partition, -1 for latest, -2 for earliest."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class AtTimestamps:
    """The first record of each partition with this time in milliseconds, or a later one."""

    timestamps: Mapping[TopicPartition, int]
    else_latest: bool  # what to do where there is none: start at the end, or fail


@dataclass(frozen=True)
class AtTimestamp:
    """The same with one time for all partitions."""

    timestamp: int
    else_latest: bool


Position = Earliest | Latest | At | AtTimestamps | AtTimestamp


def check_order(starting: Position, ending: Position) -> None:
    """Refuse a batch that ends before it starts, as far as that can be seen without asking a broker."""
    if isinstance(starting, AtTimestamp) and isinstance(ending, AtTimestamp):
        if starting.timestamp > ending.timestamp:
            raise BadOption(
                f"startingTimestamp ({starting.timestamp}) is after endingTimestamp ({ending.timestamp})"
            )
    elif isinstance(starting, At) and isinstance(ending, At):
        _check_each("offset", starting.offsets, ending.offsets)
    elif isinstance(starting, AtTimestamps) and isinstance(ending, AtTimestamps):
        _check_each("timestamp", starting.timestamps, ending.timestamps)


def _check_each(what: str, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
    if starts.keys() != ends.keys():
        raise BadOption(
            f"the starting and the ending {what}s have to name the same partitions; "
            f"starting: {describe(starts)}; ending: {describe(ends)}"
        )
    for partition, start in starts.items():
        if 0 <= ends[partition] < start:
            raise BadOption(
                f"the starting {what} of {partition} is {start}, the ending one is less: {ends[partition]}"
            )
