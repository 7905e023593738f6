"""Records of `__consumer_offsets`: Kafka's bytes to keys and values, and back.

A key is its record type as an int16 and then its fields; a value is its version as an int16 and then its
fields. Which type means what is in `protocol/stored/groups.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.core.outcome import LogRecord
from ottla.protocol.codec import decode, writer
from ottla.protocol.stored import groups as stored
from ottla.protocol.wire import MalformedFrame

_SHORT: Final = struct.Struct(">h")

# Record type -> the classes of its key and its value.
TYPES: Final[dict[int, tuple[Any, Any]]] = {
    0: (stored.LegacyOffsetCommitKey, stored.LegacyOffsetCommitValue),
    1: (stored.OffsetCommitKey, stored.OffsetCommitValue),
    2: (stored.GroupMetadataKey, stored.GroupMetadataValue),
    3: (stored.ConsumerGroupMetadataKey, stored.ConsumerGroupMetadataValue),
    4: (stored.ConsumerGroupPartitionMetadataKey, stored.ConsumerGroupPartitionMetadataValue),
    5: (stored.ConsumerGroupMemberMetadataKey, stored.ConsumerGroupMemberMetadataValue),
    6: (stored.ConsumerGroupTargetAssignmentMetadataKey, stored.ConsumerGroupTargetAssignmentMetadataValue),
    7: (stored.ConsumerGroupTargetAssignmentMemberKey, stored.ConsumerGroupTargetAssignmentMemberValue),
    8: (stored.ConsumerGroupCurrentMemberAssignmentKey, stored.ConsumerGroupCurrentMemberAssignmentValue),
    10: (stored.ShareGroupMemberMetadataKey, stored.ShareGroupMemberMetadataValue),
    11: (stored.ShareGroupMetadataKey, stored.ShareGroupMetadataValue),
    12: (stored.ShareGroupTargetAssignmentMetadataKey, stored.ShareGroupTargetAssignmentMetadataValue),
    13: (stored.ShareGroupTargetAssignmentMemberKey, stored.ShareGroupTargetAssignmentMemberValue),
    14: (stored.ShareGroupCurrentMemberAssignmentKey, stored.ShareGroupCurrentMemberAssignmentValue),
    15: (stored.ShareGroupStatePartitionMetadataKey, stored.ShareGroupStatePartitionMetadataValue),
    16: (stored.ConsumerGroupRegularExpressionKey, stored.ConsumerGroupRegularExpressionValue),
}


class Entry(NamedTuple):
    """A record that was understood. Without a value it takes back what its key says."""

    type: int
    key: Any
    value: Any | None


def record(key: Any, value: Any, version: int = 0) -> LogRecord:
    """The record of a key and a value, the value in the given version."""
    return LogRecord(_bytes(key.api_key, key, 0), _bytes(version, value, version))


def tombstone(key: Any) -> LogRecord:
    """The record that takes a key back."""
    return LogRecord(_bytes(key.api_key, key, 0), None)


def _bytes(prefix: int, message: Any, version: int) -> bytes:
    cls: Any = type(message)
    return bytes(writer(cls, version)(message, bytearray(_SHORT.pack(prefix))))


def read(entry: LogRecord, types: Mapping[int, tuple[Any, Any]] = TYPES) -> Entry | None:
    """What a record says, or None when it is of a type or a version that we do not know.

    A newer broker may have written it, and some client garbage: neither may keep the rest of the log from
    being read.
    """
    try:
        (type_,) = _SHORT.unpack_from(entry.key)
        classes = types.get(type_)
        if classes is None:
            return None
        key = decode(classes[0], 0, entry.key, 2)
        if entry.value is None:
            return Entry(type_, key, None)
        (version,) = _SHORT.unpack_from(entry.value)
        if version not in classes[1].versions:
            return None
        return Entry(type_, key, decode(classes[1], version, entry.value, 2))
    except (MalformedFrame, struct.error):
        return None
