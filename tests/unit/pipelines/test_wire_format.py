from __future__ import annotations

import pytest

from ottla.pipelines.wire_format import NotWireFormat, message_indexes, schema_id


def test_the_id_is_four_bytes_after_the_magic_byte() -> None:
    assert schema_id(b"\0\0\0\1\2rest") == 258


@pytest.mark.parametrize("record", [b"", b"\0\0\0\1", b"\1\0\0\0\1", b'{"id": 1}'])
def test_what_is_no_wire_format_is_refused(record: bytes) -> None:
    with pytest.raises(NotWireFormat):
        schema_id(record)


@pytest.mark.parametrize(
    ("indexes", "expected"),
    [(b"\0", (0,)), (b"\2\2", (1,)), (b"\4\2\0", (1, 0)), (b"\2\x80\2", (128,)), (b"\6\0\2\4", (0, 1, 2))],
)
def test_message_indexes_are_zigzag_varints_and_a_single_zero_is_short_for_the_first(
    indexes: bytes, expected: tuple[int, ...]
) -> None:
    record = b"\0\0\0\0\1" + indexes + b"payload"
    found, start = message_indexes(record)
    assert found == expected
    assert record[start:] == b"payload"


@pytest.mark.parametrize("indexes", [b"", b"\2", b"\1", b"\2\1", b"\xff\xff\xff\xff\xff\1", b"\x84\2"])
def test_indexes_that_cannot_be_are_refused(indexes: bytes) -> None:
    with pytest.raises(NotWireFormat):
        message_indexes(b"\0\0\0\0\1" + indexes)
