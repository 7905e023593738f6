"""What is in the directory of a partition: its files by kind, its segments in order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from ottla.core.types import TopicPartition
from ottla.storage import checkpoints, clean_shutdown, epochs, meta_properties, partition_metadata
from ottla.storage.directory_names import Kind as DirectoryKind
from ottla.storage.directory_names import parse_name

QUORUM_STATE: Final = "quorum-state"
BOOTSTRAP: Final = "bootstrap.checkpoint"
_SEGMENT_FILE: Final = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)")
_METADATA_SNAPSHOT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_LEFTOVER: Final = re.compile(r".*\.(deleted|cleaned|swap|tmp|part)")


class Kind(Enum):
    LOG = "log"
    OFFSET_INDEX = "index"
    TIME_INDEX = "timeindex"
    TRANSACTION_INDEX = "txnindex"
    PRODUCER_SNAPSHOT = "snapshot"
    LEADER_EPOCHS = "leader epochs"
    PARTITION_METADATA = "partition metadata"
    METADATA_SNAPSHOT = "metadata snapshot"
    QUORUM_STATE = "quorum state"
    OFFSET_CHECKPOINT = "offset checkpoint"
    META_PROPERTIES = "meta properties"
    CLEAN_SHUTDOWN = "clean shutdown"
    LOCK = "lock"
    LEFTOVER = "leftover"
    UNKNOWN = "unknown"


_BY_NAME: Final = {
    epochs.FILE_NAME: Kind.LEADER_EPOCHS,
    partition_metadata.PARTITION_METADATA: Kind.PARTITION_METADATA,
    QUORUM_STATE: Kind.QUORUM_STATE,
    BOOTSTRAP: Kind.METADATA_SNAPSHOT,
    checkpoints.RECOVERY_POINTS: Kind.OFFSET_CHECKPOINT,
    checkpoints.HIGH_WATERMARKS: Kind.OFFSET_CHECKPOINT,
    checkpoints.START_OFFSETS: Kind.OFFSET_CHECKPOINT,
    "cleaner-offset-checkpoint": Kind.OFFSET_CHECKPOINT,
    meta_properties.META_PROPERTIES: Kind.META_PROPERTIES,
    clean_shutdown.CLEAN_SHUTDOWN: Kind.CLEAN_SHUTDOWN,
    ".lock": Kind.LOCK,
}


def kind_of(name: str) -> Kind:
    """What a file is, by its name alone, as brokers tell them apart too."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    match = _SEGMENT_FILE.fullmatch(name)
    if match is not None:
        return Kind(match[2])
    if _METADATA_SNAPSHOT.fullmatch(name) is not None:
        return Kind.METADATA_SNAPSHOT
    return Kind.LEFTOVER if _LEFTOVER.fullmatch(name) else Kind.UNKNOWN


def base_offset_of(name: str) -> int:
    """The offset in the name of a segment's file or of a snapshot."""
    return int(name[:20])


@dataclass(slots=True)
class SegmentFiles:
    """The files of one segment; any but the log may be missing."""

    base_offset: int
    log: Path
    files: dict[Kind, Path] = field(default_factory=dict)


@dataclass(slots=True)
class PartitionDirectory:
    path: Path
    partition: TopicPartition | None
    kind: DirectoryKind
    segments: list[SegmentFiles]
    files: list[Path]

    @property
    def topic(self) -> str:
        return self.partition.topic if self.partition is not None else ""


def is_partition_directory(path: Path) -> bool:
    """Whether a directory holds the files of one log; else it may hold such directories."""
    return any(
        kind_of(each.name) in (Kind.LOG, Kind.LEADER_EPOCHS, Kind.PARTITION_METADATA)
        for each in path.iterdir()
    )


def read_partition_directory(path: Path) -> PartitionDirectory:
    kind, partition = parse_name(path.resolve().name)
    files = sorted((each for each in path.iterdir() if each.is_file()), key=lambda each: each.name)
    segments: dict[int, SegmentFiles] = {}
    for each in files:
        if kind_of(each.name) is Kind.LOG:
            base_offset = base_offset_of(each.name)
            segments[base_offset] = SegmentFiles(base_offset, each)
    for each in files:
        which = kind_of(each.name)
        if which in (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX):
            segment = segments.get(base_offset_of(each.name))
            if segment is not None:
                segment.files[which] = each
    return PartitionDirectory(path, partition, kind, [segments[base] for base in sorted(segments)], files)


def partition_directories(path: Path) -> list[PartitionDirectory]:
    """The partitions of a log directory, by name; deleted and stray ones too."""
    found = []
    for each in sorted(path.iterdir(), key=_by_topic_and_number):
        if each.is_dir() and parse_name(each.name)[0] is not DirectoryKind.OTHER:
            try:
                found.append(read_partition_directory(each))
            except FileNotFoundError:
                continue  # removed by its broker while we looked
    return found


def _by_topic_and_number(path: Path) -> tuple[str, int]:
    partition = parse_name(path.name)[1]
    return (path.name, -1) if partition is None else (partition.topic, partition.partition)
