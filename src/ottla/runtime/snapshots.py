"""Snapshot files (`.checkpoint`): the records that make up an image, so that the log before it may go.

`<end offset>-<epoch>.checkpoint` holds everything below the end offset. `bootstrap.checkpoint` has the same
form: it is what a new cluster starts with. A file is batches in the log's own format, between a header and a
footer of control records; one without its footer was not finished and is not believed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ottla.core.files import Files
from ottla.metadata import framing
from ottla.metadata.image import MetadataRecord
from ottla.protocol import codec
from ottla.protocol.batch import Record, crc_ok, iter_batches, read_records, write_batch
from ottla.protocol.control import ControlRecord, ControlRecordType, control_batch, read_control_records
from ottla.protocol.errors import KafkaError
from ottla.protocol.stored.quorum import SnapshotFooterRecord, SnapshotHeaderRecord
from ottla.raft.log import SnapshotId as RaftSnapshotId
from ottla.raft.membership import ControlValue
from ottla.storage.files import write_whole

BOOTSTRAP: Final = "bootstrap.checkpoint"
SUFFIX: Final = ".checkpoint"
UNFINISHED: Final = ".part"
DELETED: Final = ".deleted"
# Nobody but us has any business with it, and we never change it either.
MODE: Final = 0o400
# Records go into batches of about this size, so that no reader needs a huge buffer.
BATCH_BYTES: Final = 1 << 20

_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotId(RaftSnapshotId):
    """Where a snapshot ends in the log, and the epoch of the last record in it; as a file it has a name."""

    __slots__ = ()

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


class DamagedSnapshot(Exception):
    """A snapshot file cannot be read to its end."""


class Snapshot(NamedTuple):
    """The content of a file: the quorum's own records, and the metadata records."""

    control: list[ControlRecord]
    records: list[MetadataRecord]
    last_timestamp: int


def snapshot_path(directory: str, snapshot: RaftSnapshotId) -> str:
    return f"{directory}/{SnapshotId(*snapshot).file_name}"


def find_snapshots(directory: str) -> list[SnapshotId]:
    """The snapshots in a directory, oldest first."""
    names = (_NAME.fullmatch(path.name) for path in Path(directory).iterdir())
    return sorted(SnapshotId(int(name[1]), int(name[2])) for name in names if name)


def read_snapshot(path: str) -> Snapshot:
    """Every record of a snapshot; raises `DamagedSnapshot` unless the file is whole."""
    control: list[ControlRecord] = []
    records: list[MetadataRecord] = []
    try:
        for header, batch in iter_batches(Path(path).read_bytes()):
            if not crc_ok(batch):
                raise DamagedSnapshot(
                    f"{path}: the batch at offset {header.base_offset} has a wrong checksum"
                )
            if header.is_control:
                control += read_control_records(batch)
            else:
                records += [framing.decode(record.value or b"") for record in read_records(batch)]
    except (KafkaError, ValueError, OSError) as error:
        raise DamagedSnapshot(f"{path}: {error}") from error
    types = [record.type for record in control]
    if not types or types[0] is not ControlRecordType.SNAPSHOT_HEADER:
        raise DamagedSnapshot(f"{path} does not begin with a snapshot header")
    if types[-1] is not ControlRecordType.SNAPSHOT_FOOTER:
        raise DamagedSnapshot(f"{path} does not end with a snapshot footer")
    header_record = codec.decode(SnapshotHeaderRecord, 0, control[0].value)
    return Snapshot(control, records, header_record.last_contained_log_timestamp)


def read_control(path: str) -> list[ControlRecord]:
    """The control records of a snapshot; raises `DamagedSnapshot` unless they can be read."""
    try:
        return [
            record
            for header, batch in iter_batches(Path(path).read_bytes())
            if header.is_control
            for record in read_control_records(batch)
        ]
    except (KafkaError, ValueError, OSError) as error:
        raise DamagedSnapshot(f"{path}: {error}") from error


def snapshot_bytes(
    records: Iterable[MetadataRecord],
    metadata_version: int,
    *,
    control: Iterable[ControlValue] = (),
    epoch: int,
    last_timestamp: int,
    now_ms: int,
) -> Iterator[bytearray]:
    """A snapshot, batch by batch."""
    header = codec.encode(SnapshotHeaderRecord(last_contained_log_timestamp=last_timestamp), 0)
    first = [(ControlRecordType.SNAPSHOT_HEADER, header), *control]
    yield control_batch(first, timestamp=now_ms, leader_epoch=epoch)
    offset = len(first)
    for values in _chunks(framing.encode(record, metadata_version) for record in records):
        yield write_batch(
            [Record(timestamp=now_ms, value=value) for value in values],
            base_offset=offset,
            leader_epoch=epoch,
        )
        offset += len(values)
    footer = (ControlRecordType.SNAPSHOT_FOOTER, codec.encode(SnapshotFooterRecord(), 0))
    yield control_batch([footer], timestamp=now_ms, base_offset=offset, leader_epoch=epoch)


def write_snapshot(
    files: Files, path: str, batches: Iterable[bytearray], *, mode: int = MODE, sync: bool = True
) -> int:
    """Write a snapshot under another name, sync it, and give it its own: it is there whole or not at all.

    Answers its size. Without `sync` the caller sees to that.
    """
    part = path + UNFINISHED
    # A file left by a crash is in the way, and since it is read-only it cannot be written over.
    with suppress(FileNotFoundError):
        files.unlink(part)
    size = 0
    fd = files.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        for batch in batches:
            write_whole(files, fd, batch)
            size += len(batch)
        files.fsync(fd)
    finally:
        files.close(fd)
    files.rename(part, path)
    if sync:
        files.sync_directory(str(Path(path).parent))
    return size


def _chunks(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size = 0
    for value in values:
        if size + len(value) > BATCH_BYTES and chunk:
            yield chunk
            chunk, size = [], 0
        chunk.append(value)
        size += len(value)
    if chunk:
        yield chunk
