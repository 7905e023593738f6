"""Record batches: what is written reads back, and independent implementations agree."""

from __future__ import annotations

import pytest

from ottla.protocol.batch import Record, crc_ok, read_header, read_records, write_batch

RECORDS = [
    Record(0, 1_700_000_000_000, b"key", b"value", [("trace", b"1"), ("none", None)]),
    Record(1, 1_699_999_999_000, None, b"", []),
    Record(2, 1_700_000_000_500, b"", None, [("", b"")]),
]


@pytest.mark.parametrize("codec", range(5))
def test_records_read_back_as_they_were_written(codec: int) -> None:
    batch = write_batch(RECORDS, codec=codec)
    assert crc_ok(batch)
    assert read_header(batch).codec == codec
    assert read_header(batch).max_timestamp == 1_700_000_000_500
    assert read_records(batch) == RECORDS
