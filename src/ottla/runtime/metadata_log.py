"""`__cluster_metadata-0` on disk: the log, its snapshots, and the files that a new directory starts with.

It is an ordinary log of batches. What makes it different: it begins with a snapshot rather than with its
first record once old records are gone, and every append is synced before anybody may rely on it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.core.files import Files
from ottla.core.ids import METADATA_TOPIC_ID
from ottla.core.types import CLUSTER_METADATA, TopicPartition
from ottla.metadata import framing
from ottla.metadata.image import Image, MetadataRecord
from ottla.metadata.versions import DEFAULT_FEATURES, METADATA_VERSION
from ottla.protocol.batch import iter_batches, read_header, read_records
from ottla.protocol.control import read_control_records
from ottla.protocol.stored.metadata import FeatureLevelRecord, UserScramCredentialRecord
from ottla.raft.election_state import ElectionState, from_json
from ottla.raft.membership import Membership
from ottla.runtime.snapshots import (
    BOOTSTRAP,
    DELETED,
    SUFFIX,
    UNFINISHED,
    DamagedSnapshot,
    SnapshotId,
    find_snapshots,
    read_snapshot,
    snapshot_bytes,
    write_snapshot,
)
from ottla.storage.files import write_file
from ottla.storage.log import Log
from ottla.storage.partition_metadata import PARTITION_METADATA, format_partition_metadata

PARTITION: Final = TopicPartition(CLUSTER_METADATA, 0)
QUORUM_STATE: Final = "quorum-state"
READ_BYTES: Final = 1 << 20
# The snapshot that formatting makes: it holds the first voters and nothing else.
FIRST_SNAPSHOT: Final = SnapshotId(0, 0)

logger = logging.getLogger("ottla.metadata_log")


@dataclass(slots=True)
class MetadataLog:
    """What was found on disk, or made there."""

    directory: str
    files: Files
    log: Log
    image: Image
    membership: Membership
    election: ElectionState | None
    bootstrap: list[MetadataRecord]
    snapshots: list[SnapshotId] = field(default_factory=list)
    # Of the last record in the log or, if that is empty, in the snapshot.
    last_timestamp: int = 0
    bytes_since_snapshot: int = 0

    @property
    def last_epoch(self) -> int:
        """The epoch that the log ends in."""
        from_snapshot = self.snapshots[-1].epoch if self.snapshots else 0
        return max(self.log.epochs.latest, from_snapshot, 0)


def path_in(log_directory: str) -> str:
    return f"{log_directory}/{PARTITION}"


def is_formatted(log_directory: str) -> bool:
    """Whether there is a metadata log already."""
    return Path(path_in(log_directory)).exists()


def format_directories(
    log_directories: Sequence[str],
    metadata_directory: str,
    files: Files,
    first: Membership | None,
    now_ms: int,
    first_users: Sequence[UserScramCredentialRecord] = (),
) -> None:
    """Make what `kafka-storage format` makes, beside `meta.properties`. Belongs in a thread.

    `first` are the voters that the log begins with (`--standalone`, `--initial-controllers`); None if the
    configuration names them (kraft.version 0), or if they are to be learnt from others. The first users are
    those of `--add-scram`: a cluster that nobody can log in to cannot be given any later.

    The metadata log's directory comes last, with a single rename: as long as it is missing, formatting starts
    over.
    """
    for directory in dict.fromkeys((*log_directories, metadata_directory)):
        path = f"{directory}/{BOOTSTRAP}"
        if first_users:
            records = [*read_bootstrap(directory), *first_users]
            write_snapshot(files, path, _bootstrap(records, now_ms), mode=0o600)
        elif not Path(path).exists():
            write_snapshot(files, path, _bootstrap(default_bootstrap(), now_ms), mode=0o644)
    target = path_in(metadata_directory)
    half_made = target + ".formatting"
    if Path(half_made).exists():
        for leftover in Path(half_made).iterdir():
            files.unlink(str(leftover))
    else:
        files.mkdir(half_made)
    # For this user alone: keys that stand for passwords, and passwords that were altered, are in there.
    Path(half_made).chmod(0o700)
    if first is not None:
        snapshot = snapshot_bytes(
            (), 0, control=first.records(), epoch=FIRST_SNAPSHOT.epoch, last_timestamp=now_ms, now_ms=now_ms
        )
        write_snapshot(files, f"{half_made}/{FIRST_SNAPSHOT.file_name}", snapshot, sync=False)
    content = format_partition_metadata(METADATA_TOPIC_ID)
    write_file(files, f"{half_made}/{PARTITION_METADATA}", content, sync=True)
    files.sync_directory(half_made)
    files.rename(half_made, target)
    files.sync_directory(metadata_directory)


def open_metadata_log(
    log_directory: str,
    files: Files,
    settings: BrokerSettings,
    *,
    now_ms: int,
    clean_shutdown: bool,
    is_alone: Callable[[Membership], bool] = lambda membership: True,
) -> MetadataLog:
    """Read what is there: the latest snapshot, and the log from there on. Belongs in a thread.

    Who votes counts up to the very end of the log. The image has what is known to be committed: the snapshot,
    and the log as well where `is_alone` says of the voters that there is nobody who could take it back.
    """
    directory = path_in(log_directory)
    _remove_leftovers(directory, files)
    snapshots = find_snapshots(directory)
    latest = snapshots[-1] if snapshots else None
    log = Log.open(
        directory,
        PARTITION,
        log_settings(settings),
        files=files,
        now_ms=now_ms,
        topic_id=METADATA_TOPIC_ID,
        # What a snapshot covers was committed, and so synced.
        recovery_point=latest.end_offset if latest else 0,
        start_offset=snapshots[0].end_offset if snapshots else 0,
        clean_shutdown=clean_shutdown,
    )
    found = MetadataLog(
        directory=directory,
        files=files,
        log=log,
        image=Image(),
        membership=Membership(),
        election=_read_election(directory),
        bootstrap=read_bootstrap(log_directory),
        snapshots=snapshots,
    )
    start = _load_snapshot(found)
    if log.end_offset < start:
        log.truncate_fully(start)
    if log.recovery_point < log.end_offset:
        # Whoever votes and is voted for by what is in this log must not lose it any more.
        log.flush()
    _read_membership(found, start)
    if is_alone(found.membership):
        for batch in read_batches(log, start, log.end_offset):
            fold_batch(found, batch, start)
        found.image.take_delta()
    return found


def log_settings(settings: BrokerSettings) -> TopicSettings:
    """Segments roll as the metadata.log.* properties say; what may go is for the snapshots to decide."""
    return TopicSettings(
        segment_bytes=settings.internal_metadata_log_segment_bytes or settings.metadata_log_segment_bytes,
        segment_ms=settings.metadata_log_segment_ms,
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=settings.internal_metadata_max_batch_size_in_bytes,
        file_delete_delay_ms=settings.internal_metadata_delete_delay_millis,
    )


def read_bootstrap(log_directory: str) -> list[MetadataRecord]:
    """What a new cluster starts with: as it was formatted, or by default."""
    path = f"{log_directory}/{BOOTSTRAP}"
    return read_snapshot(path).records if Path(path).exists() else default_bootstrap()


def default_bootstrap() -> list[MetadataRecord]:
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in DEFAULT_FEATURES.items()]


def _bootstrap(records: list[MetadataRecord], now_ms: int) -> Iterable[bytearray]:
    level = DEFAULT_FEATURES[METADATA_VERSION]
    return snapshot_bytes(records, level, epoch=0, last_timestamp=0, now_ms=now_ms)


def _read_election(directory: str) -> ElectionState | None:
    with suppress(FileNotFoundError):
        data = Path(directory, QUORUM_STATE).read_bytes()
        # Empty or full of zeros is what a power loss leaves of a file whose name was synced before it.
        return from_json(data) if data.strip(b"\0") else None
    return None


def _load_snapshot(found: MetadataLog) -> int:
    """Fold the latest snapshot that can be read; answers the offset to read the log from."""
    for snapshot in reversed(found.snapshots):
        try:
            content = read_snapshot(f"{found.directory}/{snapshot.file_name}")
        except DamagedSnapshot as error:
            # An older one will do as long as the log has all that came after it.
            if snapshot.end_offset > found.log.start_offset:
                logger.error("passing over a damaged snapshot: %s", error)
                continue
            raise
        for control in content.control:
            found.membership.apply(control, in_log=snapshot != FIRST_SNAPSHOT)
        for record in content.records:
            found.image.apply(record, snapshot.end_offset - 1)
        found.image.offset = snapshot.end_offset - 1
        found.image.epoch = snapshot.epoch
        found.last_timestamp = content.last_timestamp
        return snapshot.end_offset
    return found.log.start_offset


def read_batches(log: Log, offset: int, end_offset: int) -> Iterator[memoryview]:
    """The batches of the log from the one that holds `offset` on, all of it below `end_offset`."""
    while offset < end_offset:
        for header, batch in iter_batches(log.read(offset, READ_BYTES, end_offset)):
            if header.last_offset >= offset:
                yield batch
            offset = max(offset, header.last_offset + 1)


def fold_batch(store: MetadataLog, batch: memoryview, offset: int) -> None:
    """Fold the records of a committed batch into the image, from `offset` on if it begins before that."""
    header, image = read_header(batch), store.image
    if not header.is_control:
        for record in read_records(batch):
            if record.offset >= offset:
                image.apply(framing.decode(record.value or b""), record.offset)
    # The epoch is that of the last record, whatever it is: both together name a place in the log.
    image.offset, image.epoch = header.last_offset, header.partition_leader_epoch
    store.last_timestamp = header.max_timestamp
    store.bytes_since_snapshot += header.size


def _read_membership(found: MetadataLog, start: int) -> None:
    log = found.log
    for batch in read_batches(log, start, log.end_offset):
        if read_header(batch).is_control:
            for control in read_control_records(batch):
                found.membership.apply(control)


def _remove_leftovers(directory: str, files: Files) -> None:
    for path in Path(directory).iterdir():
        if path.name.endswith((SUFFIX + UNFINISHED, SUFFIX + DELETED)):
            files.unlink(str(path))
