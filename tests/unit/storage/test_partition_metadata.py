"""partition.metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.core.ids import Uuid
from ottla.storage.partition_metadata import (
    PARTITION_METADATA,
    PartitionMetadataError,
    format_partition_metadata,
    parse_partition_metadata,
    read_partition_metadata,
)

TOPIC_ID = Uuid.parse("r6-V3gr2R3e7KizL8v4SxA")


def test_the_text_is_the_one_kafka_writes() -> None:
    assert format_partition_metadata(TOPIC_ID) == b"version: 0\ntopic_id: r6-V3gr2R3e7KizL8v4SxA"
    assert len(format_partition_metadata(TOPIC_ID)) == 43


def test_what_was_written_reads_back(tmp_path: Path) -> None:
    assert read_partition_metadata(str(tmp_path)) is None
    (tmp_path / PARTITION_METADATA).write_bytes(format_partition_metadata(TOPIC_ID))
    assert read_partition_metadata(str(tmp_path)) == TOPIC_ID


@pytest.mark.parametrize("left", [b"", b"\0" * 43])
def test_what_a_power_loss_leaves_of_it_is_as_good_as_nothing(left: bytes) -> None:
    assert parse_partition_metadata(left) is None


@pytest.mark.parametrize(
    "text",
    [
        b"version: 1\ntopic_id: r6-V3gr2R3e7KizL8v4SxA",
        b"version: 0\n",
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"topic_id: r6-V3gr2R3e7KizL8v4SxA",
    ],
)
def test_anything_else_is_an_error(text: bytes) -> None:
    with pytest.raises(PartitionMetadataError):
        parse_partition_metadata(text)
