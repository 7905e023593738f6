"""Patterns of the names of properties, beside Python's own where both read a pattern alike."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.registry.formats.json_schema.matching import matching
from ottla.registry.formats.json_schema.patterns import compiled


def found(pattern: str, name: str) -> bool:
    known = compiled(pattern)
    assert known is not None, pattern
    return known.found_in(name)


ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "c",
        ".",
        "[ab]",
        "[^a]",
        "[a-b]",
        "\\d",
        "\\w",
        "\\.",
        "^",
        "$",
        "\\b",
        "",
        "[\\dab-]",
        "\\x61",
    ]
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{1,}", "{0,2}"])).map(
            lambda parts: f"({parts[0]}){parts[1]}"
        ),
        inner.map(lambda part: f"(?:{part})"),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.text("abc.1 -", max_size=8))
def test_a_pattern_is_found_where_python_finds_it(pattern: str, name: str) -> None:
    assert found(pattern, name) == (re.search(pattern, name) is not None)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^S_", "S_name", "N_S_"),
        ("_id$", "order_id", "order_ids"),
        ("^[a-zA-Z][a-zA-Z0-9_-]*$", "A-1", "1a"),
        ("^\\p{Lu}", "Ärger", "ärger"),
        ("^\\P{L}+$", "12", "1a2"),
        ("^(?<year>[0-9]{4})$", "2024", "24"),
        ("^\\d+$", "12", "\u0661\u0662"),
        ("^[^\\s]+$", "ab", "a b"),
        ("^a{2,3}$", "aaa", "aaaa"),
        ("[]a]", "]", "b"),
        ("^(foo|bar)\\.baz$", "bar.baz", "bar_baz"),
        ("\\u0041", "xA", "a"),
        ("", "anything", None),
    ],
)
def test_a_pattern_matches(pattern: str, yes: str, no: str | None) -> None:
    assert found(pattern, yes)
    assert no is None or not found(pattern, no)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)b", "(?<!a)b", "(a)\\1", "a++", "(?i)a", "(", ")", "[", "[a", "a{", "*", "a**", "[b-a]", "\\",
        "\\y", "(a{1000}){1000}", "((){9999}){9999}", "(" * 50 + ")" * 50, "a" * 5000, "[a&&b]",
        "\\p{IsAlphabetic}", "a{5,2}", "[" + "ab" * 200 + "]", "|" * 20_000,
    ],
)  # fmt: skip
def test_what_is_not_understood_is_no_pattern(pattern: str) -> None:
    assert compiled(pattern) is None


def test_a_name_of_great_length_matches_nothing() -> None:
    assert not found("a", "a" * 501)


# Which of one side goes with which of the other is decided for all of them together.


@given(st.lists(st.lists(st.integers(0, 4), unique=True), max_size=5))
def test_no_matching_is_larger(edges: list[list[int]]) -> None:
    matched = matching(edges)
    assert all(right in edges[left] for left, right in matched.items())
    assert len(set(matched.values())) == len(matched)
    choices = product(*[[None, *each] for each in edges])
    assert len(matched) == max(
        sum(each is not None for each in choice)
        for choice in choices
        if len({each for each in choice if each is not None}) == sum(each is not None for each in choice)
    )
