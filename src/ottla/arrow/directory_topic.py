"""A topic as it lies in a data directory: where its partitions begin and end, and their batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ottla.arrow.log_directory import Piece, topic_partitions


class DirectoryTopic:
    """A topic read from a broker's files, whether the broker runs or not."""

    def __init__(self, topic: str, directory: str | os.PathLike[str], isolation_level: int) -> None:
        self._read_committed = bool(isolation_level)
        self._logs = topic_partitions(directory, topic)

    def close(self) -> None:
        """Nothing is kept open."""

    def partitions(self) -> list[int]:
        return list(self._logs)

    def starts(self, partitions: Iterable[int]) -> dict[int, int]:
        return {number: self._logs[number].start_offset for number in partitions}

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        return {
            number: self._logs[number].end_offset(read_committed=self._read_committed)
            for number in partitions
        }

    def at(self, partitions: Iterable[int], timestamp_ms: int) -> dict[int, int]:
        """The first offset at or after a time; -1 where no record is that young."""
        return {number: self._logs[number].offset_at(timestamp_ms) for number in partitions}

    def read(self, partition: int, start: int, end: int) -> Iterator[Piece]:
        return self._logs[partition].read(start, end, read_committed=self._read_committed)
