"""How a record is printed."""

from __future__ import annotations

import json

import pytest

from ottla.cli.formatting import json_line, parse_format
from ottla.cli.running import Misused
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record

PARTITION = TopicPartition("orders", 3)
RECORD = Record(42, 1_700_000_000_123, b"k", b"value", [("a", b"1"), ("b", None)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%t %p %o %k %v\\n", b"orders 3 42 k value\n"),
        ("%s|%S|%V|%K", b"value|5|5|1"),
        ("%T %d", b"1700000000123 2023-11-14T22:13:20.123Z"),
        ("%h", b"a=1,b="),
        ("100%%\\t\\r\\0\\\\\\x41", b"100%\t\r\x00\\A"),
        ("plain é", "plain é".encode()),
        ("\udcff%p", b"\xff3"),
        ("", b""),
    ],
)
def test_formats(text: str, expected: bytes) -> None:
    assert parse_format(text)(PARTITION, RECORD) == expected


def test_null_prints_nothing_and_has_size_minus_one() -> None:
    assert parse_format("[%k][%v]%K %V")(PARTITION, Record(0, 0)) == b"[][]-1 -1"
    assert parse_format("%d")(PARTITION, Record(0, -1)) == b"-"


@pytest.mark.parametrize(
    ("text", "wrong"), [("%q", "%q"), ("\\q", r"\\q"), ("50%", "% at the end"), ("\\", r"\\ at the end")]
)
def test_what_is_no_directive_is_told(text: str, wrong: str) -> None:
    with pytest.raises(Misused, match=f"there is no {wrong}"):
        parse_format(text)


def test_bytes_pass_through_unchanged() -> None:
    noise = bytes(range(256))

    assert parse_format("%v")(PARTITION, Record(value=noise)) == noise


def test_json_has_every_field() -> None:
    assert json.loads(json_line(PARTITION, RECORD)) == {
        "topic": "orders",
        "partition": 3,
        "offset": 42,
        "timestamp": 1_700_000_000_123,
        "key": "k",
        "value": "value",
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
    }


def test_json_of_what_is_no_text_is_base64() -> None:
    line = json_line(PARTITION, Record(1, 0, None, b"\xff\x00", [("h\udcff", b"\xfe")]))
    found = json.loads(line)

    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert (found["key"], found["value_base64"]) == (None, "/wA=")
    assert found["headers"] == [{"key": "h�", "value_base64": "/g=="}]
