"""File by file, what a log directory holds: the reason for each file, and its real figures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ottla.cli.log_reasons import CHECKPOINTS, WHY
from ottla.cli.log_records import Bookmarks, decoded, each_record, said
from ottla.cli.output import in_bytes, plural
from ottla.cli.times import iso
from ottla.core.types import CLUSTER_METADATA, CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ottla.protocol.batch import read_records
from ottla.protocol.compression import NAMES as CODEC_NAMES
from ottla.protocol.errors import KafkaError
from ottla.storage.checkpoints import CheckpointError, parse_offsets
from ottla.storage.clean_shutdown import parse_clean_shutdown
from ottla.storage.epochs import CorruptEpochs, parse_epochs
from ottla.storage.inspect.batches import Walk, read_batch
from ottla.storage.inspect.directory import Kind, PartitionDirectory, base_offset_of, kind_of
from ottla.storage.inspect.indexes import read_offset_index, read_time_index, read_transaction_index
from ottla.storage.inspect.summary import SegmentSummary, summarize
from ottla.storage.meta_properties import MetaPropertiesError, parse_meta_properties
from ottla.storage.partition_metadata import PartitionMetadataError, parse_partition_metadata
from ottla.storage.producer_snapshot import CorruptSnapshot, decode_snapshot

# What Kafka puts an entry of the offset index after, unless a topic says otherwise.
INDEX_INTERVAL_BYTES: Final = 4096
# Rows of a table; more of them are only counted.
ROWS_SHOWN: Final = 10


@dataclass(slots=True)
class FileReport:
    name: str
    kind: str
    size: int
    why: str
    says: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        columns, rows = found.pop("columns"), found.pop("rows")
        found["entries"] = [dict(zip(columns, row, strict=True)) for row in rows]
        return found


def report(path: Path, summary: SegmentSummary | None = None) -> FileReport:
    """One file explained. Damage is reported, never raised."""
    kind = kind_of(path.name)
    why = CHECKPOINTS.get(path.name, WHY.get(kind, ""))
    made = FileReport(path.name, kind.value, path.stat().st_size, why)
    tell: Callable[[FileReport, Path], None] | None = _TELLERS.get(kind)
    try:
        if kind is Kind.LOG and summary is not None:
            _tell_log(made, summary)
        elif tell is not None:
            tell(made, path)
    except _DAMAGE as error:
        made.problem = str(error)
    return made


_DAMAGE: Final = (
    CheckpointError,
    CorruptEpochs,
    CorruptSnapshot,
    KafkaError,
    MetaPropertiesError,
    PartitionMetadataError,
    ValueError,
)


def _tell_log(made: FileReport, summary: SegmentSummary) -> None:
    made.problem = summary.problem
    if not summary.batches:
        made.says.append(f"Empty so far; the next record will have offset {summary.base_offset}.")
    else:
        made.says.append(
            f"{plural(summary.records, 'record')} in {_batches(summary)}, offsets {summary.first_offset} "
            f"to {summary.last_offset}, {in_bytes(summary.size - summary.unwritten)}."
        )
        if summary.max_timestamp >= 0:
            made.says.append(f"From {iso(summary.first_timestamp)} to {iso(summary.max_timestamp)}.")
        codecs = ", ".join(f"{codec_name(codec)} {count}" for codec, count in summary.codecs.items())
        made.says.append(f"Compression of the batches: {codecs}.")
    if summary.control_batches or summary.transactional_batches:
        made.says.append(
            f"Batches of transactions: {summary.transactional_batches}, control batches: "
            f"{summary.control_batches}. These are markers: they take an offset, no consumer sees them."
        )
    if summary.unwritten:
        made.says.append(f"{in_bytes(summary.unwritten)} at the end are set aside and not written yet.")


def codec_name(codec: int) -> str:
    return CODEC_NAMES[codec] if codec < len(CODEC_NAMES) else f"codec {codec}"


def _batches(summary: SegmentSummary) -> str:
    count = len(summary.batches)
    return f"{count:,} batch" if count == 1 else f"{count:,} batches"


def _tell_offset_index(made: FileReport, path: Path) -> None:
    index = read_offset_index(path, base_offset_of(path.name))
    made.problem = index.problem
    made.columns, made.rows = ["offset", "position"], [list(entry) for entry in index.entries]
    made.says.append(_count("entry", "entries", len(index.entries), 8, index.unused_bytes))
    if len(index.entries) > 1:
        first, last = index.entries[0], index.entries[-1]
        gap = (last[1] - first[1]) // (len(index.entries) - 1)
        made.says.append(f"On average one for every {in_bytes(gap)} of data.")
    elif not index.entries:
        log = path.with_suffix(".log")
        if log.exists() and log.stat().st_size > INDEX_INTERVAL_BYTES:
            made.says.append(
                "Its first batch needs none, and a running broker keeps the entries of the segment that it "
                "writes to in memory for a while."
            )
        else:
            made.says.append("The segment is too small to need one: a lookup reads it from its first byte.")


def _tell_time_index(made: FileReport, path: Path) -> None:
    index = read_time_index(path, base_offset_of(path.name))
    made.problem = index.problem
    made.columns = ["timestamp", "time", "offset"]
    made.rows = [[timestamp, iso(timestamp), offset] for timestamp, offset in index.entries]
    made.says.append(_count("entry", "entries", len(index.entries), 12, index.unused_bytes))


def _count(one: str, many: str, count: int, size: int, unused: int) -> str:
    said_ = f"{count:,} {one if count == 1 else many} of {size} bytes"
    return f"{said_}, and {in_bytes(unused)} set aside for more." if unused else f"{said_}."


def _tell_transactions(made: FileReport, path: Path) -> None:
    entries, made.problem = read_transaction_index(path)
    made.columns = ["producer id", "first offset", "abort marker at", "last stable offset"]
    made.rows = [list(entry) for entry in entries]
    made.says.append(plural(len(entries), "aborted transaction") + ".")


def _tell_producers(made: FileReport, path: Path) -> None:
    producers = decode_snapshot(path.read_bytes())
    made.columns = [
        "producer id",
        "epoch",
        "last sequence",
        "last offset",
        "last written",
        "transaction since",
    ]
    made.rows = [
        [
            each.id,
            each.epoch,
            each.last_sequence,
            each.last_offset,
            iso(each.timestamp),
            None if each.transaction_first_offset < 0 else each.transaction_first_offset,
        ]
        for each in producers
    ]
    made.says.append(f"{plural(len(producers), 'producer')} known at offset {base_offset_of(path.name)}.")


def _tell_epochs(made: FileReport, path: Path) -> None:
    made.columns = ["leader epoch", "start offset"]
    made.rows = [list(entry) for entry in parse_epochs(path.read_bytes())]
    made.says.append(f"{plural(len(made.rows), 'leader epoch')} so far.")


def _tell_partition(made: FileReport, path: Path) -> None:
    topic_id = parse_partition_metadata(path.read_bytes())
    made.says.append(f"Topic id {topic_id}." if topic_id else "Empty: the topic id was not written yet.")


def _tell_snapshot(made: FileReport, path: Path) -> None:
    kinds: Counter[str] = Counter()
    walk = Walk(path)
    for found in walk:
        for record in read_records(read_batch(path, found)):
            kinds[decoded(CLUSTER_METADATA, found.header, record).get("type", "?")] += 1
    made.problem = walk.problem
    made.columns, made.rows = ["record", "how many"], [[name, count] for name, count in kinds.most_common()]
    made.says.append(f"{plural(sum(kinds.values()), 'record')}.")


def _tell_quorum(made: FileReport, path: Path) -> None:
    state = json.loads(path.read_bytes())
    if not isinstance(state, dict):
        raise ValueError("it holds no object of JSON")
    made.says.append(
        f"Epoch {state.get('leaderEpoch')}, leader {state.get('leaderId')}, voted for {state.get('votedId')} "
        "(-1 is nobody)."
    )


def _tell_checkpoint(made: FileReport, path: Path) -> None:
    offsets = parse_offsets(path.read_bytes())
    made.columns = ["topic", "partition", "offset"]
    made.rows = [[topic, partition, offset] for (topic, partition), offset in sorted(offsets.items())]
    made.says.append(f"{plural(len(offsets), 'partition')}.")


def _tell_meta(made: FileReport, path: Path) -> None:
    meta = parse_meta_properties(path.read_bytes())
    made.says.append(f"Cluster {meta.cluster_id}, node {meta.node_id}, directory {meta.directory_id}.")


def _tell_clean(made: FileReport, path: Path) -> None:
    epoch = parse_clean_shutdown(path.read_bytes())
    made.says.append("Damaged: taken for a crash." if epoch is None else f"Written in broker epoch {epoch}.")


_TELLERS: Final = {
    Kind.OFFSET_INDEX: _tell_offset_index,
    Kind.TIME_INDEX: _tell_time_index,
    Kind.TRANSACTION_INDEX: _tell_transactions,
    Kind.PRODUCER_SNAPSHOT: _tell_producers,
    Kind.LEADER_EPOCHS: _tell_epochs,
    Kind.PARTITION_METADATA: _tell_partition,
    Kind.METADATA_SNAPSHOT: _tell_snapshot,
    Kind.QUORUM_STATE: _tell_quorum,
    Kind.OFFSET_CHECKPOINT: _tell_checkpoint,
    Kind.META_PROPERTIES: _tell_meta,
    Kind.CLEAN_SHUTDOWN: _tell_clean,
}


@dataclass(slots=True)
class Contents:
    """What the records of an internal topic add up to."""

    title: str
    columns: list[str]
    rows: list[list[Any]]


def summaries_of(directory: PartitionDirectory) -> list[SegmentSummary]:
    return [summarize(segment) for segment in directory.segments]


def contents(directory: PartitionDirectory, summaries: list[SegmentSummary]) -> list[Contents]:
    """The bookmarks, transactions or metadata in a partition of an internal topic; nothing for others."""
    topic = directory.topic
    if topic not in (CONSUMER_OFFSETS, TRANSACTION_STATE, CLUSTER_METADATA, SHARE_GROUP_STATE):
        return []
    records = each_record(directory, summaries)
    if topic == CONSUMER_OFFSETS:
        return _bookmarks(records)
    shown = [decoded(topic, found.header, record) for found, record in records]
    if topic == TRANSACTION_STATE:
        latest = {
            each["key"]["transactional_id"]: each["data"]
            for each in shown
            if "key" in each and "type" in each
        }
        rows = [
            [name, data["producer_id"], data["producer_epoch"], data["state"], ", ".join(data["partitions"])]
            for name, data in sorted(latest.items())
            if data is not None
        ]
        return [
            Contents(
                "Transactions", ["transactional id", "producer id", "epoch", "state", "partitions"], rows
            )
        ]
    rows = [[each["offset"], iso(each["timestamp"]), said(each)] for each in shown]
    title = "Metadata records" if topic == CLUSTER_METADATA else "Share-group records"
    return [Contents(title, ["offset", "time", "record"], rows)]


def _bookmarks(records: list[Any]) -> list[Contents]:
    bookmarks = Bookmarks()
    for found, record in records:
        bookmarks.apply(found.header, record)
    rows = [
        [group, topic, partition, value.offset, iso(value.commit_timestamp), value.metadata]
        for (group, topic, partition), value in sorted(bookmarks.offsets.items())
    ]
    made = [
        Contents("Bookmarks", ["group", "topic", "partition", "offset", "committed", "metadata"], rows),
    ]
    if bookmarks.groups:
        groups = [[group, what] for group, what in sorted(bookmarks.groups.items())]
        made.append(Contents("Groups", ["group", "state"], groups))
    return made
