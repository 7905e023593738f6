"""Offset checkpoint files: small text files that remember one offset per partition.

    0                   the format's version
    2                   how many lines follow
    orders 0 4711       topic, partition, offset
    orders 1 4688

A log directory has one for recovery points, one for high watermarks, one for log start offsets and one for
where compaction has come to. Each is replaced as a whole, so a reader sees the old file or the new one and
never a mixture.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping
from pathlib import Path

from ottla.core.files import Files
from ottla.core.types import TopicPartition
from ottla.storage.files import write_atomically

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

VERSION = 0
ENTRY = re.compile(r"(\S+)\s+(\d{1,10})\s+(-?\d{1,19})", re.ASCII)

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


class CheckpointError(ValueError):
    """A checkpoint file does not read as one."""


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    lines = [f"{VERSION}\n{len(offsets)}\n"]
    lines += [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    return "".join(lines).encode()


def parse_offsets(data: bytes) -> Offsets:
    """What a checkpoint file says; an empty one says nothing. `CheckpointError` for anything else."""
    try:
        lines = data.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"byte {error.start} is not text") from None
    if not lines:
        return {}
    if lines[0].strip() != str(VERSION):
        raise CheckpointError(f"version {lines[0][:20]!r} is unknown, expected {VERSION}")
    if len(lines) < 2 or not lines[1].strip().isdigit():
        raise CheckpointError("the second line is not a number of entries")
    entries = lines[2:]
    if len(entries) != int(lines[1]):
        raise CheckpointError(f"{lines[1].strip()} entries announced, {len(entries)} found")
    offsets: Offsets = {}
    for number, line in enumerate(entries, start=3):
        match = ENTRY.fullmatch(line.strip())
        if match is None:
            raise CheckpointError(f"line {number} is not 'topic partition offset': {line[:80]!r}")
        offsets[TopicPartition(match[1], int(match[2]))] = int(match[3])
    return offsets


def read_offsets(path: str) -> Offsets:
    """The offsets of a checkpoint file. Raises `CheckpointError`."""
    return parse_offsets(Path(path).read_bytes())


def read_offsets_or_none(path: str) -> Offsets | None:
    """As `read_offsets`, but a file that is damaged, or not there, does not matter.

    That costs time and never data: without recovery points every log is scanned from its start, without
    high watermarks they grow again from the log start, without start offsets the first segment gives it, and
    without cleaner offsets a log is compacted from its start. Kafka falls back the same way for all but high
    watermarks.
    """
    try:
        return read_offsets(path)
    except FileNotFoundError:
        return None
    except CheckpointError as error:
        logger.warning("%s is damaged and is ignored: %s", path, error)
        return None


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the file, durably."""
    write_atomically(files, path, format_offsets(offsets))


class Checkpoints:
    """The checkpoint files of one log directory: what they say, and how they are replaced."""

    def __init__(self, directory: str, files: Files) -> None:
        self._directory = directory
        self._files = files
        self._guard = threading.Lock()
        self._collected = 0
        self._newest: dict[str, int] = {}
        # What a start after a crash would read; None where there is no file, or a damaged one.
        self._on_disk: dict[str, Offsets | None] = {
            name: read_offsets_or_none(str(Path(directory, name)))
            for name in (RECOVERY_POINTS, HIGH_WATERMARKS, START_OFFSETS, CLEANER_OFFSETS)
        }

    @property
    def recovery_points(self) -> Mapping[TopicPartition, int]:
        return self._on_disk[RECOVERY_POINTS] or {}

    @property
    def has_recovery_points(self) -> bool:
        return self._on_disk[RECOVERY_POINTS] is not None

    @property
    def high_watermarks(self) -> Mapping[TopicPartition, int]:
        return self._on_disk[HIGH_WATERMARKS] or {}

    @property
    def start_offsets(self) -> Mapping[TopicPartition, int]:
        return self._on_disk[START_OFFSETS] or {}

    @property
    def cleaner_offsets(self) -> Mapping[TopicPartition, int]:
        return self._on_disk[CLEANER_OFFSETS] or {}

    def mention(self, partition: TopicPartition) -> bool:
        return any(partition in offsets for offsets in self._on_disk.values() if offsets)

    def collect(self, offsets: dict[str, Offsets]) -> Checkpoint:
        """What is to be written, by file name, as it is at this moment: on the loop, where logs change."""
        self._collected += 1
        return Checkpoint(self, self._collected, offsets)

    def _replace(self, number: int, collected: dict[str, Offsets]) -> None:
        with self._guard:
            for name, offsets in collected.items():
                # An older collection that comes late must not undo a newer one; a file that already says
                # the same is not written again, so that an idle broker leaves its disk alone.
                if self._newest.get(name, 0) > number:
                    continue
                if self._on_disk[name] != offsets:
                    write_offsets(self._files, str(Path(self._directory, name)), offsets)
                    self._on_disk[name] = offsets
                self._newest[name] = number


class Checkpoint:
    """Offsets that were collected and are still to be written. `write` may run in a worker thread."""

    def __init__(self, checkpoints: Checkpoints, number: int, offsets: dict[str, Offsets]) -> None:
        self._checkpoints = checkpoints
        self._number = number
        self._offsets = offsets

    def write(self) -> None:
        """Replace the files, durably. Raises `OSError`."""
        self._checkpoints._replace(self._number, self._offsets)
