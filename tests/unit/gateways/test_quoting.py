"""How words are written in a line of the text door."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.gateways.quoting import next_word, quoted, unquoted, whole_line
from ottla.protocol.errors import InvalidRequest


@given(
    st.none()
    | st.binary(max_size=40)
    | st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace"))
)
def test_what_is_written_as_a_word_reads_back_as_the_same_bytes(data: bytes | None) -> None:
    word, rest = next_word(quoted(data), keep_quotes=True)
    assert (unquoted(word), rest) == (data, "")


@given(st.none() | st.binary(max_size=40))
def test_a_value_at_the_end_of_a_line_reads_back_too(data: bytes | None) -> None:
    written = quoted(data, spaces=True)
    assert "\n" not in written and "\r" not in written
    assert unquoted(written) == data


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (None, "-"),
        (b"-", '"-"'),
        (b"", '""'),
        (b"plain", "plain"),
        (b"two words", '"two words"'),
        (b'say "hi"', r'"say \"hi\""'),
        (b"a\nb\tc\\", r'"a\nb\tc\\"'),
        (b"\xff\x00", r'"\xff\x00"'),
        ("žluť".encode(), "žluť"),
    ],
)
def test_words_are_plain_where_they_can_be(data: bytes | None, word: str) -> None:
    assert quoted(data) == word
    assert unquoted(word) == data


def test_the_last_word_may_have_spaces_without_quotes() -> None:
    assert quoted(b"Hello big World", spaces=True) == "Hello big World"


@pytest.mark.parametrize(
    ("line", "inside"),
    [
        ('"CONSUME Payments 0 0"', "CONSUME Payments 0 0"),
        ("'CONSUME Payments 0 0'", "CONSUME Payments 0 0"),
        ("CONSUME Payments 0 0", "CONSUME Payments 0 0"),
        ('PRODUCE Payments "k" "v"', 'PRODUCE Payments "k" "v"'),
        ('"', '"'),
    ],
)
def test_a_line_may_be_quoted_as_a_whole(line: str, inside: str) -> None:
    assert whole_line(line) == inside


@pytest.mark.parametrize("line", ['"open', '"a"b', r'"\q"'])
def test_quotes_that_do_not_fit_are_refused(line: str) -> None:
    with pytest.raises(InvalidRequest):
        next_word(line)
