"""Regular expressions of subscriptions: RE2's syntax, whole names, and no way to take for ever."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.groups.consumer.pattern import MAX_TABLE, Pattern, compiled
from ottla.groups.consumer.syntax import ALPHABET, MAX_DEPTH, MAX_LENGTH
from ottla.protocol.errors import InvalidRegularExpression


@pytest.mark.parametrize(
    ("regex", "matching", "others"),
    [
        ("orders", ["orders"], ["orders2", "my-orders", "Orders"]),
        ("orders-.*", ["orders-", "orders-1.a_b"], ["orders", "x-orders-1"]),
        ("a|b|", ["a", "b", ""], ["ab"]),
        ("(a|b)*c", ["c", "abac"], ["ab"]),
        ("a?b+", ["b", "abb"], ["a", "aab"]),
        ("a*?b+?c??", ["b", "aabbc"], ["c"]),
        ("x{2}", ["xx"], ["x", "xxx"]),
        ("x{2,}", ["xx", "xxxx"], ["x"]),
        ("x{1,3}y", ["xy", "xxxy"], ["y", "xxxxy"]),
        ("(ab){0}c", ["c"], ["abc"]),
        ("[a-c_]+", ["abc_"], ["d", ""]),
        ("[^a-c]+", ["xyz.-"], ["xay"]),
        ("[]a]", ["a"], ["]"]),
        ("[a-]+", ["a-a"], ["b"]),
        (r"[\d.]+", ["1.2"], ["a"]),
        (r"\w+\.\d\d", ["a_b.12"], ["a-b.12", "a.1"]),
        (r"\D\W\S", ["a-b", "a.1"], ["1-b", "aab"]),
        (r"a\.b\-c", ["a.b-c"], ["aXb-c"]),
        (r"\x61\x{62}\143", ["abc"], ["abd"]),
        (r"\Qa.b\E*", ["a.", "a.bb"], ["axb"]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        (r"\pL+\p{Nd}\P{L}", ["ab1.", "a12"], ["ab1c"]),
        (r"\p{Latin}\p{^Lu}\p{Greek}?", ["ab", "a1"], ["aB"]),
        ("[[:upper:]][[:^digit:]]", ["AB", "A."], ["a1", "A1"]),
        ("(?i)Orders", ["ORDERS", "orders"], ["order"]),
        ("a(?i)b", ["ab", "aB"], ["Ab"]),
        ("(?i:a)b", ["ab", "Ab"], ["aB"]),
        ("(?i)a(?-i)b", ["Ab"], ["AB"]),
        ("((?i)a)b", ["Ab"], ["AB"]),
        ("(?:ab)+(?P<name>c)(?<other>d)", ["ababcd"], ["abc"]),
        ("(?s)a.(?m)^", [], ["ab"]),
        ("^a$", ["a"], ["ab"]),
        (r"\Aa\z", ["a"], ["ab"]),
        ("a^b", [], ["ab"]),
        (r"a\b\.b\B_", ["a.b_"], ["a.b."]),
        (r"\bab\b", ["ab"], []),
        ("a{", ["a"][:0], ["a"]),
        ("a{,2}", [], ["a", "aa"]),
        ("日本|a", ["a"], ["日本"]),
    ],
)
def test_whole_names_match(regex: str, matching: list[str], others: list[str]) -> None:
    pattern = Pattern(regex)

    assert [name for name in matching if not pattern.matches(name)] == []
    assert [name for name in others if pattern.matches(name)] == []


@pytest.mark.parametrize(
    "regex",
    [
        "(",
        ")",
        "a)",
        "(a",
        "[a",
        "[",
        "[z-a]",
        "[[:nothing:]]",
        "*",
        "a|*",
        "a**",
        "a+*",
        "a{2}{3}",
        "a{1001}",
        "a{3,2}",
        "\\",
        r"\1",
        r"(a)\1",
        r"\k<a>",
        r"\Z",
        r"\x{110000}",
        r"\xg1",
        r"\p{Nothing9}",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?<!a)",
        "(?>a)",
        "(?P=name)",
        "(?P<a>x)(?P<a>y)",
        "(?P<>x)",
        "(?x)a",
        "(?)",
        "(?-)",
        "(?i-)",
        "(?",
        "a" * (MAX_LENGTH + 1),
        "(" * (MAX_DEPTH + 1) + ")" * (MAX_DEPTH + 1),
        "((a{100}){100}){100}",
    ],
)
def test_what_re2_refuses_is_refused(regex: str) -> None:
    with pytest.raises(InvalidRegularExpression):
        Pattern(regex)


def test_what_makes_others_try_for_ever_is_answered_at_once() -> None:
    assert not Pattern("(a+)+b").matches("a" * 249)
    assert not Pattern("(a|aa)+b").matches("a" * 249)
    assert not Pattern("a*a*a*a*a*a*a*a*b").matches("a" * 249)
    assert Pattern("(a?){200}a{200}").matches("a" * 249)


def test_a_table_that_grows_too_large_is_begun_anew() -> None:
    """Which of the last twelve characters were an `a` takes 4096 rows to remember."""
    pattern = Pattern("[ab]*a[ab]{11}")
    names = [format(number, "016b").replace("0", "b").replace("1", "a") for number in range(0, 65_536, 7)]

    found = set(pattern.matching(names))

    assert found == {name for name in names if name[-12] == "a"}
    assert len(pattern._rows) <= MAX_TABLE + 17


def test_work_without_end_is_refused() -> None:
    pattern = Pattern("[ab]*a[ab]{200}")
    names = (
        format(pow(3, 1_000 + number, 2**240), "0240b").translate({48: "b", 49: "a"}) for number in range(400)
    )

    with pytest.raises(InvalidRegularExpression):
        list(pattern.matching(names))


def test_an_expression_is_compiled_once() -> None:
    assert compiled("once.*") is compiled("once.*")


# Expressions that RE2 and Python's re understand alike.
atoms = st.sampled_from(
    ["a", "b", "1", ".", r"\.", "[ab]", "[^a]", r"\d", r"\w", r"\W", "-", "_", r"\b", "^", "$"]
)


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        inner.map("({})".format),
        st.tuples(inner, operators).map(lambda both: f"(?:{both[0]}){both[1]}"),
    )


@settings(max_examples=500)
@given(st.recursive(atoms, combined, max_leaves=8), st.lists(st.text("ab1.-_", max_size=7), max_size=6))
def test_pythons_re_agrees(regex: str, names: list[str]) -> None:
    theirs = re.compile(regex)

    assert list(Pattern(regex).matching(names)) == [name for name in names if theirs.fullmatch(name)]


@given(st.text(st.sampled_from(ALPHABET + "()[]{}|*+?\\^$.,:<>=!PpQEdwsx-i"), max_size=30))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    with suppress(InvalidRegularExpression):
        Pattern(text).matches("some-topic.1")
