"""Control batches: what Kafka writes into a log about the log itself.

A control record has a key of two int16, a version and a type. Transaction markers end a producer's
transaction in a partition; the other types belong to the metadata quorum, whose values are messages of
`stored.quorum` and pass through here as bytes. Control records take offsets, and consumers skip them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from ottla.core.files import Buffer
from ottla.protocol.batch import CONTROL, TRANSACTIONAL, Record, read_header, read_records, write_batch
from ottla.protocol.errors import InvalidRecord

_KEY: Final = Struct(">hh")
_END_TRANSACTION: Final = Struct(">hi")
_KEY_VERSION: Final = 0
_END_TRANSACTION_VERSION: Final = 0


class ControlRecordType(IntEnum):
    """The second half of a control record's key."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class ControlRecord(NamedTuple):
    """One control record; its value is as its type has it."""

    offset: int
    timestamp: int
    type: ControlRecordType
    value: bytes


class EndTransactionMarker(NamedTuple):
    """The end of a transaction, in one partition."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool


def control_key(type: ControlRecordType) -> bytes:
    return _KEY.pack(_KEY_VERSION, type)


def control_type(key: Buffer | None) -> ControlRecordType:
    """The type in a control record's key; UNKNOWN for types of a later Kafka, which readers pass over."""
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord("the key of a control record is cut off")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"the key of a control record has version {version}")
    try:
        return ControlRecordType(number)
    except ValueError:
        return ControlRecordType.UNKNOWN


def control_batch(
    records: Sequence[tuple[ControlRecordType, bytes]],
    *,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """A batch of the quorum's control records, as they stand in `__cluster_metadata` and in snapshots."""
    return write_batch(
        [Record(timestamp=timestamp, key=control_key(type), value=value) for type, value in records],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=CONTROL,
    )


def end_transaction_batch(
    marker: EndTransactionMarker, *, timestamp: int, base_offset: int = 0, leader_epoch: int = -1
) -> bytearray:
    """The 78 bytes that commit or abort a producer's transaction in a partition."""
    type = ControlRecordType.COMMIT if marker.commit else ControlRecordType.ABORT
    value = _END_TRANSACTION.pack(_END_TRANSACTION_VERSION, marker.coordinator_epoch)
    return write_batch(
        [Record(timestamp=timestamp, key=control_key(type), value=value)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        attributes=CONTROL | TRANSACTIONAL,
    )


def read_control_records(batch: Buffer) -> list[ControlRecord]:
    """The records of a control batch."""
    return [
        ControlRecord(record.offset, record.timestamp, control_type(record.key), record.value or b"")
        for record in read_records(batch)
    ]


def read_end_transaction(batch: Buffer) -> EndTransactionMarker | None:
    """The marker that a control batch holds, or None if it holds something else.

    A log keeps a control batch without records after compaction has removed its marker.
    """
    header = read_header(batch)
    records = read_control_records(batch)
    if not records or records[0].type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    type, value = records[0].type, records[0].value
    if len(value) < _END_TRANSACTION.size:
        raise InvalidRecord("a transaction marker is cut off")
    version, coordinator_epoch = _END_TRANSACTION.unpack_from(value)
    if version < 0:
        raise InvalidRecord(f"a transaction marker has version {version}")
    return EndTransactionMarker(
        header.producer_id, header.producer_epoch, coordinator_epoch, type is ControlRecordType.COMMIT
    )
