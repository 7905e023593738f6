"""Offset checkpoint files: small text files that remember one offset per partition.

    0                   the format's version
    2                   how many lines follow
    orders 0 4711       topic, partition, offset
    orders 1 4688

A log directory has one for recovery points, one for high watermarks and one for log start offsets. Each is
replaced as a whole, so a reader sees the old file or the new one and never a mixture.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from ottla.core.files import Files
from ottla.core.types import TopicPartition
from ottla.storage.files import write_atomically

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"

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
    """The offsets of a checkpoint file, none when there is no such file. Raises `CheckpointError`."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return {}
    return parse_offsets(data)


def read_offsets_or_none(path: str) -> Offsets:
    """As `read_offsets`, but a damaged file counts as an empty one.

    That costs time and never data: without recovery points every log is scanned from its start, without
    high watermarks they grow again from the log start, and without start offsets the first segment gives it.
    Kafka falls back the same way for recovery points and start offsets.
    """
    try:
        return read_offsets(path)
    except CheckpointError as error:
        logger.warning("%s is damaged and is ignored: %s", path, error)
        return {}


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the file, durably."""
    write_atomically(files, path, format_offsets(offsets))


class Checkpoints:
    """The checkpoint files of one log directory: what they said at the start, and how they are replaced."""

    def __init__(self, directory: str, files: Files) -> None:
        self.recovery_points = read_offsets_or_none(str(Path(directory, RECOVERY_POINTS)))
        self.high_watermarks = read_offsets_or_none(str(Path(directory, HIGH_WATERMARKS)))
        self.start_offsets = read_offsets_or_none(str(Path(directory, START_OFFSETS)))
        self._directory = directory
        self._files = files
        self._guard = threading.Lock()
        self._collected = 0
        self._written: dict[str, tuple[int, bytes]] = {}

    def collect(self, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> Checkpoint:
        """What is to be written, by file name, as it is at this moment: on the loop, where logs change."""
        self._collected += 1
        contents = {name: format_offsets(entries) for name, entries in offsets.items()}
        return Checkpoint(self, self._collected, contents)

    def _replace(self, number: int, contents: Iterable[tuple[str, bytes]]) -> None:
        with self._guard:
            for name, content in contents:
                newest, written = self._written.get(name, (0, b""))
                # An older collection that comes late must not undo a newer one; a file that already says
                # the same is not written again, so that an idle broker leaves its disk alone.
                if newest > number:
                    continue
                if written != content:
                    write_atomically(self._files, str(Path(self._directory, name)), content)
                self._written[name] = number, content


class Checkpoint:
    """Offsets that were collected and are still to be written. `write` may run in a worker thread."""

    def __init__(self, checkpoints: Checkpoints, number: int, contents: dict[str, bytes]) -> None:
        self._checkpoints = checkpoints
        self._number = number
        self._contents = contents

    def write(self) -> None:
        """Replace the files, durably. Raises `OSError`."""
        self._checkpoints._replace(self._number, self._contents.items())
