"""Java property files, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.properties import parse_properties, write_properties
from ottla.config.settings import ConfigError


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=b", {"a": "b"}),
        ("a = b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\t=\tb c ", {"a": "b c "}),
        ("  a=b\n\n\n", {"a": "b"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("# a=b\n! c=d\n  # e=f", {}),
        ("a=b # not a comment", {"a": "b # not a comment"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=one,\\\n    two,\\\n    three", {"a": "one,two,three"}),
        ("a=b\\\n# still the value", {"a": "b# still the value"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=end\\", {"a": "end"}),
        ("a\\ b\\=c\\:d=e", {"a b=c:d": "e"}),
        ("a=\\t\\n\\r\\f\\q", {"a": "\t\n\r\fq"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\ud83d\\ude00", {"a": "\N{GRINNING FACE}"}),
        ("a=one\x85two\u2028three", {"a": "one\x85two\u2028three"}),
    ],
)
def test_reads_what_java_reads(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


def test_a_broken_escape_names_its_line() -> None:
    with pytest.raises(ConfigError, match=r"^line 3: \\u needs four hexadecimal digits"):
        parse_properties("a=b\n\nc=\\u12")


def test_writes_in_order_with_a_comment() -> None:
    text = write_properties({"version": "1", "node.id": "2", "a b": " c\n"}, comment="made today\nby hand")

    assert text == "#made today\n#by hand\nversion=1\nnode.id=2\na\\ b=\\ c\\n\n"


_texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(_texts, _texts))
def test_what_is_written_reads_back(properties: dict[str, str]) -> None:
    assert parse_properties(write_properties(properties)) == properties


@given(st.text())
def test_noise_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        properties = parse_properties(text)
    except ConfigError:
        return
    assert all(isinstance(name, str) and isinstance(value, str) for name, value in properties.items())
