"""`partition.metadata`: the topic id of a partition directory, which tells a recreated topic from the old."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.core.ids import ZERO_UUID, Uuid

PARTITION_METADATA = "partition.metadata"
CONTENT = re.compile(rb"version:\s+(\d+)\s*\ntopic_id:\s+([A-Za-z0-9_-]{22})\s*")


class PartitionMetadataError(ValueError):
    """The file does not name a topic id."""


def format_partition_metadata(topic_id: Uuid) -> bytes:
    """43 bytes. There is no newline at the end: Kafka writes none."""
    return f"version: 0\ntopic_id: {topic_id}".encode()


def parse_partition_metadata(data: bytes) -> Uuid | None:
    """The topic id, or None when a crash left the file empty or full of zeros."""
    if not data.strip(b"\0"):
        return None
    match = CONTENT.fullmatch(data)
    if match is None:
        raise PartitionMetadataError(f"not a partition.metadata: {data[:60]!r}")
    if match[1] != b"0":
        raise PartitionMetadataError(f"partition.metadata version {match[1].decode()} is unknown")
    topic_id = Uuid.parse(match[2].decode())
    if topic_id == ZERO_UUID:
        raise PartitionMetadataError("the topic id is all zeros")
    return topic_id


def read_partition_metadata(directory: str) -> Uuid | None:
    """The topic id of a partition directory, None when it has none yet."""
    try:
        data = Path(directory, PARTITION_METADATA).read_bytes()
    except FileNotFoundError:
        return None
    return parse_partition_metadata(data)
