"""What the records of a log say: text for data, decoded fields for Kafka's internal topics."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.config.describe import broker_setting
from ottla.core.ids import Uuid
from ottla.core.outcome import LogRecord
from ottla.core.types import CLUSTER_METADATA, CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ottla.groups import records as group_records
from ottla.metadata import framing
from ottla.metadata.image import BROKER_RESOURCE
from ottla.protocol import codec
from ottla.protocol.batch import BatchHeader, Record
from ottla.protocol.control import ControlRecordType, control_type
from ottla.protocol.errors import KafkaError
from ottla.protocol.stored import groups as stored_groups
from ottla.protocol.stored import quorum, share
from ottla.protocol.stored.metadata import ConfigRecord
from ottla.protocol.wire import MalformedFrame
from ottla.storage.inspect.batches import FoundBatch, read_batch
from ottla.storage.inspect.directory import PartitionDirectory
from ottla.storage.inspect.summary import SegmentSummary
from ottla.transactions import records as transaction_records

SHOWN_BYTES: Final = 200
SHARE_TYPES: Final = {
    0: (share.ShareSnapshotKey, share.ShareSnapshotValue),
    1: (share.ShareUpdateKey, share.ShareUpdateValue),
}
CONTROL_VALUES: Final[dict[ControlRecordType, Any]] = {
    ControlRecordType.LEADER_CHANGE: quorum.LeaderChangeMessage,
    ControlRecordType.SNAPSHOT_HEADER: quorum.SnapshotHeaderRecord,
    ControlRecordType.SNAPSHOT_FOOTER: quorum.SnapshotFooterRecord,
    ControlRecordType.KRAFT_VERSION: quorum.KRaftVersionRecord,
    ControlRecordType.KRAFT_VOTERS: quorum.VotersRecord,
}


def plain(value: Any) -> Any:
    """A decoded message as JSON has it."""
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return text_of(bytes(value))
    if isinstance(value, list):
        return [plain(each) for each in value]
    if hasattr(type(value), "__declared__"):
        cls: Any = type(value)
        return {
            name: "[hidden]" if declared.secret else plain(getattr(value, name))
            for name, declared in cls.__declared__.items()
        }
    return value


def text_of(data: bytes | None) -> str | None:
    """Bytes as text where they are text, else in hexadecimal."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "0x" + data.hex()
    return (
        text
        if text.isprintable() or text.isspace()
        else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    )


def shortened(text: str | None, length: int = SHOWN_BYTES) -> str:
    if text is None:
        return "(null)"
    return text if len(text) <= length else f"{text[:length]}... ({len(text)} characters)"


def decoded(topic: str, header: BatchHeader, record: Record) -> dict[str, Any]:
    """Offset, time, key, value and headers of a record; of internal topics also what it `means`."""
    shown: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    meaning = _meaning(topic, header, record)
    if meaning is not None:
        return shown | meaning
    shown |= {"key": text_of(record.key), "value": text_of(record.value)}
    if record.headers:
        shown["headers"] = [[name, text_of(value)] for name, value in record.headers]
    return shown


def _meaning(topic: str, header: BatchHeader, record: Record) -> dict[str, Any] | None:
    try:
        if header.is_control:
            return _control(record)
        if topic == CLUSTER_METADATA:
            found: Any = framing.decode(record.value or b"")
            return {"type": type(found).__name__, "data": _without_secrets(found, plain(found))}
        if topic == TRANSACTION_STATE:
            return _transaction(record)
        if topic in (CONSUMER_OFFSETS, SHARE_GROUP_STATE) and record.key is not None:
            types = group_records.TYPES if topic == CONSUMER_OFFSETS else SHARE_TYPES
            entry = group_records.read(LogRecord(record.key, record.value), types)
            if entry is None:
                return None
            name = type(entry.key).__name__.removesuffix("Key")
            return {"type": name, "key": plain(entry.key), "data": plain(entry.value)}
    except (MalformedFrame, KafkaError, ValueError):
        return None
    return None


def _without_secrets(found: Any, shown: dict[str, Any]) -> dict[str, Any]:
    """Passwords and keys that were altered are values like any others; one must know their names.

    As in DescribeConfigs, a name that nobody knows may stand for a secret, too.
    """
    if isinstance(found, ConfigRecord) and found.resource_type == BROKER_RESOURCE and found.value is not None:
        setting = broker_setting(found.name)
        if setting is None or setting.sensitive:
            shown["value"] = "[hidden]"
    return shown


def _control(record: Record) -> dict[str, Any]:
    type_ = control_type(record.key)
    value: Any = None
    if type_ in CONTROL_VALUES:
        cls = CONTROL_VALUES[type_]
        version = int.from_bytes((record.value or b"\0\0")[:2], "big")
        value = plain(codec.decode(cls, version if version in cls.versions else 0, record.value or b""))
    elif record.value is not None and len(record.value) >= 6:
        value = {"coordinator_epoch": int.from_bytes(record.value[2:6], "big", signed=True)}
    return {"type": f"{type_.name} (control)", "data": value}


def _transaction(record: Record) -> dict[str, Any] | None:
    entry = None if record.key is None else transaction_records.read(LogRecord(record.key, record.value))
    if entry is None:
        return None
    found = entry.transaction
    data = None if found is None else {
        "state": found.state.name,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.timeout_ms,
        "partitions": [str(each) for each in sorted(found.partitions)],
        "last_update_ms": found.last_update_ms,
    }  # fmt: skip
    return {"type": "Transaction", "key": {"transactional_id": entry.transactional_id}, "data": data}


def said(shown: dict[str, Any]) -> str:
    """A decoded record on one line."""
    if "type" in shown:
        parts = [shown["type"]]
        if "key" in shown:
            parts.append(" ".join(f"{name}={value}" for name, value in shown["key"].items()))
        data = shown.get("data")
        parts.append("(taken back)" if data is None and "key" in shown else _brief(data))
        return "  ".join(each for each in parts if each)
    text = f"{shortened(shown['key'])} -> {shortened(shown['value'])}"
    if "headers" in shown:
        text += "  " + " ".join(f"{name}={shortened(value, 50)}" for name, value in shown["headers"])
    return text


def _brief(data: Any) -> str:
    if not isinstance(data, dict):
        return ""
    told = {name: value for name, value in data.items() if value not in (None, [], "", -1, {})}
    return " ".join(f"{name}={_word(value)}" for name, value in told.items())


def _word(value: Any) -> str:
    return shortened(value if isinstance(value, str) else json.dumps(value, separators=(",", ":")), 120)


@dataclass(slots=True)
class Bookmarks:
    """The committed offsets that a partition of `__consumer_offsets` adds up to: the last of a key counts."""

    offsets: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    # Offsets committed in a transaction count from its commit marker on.
    _pending: dict[int, dict[tuple[str, str, int], Any]] = field(default_factory=dict)

    def apply(self, header: BatchHeader, record: Record) -> None:
        if header.is_control:
            pending = self._pending.pop(header.producer_id, {})
            if control_type(record.key) is ControlRecordType.COMMIT:
                for place, value in pending.items():
                    self._put(place, value)
            return
        entry = None if record.key is None else group_records.read(LogRecord(record.key, record.value))
        if entry is None:
            return
        key = entry.key
        if isinstance(key, stored_groups.OffsetCommitKey | stored_groups.LegacyOffsetCommitKey):
            place = (key.group, key.topic, key.partition)
            if header.is_transactional:
                self._pending.setdefault(header.producer_id, {})[place] = entry.value
            else:
                self._put(place, entry.value)
        elif isinstance(key, stored_groups.GroupMetadataKey):
            self._put_group(
                key.group,
                entry.value,
                lambda v: f"classic, generation {v.generation}, members: {len(v.members)}",
            )
        elif isinstance(key, stored_groups.ConsumerGroupMetadataKey):
            self._put_group(key.group_id, entry.value, lambda v: f"consumer, epoch {v.epoch}")
        elif isinstance(key, stored_groups.ShareGroupMetadataKey):
            self._put_group(key.group_id, entry.value, lambda v: f"share, epoch {v.epoch}")

    def _put(self, place: tuple[str, str, int], value: Any) -> None:
        if value is None:
            self.offsets.pop(place, None)
        else:
            self.offsets[place] = value

    def _put_group(self, group: str, value: Any, describe: Any) -> None:
        if value is None:
            self.groups.pop(group, None)
        else:
            self.groups[group] = describe(value)


def each_record(
    directory: PartitionDirectory, summaries: list[SegmentSummary]
) -> list[tuple[FoundBatch, Record]]:
    """Every readable record of a partition; internal ones are small, so they are read whole."""
    from ottla.protocol.batch import read_records

    found = []
    for segment, summary in zip(directory.segments, summaries, strict=True):
        for batch in summary.batches:
            try:
                records = read_records(read_batch(segment.log, batch))
            except KafkaError:
                continue
            found += [(batch, record) for record in records]
    return found
