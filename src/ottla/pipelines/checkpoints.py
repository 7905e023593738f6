"""What a checkpoint says: how far a query has come, and which batch it was at when it stopped.

Spark writes `offsets/N` before batch N and `commits/N` after it. The offsets are those at which N ends. Read
here from local directories only, without Spark; nothing is ever written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Offsets = Mapping[str, Mapping[int, int]]
"""By topic and partition."""


@dataclass(frozen=True)
class Unfinished:
    """A batch that was begun. What is not a topic's offset is left out."""

    batch_id: int
    start: Offsets
    end: Offsets

    def describe(self) -> str:
        """`orders-0 15 to 20, orders-1 7 to 9`: where the batch starts, and before which offset it ends."""
        parts = []
        for topic, partitions in sorted(self.end.items()):
            for partition, end in sorted(partitions.items()):
                begin = self.start.get(topic, {}).get(partition)
                if begin != end:
                    parts.append(f"{topic}-{partition} {'start' if begin is None else begin} to {end}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one query."""

    name: str
    directory: Path

    @property
    def query_id(self) -> str | None:
        try:
            return str(json.loads((self.directory / "metadata").read_text())["id"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def committed(self) -> int | None:
        """The last batch that is done."""
        return _last(self.directory / "commits")

    def committed_at(self) -> float | None:
        """When it was done, in seconds since 1970."""
        last = self.committed()
        try:
            return None if last is None else (self.directory / "commits" / str(last)).stat().st_mtime
        except OSError:
            return None

    def offsets(self, batch_id: int | None) -> Offsets:
        """Where a batch ends; nothing for None."""
        if batch_id is None:
            return {}
        try:
            return parse_offsets((self.directory / "offsets" / str(batch_id)).read_text())
        except (OSError, UnicodeDecodeError):
            return {}

    def unfinished(self) -> Unfinished | None:
        """The batch that was begun and is not done."""
        planned, committed = _last(self.directory / "offsets"), self.committed()
        if planned is None or planned == committed:
            return None
        before = planned - 1 if planned > 0 else None
        return Unfinished(planned, self.offsets(before), self.offsets(planned))


def checkpoints_in(directory: Path) -> list[Checkpoint]:
    """The checkpoints below a directory, by name."""
    if not directory.is_dir():
        return []
    folders = (each for each in directory.iterdir() if (each / "metadata").is_file())
    return [Checkpoint(each.name, each) for each in sorted(folders)]


def parse_offsets(text: str) -> Offsets:
    """The offsets in a file of Spark's offset log: a version, a line about the batch, then a line per
    source."""
    found: dict[str, dict[int, int]] = {}
    for line in text.splitlines()[2:]:
        try:
            merge_offsets(found, json.loads(line))
        except ValueError:
            continue
    return found


def merge_offsets(found: dict[str, dict[int, int]], said: Any) -> None:
    """Add a source's offsets if they are those of topics: `{"orders": {"0": 300}}`, as Spark's own connector
    writes them too. Where two sources read a partition, the one that is behind counts."""
    if not isinstance(said, dict):
        return
    for topic, partitions in said.items():
        if not isinstance(partitions, dict):
            continue
        for partition, offset in partitions.items():
            if str(partition).isdecimal() and isinstance(offset, int):
                known = found.setdefault(topic, {})
                known[int(partition)] = min(offset, known.get(int(partition), offset))


def _last(directory: Path) -> int | None:
    try:
        return max((int(each.name) for each in directory.iterdir() if each.name.isdecimal()), default=None)
    except OSError:
        return None
