"""A metadata record as the value of a log record: frame version, type, version, body."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from ottla.core.files import Buffer
from ottla.metadata.image import MetadataRecord
from ottla.metadata.versions import (
    MV_CORDONED_DIRECTORIES,
    MV_DIRECTORY_ASSIGNMENT,
    MV_ELIGIBLE_LEADER_REPLICAS,
    MV_REGISTRATION_WITH_MIGRATION,
)
from ottla.protocol import codec
from ottla.protocol.stored import metadata as stored
from ottla.protocol.wire import MalformedFrame

FRAME_VERSION: Final = 1

_CLASSES: Final[dict[int, type]] = {
    cls.api_key: cls
    for cls in vars(stored).values()
    if isinstance(cls, type) and cls.__module__ == stored.__name__ and hasattr(cls, "api_key")
}


def encode(record: MetadataRecord, metadata_version: int) -> bytes:
    """The record's bytes, in the version that a cluster at this level writes."""
    version = record_version(record, metadata_version)
    out = bytearray((FRAME_VERSION, record.api_key, version))
    codec.writer(record.__class__, version)(record, out)
    return bytes(out)


def decode(value: Buffer) -> MetadataRecord:
    """The record in these bytes; `MalformedFrame` when they are not one."""
    # Frame version, type and version are varints, and all of them far below 128.
    if len(value) < 3:
        raise MalformedFrame("a metadata record needs at least three bytes")
    frame, key, version = value[0], value[1], value[2]
    if frame != FRAME_VERSION:
        raise MalformedFrame(f"metadata record frame version {frame}, expected {FRAME_VERSION}")
    return _decoder(key, version)(value)


def record_version(record: MetadataRecord, metadata_version: int) -> int:
    """The version to write a record in.

    Registrations and partitions follow metadata.version. A registration change is written in the lowest
    version that can carry what it says, as Kafka does.
    """
    if isinstance(record, (stored.PartitionChangeRecord, stored.PartitionRecord)):
        if metadata_version >= MV_ELIGIBLE_LEADER_REPLICAS:
            return 2
        return int(metadata_version >= MV_DIRECTORY_ASSIGNMENT)
    if isinstance(record, stored.BrokerRegistrationChangeRecord):
        if record.cordoned_log_dirs is not None:
            return 3
        if record.log_dirs:
            return 2
        return int(record.in_controlled_shutdown != 0)
    if isinstance(record, stored.RegisterBrokerRecord):
        if metadata_version >= MV_CORDONED_DIRECTORIES:
            return 4
        if metadata_version >= MV_DIRECTORY_ASSIGNMENT:
            return 3
        return 2 if metadata_version >= MV_REGISTRATION_WITH_MIGRATION else 1
    return 0


@cache
def _decoder(key: int, version: int) -> Callable[[Buffer], MetadataRecord]:
    cls = _CLASSES.get(key)
    if cls is None:
        raise MalformedFrame(f"metadata record of unknown type {key}")
    read = codec.reader(cls, version)

    def decode(value: Buffer) -> MetadataRecord:
        return read(value, 3, len(value))[0]

    return decode
