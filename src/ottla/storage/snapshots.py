"""The producer snapshots in the directory of a log, and the state of producers that they give."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla.core.files import Files
from ottla.storage.files import write_file
from ottla.storage.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from ottla.storage.producer_state import NO_OFFSET, Producers
from ottla.storage.replay import replay
from ottla.storage.segment import SNAPSHOT, Segment, file_name

_NAME: Final = re.compile(r"(\d{20})\.snapshot")

logger = logging.getLogger(__name__)


def snapshots(directory: str) -> list[int]:
    """The offsets of the snapshots, ascending."""
    names = os.listdir(directory)  # noqa: PTH208
    return sorted(int(match[1]) for match in map(_NAME.fullmatch, names) if match)


def delete_snapshots(files: Files, directory: str, *, after: int) -> None:
    for offset in snapshots(directory):
        if offset > after:
            files.unlink(_path(directory, offset))


def take_snapshot(files: Files, directory: str, producers: Producers, offset: int) -> str:
    """Write a snapshot, to be synced with the next flush; the path of its file."""
    path = _path(directory, offset)
    write_file(files, path, encode_snapshot(producers), sync=False)
    return path


def producers_at(
    files: Files,
    directory: str,
    segments: Sequence[Segment],
    offset: int,
    *,
    now_ms: int,
    expiration_ms: int,
    scan: bool = True,
    newest: int | None = None,
) -> Producers:
    """The state of the producers at `offset`: that of the newest good snapshot, and the batches since then.

    Without `scan` the batches are left out. Snapshots after `newest` are the last choice: they do not tell
    which transactions ended before them, and so not which of these are not replicated. A log that has its
    beginning needs none of them.
    """
    beginning = segments[0].base_offset
    producers = Producers(end_offset=beginning)
    usable = [at for at in reversed(snapshots(directory)) if at <= offset]
    if newest is not None:
        later = [at for at in reversed(usable) if at > newest] if beginning else []
        usable = [at for at in usable if at <= newest] + later
    for snapshot in usable:
        path = _path(directory, snapshot)
        try:
            known = decode_snapshot(Path(path).read_bytes())
        except CorruptSnapshot as error:
            logger.warning("%s is damaged and is deleted: %s", path, error)
            files.unlink(path)
            continue
        alive = [
            producer
            for producer in known
            if producer.transaction_first_offset != NO_OFFSET or now_ms - producer.timestamp < expiration_ms
        ]
        producers = Producers(alive, snapshot)
        break
    if scan and producers.end_offset < offset:
        _replay_up_to(offset, producers, segments)
    producers.end_offset = offset
    return producers


def _replay_up_to(end_offset: int, producers: Producers, segments: Sequence[Segment]) -> None:
    for segment in segments:
        if segment.base_offset >= end_offset:
            break
        for batch in segment.log.walk(segment.position_of(producers.end_offset)):
            if batch.base_offset >= end_offset:
                break
            completed = replay(producers, batch, lambda b=batch, s=segment: s.log.read(b.position, b.size))  # type: ignore[misc]
            if completed is not None:
                producers.complete(completed)
            producers.end_offset = batch.last_offset + 1


def _path(directory: str, offset: int) -> str:
    return f"{directory}/{file_name(offset, SNAPSHOT)}"
