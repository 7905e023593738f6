"""Regular expressions that members subscribe by: matched against topic names, in time that cannot explode.

Kafka takes RE2's syntax, which leaves out what makes matching expensive: backreferences and lookaround.
Python's own `re` matches by trying, and takes longer than anybody lives for `(a+)+b` and a topic named
`aaaa...`: a member could stop the broker with it. So an expression becomes a set of states (Thompson's
construction), and of these a table, row by row, as names are matched: each character of a name is looked at
once.

A topic name is made of 65 different characters. A class of characters is a number with a bit for each of
them, and whatever else an expression mentions matches nothing. `syntax.py` knows what an expression means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from ottla.groups.consumer.syntax import (
    ALPHABET,
    WORD,
    Alternation,
    Assertion,
    Chars,
    Node,
    Repetition,
    parse,
)
from ottla.protocol.errors import InvalidRegularExpression

MAX_STATES: Final = 5_000  # of one expression; `x{1000}` has a thousand
MAX_TABLE: Final = 2_000  # rows; then the table is begun anew
MAX_STEPS: Final = 2_000_000  # in filling tables for one question: about half a second

_BIT: Final = {character: 1 << index for index, character in enumerate(ALPHABET)}
_START, _AFTER_WORD, _AFTER_OTHER = range(3)
_END: Final = 0  # a character without a bit


class _State(NamedTuple):
    """Where one can be in an expression: before a character, before a condition, or free to go on."""

    chars: int  # the characters that lead to `ways`; 0 when none does
    assertion: str  # a condition that leads to `ways`; empty when there is none
    ways: tuple[int, ...]


_ACCEPT: Final = 0


class Pattern:
    """An expression that is made to match whole names."""

    def __init__(self, text: str) -> None:
        self._states: list[_State] = [_State(0, "", ())]
        self._first = self._build(parse(text), _ACCEPT)
        self._steps = 0
        self._clear()

    def matching(self, names: Iterable[str]) -> Iterator[str]:
        """Those of the names that match; raises InvalidRegularExpression when it takes too much work."""
        self._steps = 0
        return (name for name in names if self._matches(name))

    def matches(self, name: str) -> bool:
        self._steps = 0
        return self._matches(name)

    # The table

    def _clear(self) -> None:
        self._rows: list[dict[str, int]] = []
        self._accepts: list[bool] = []
        self._row_of: dict[tuple[frozenset[int], int], int] = {}
        self._row_states: list[tuple[frozenset[int], int]] = []
        self._row(frozenset({self._first}), _START)

    def _row(self, states: frozenset[int], behind: int) -> int:
        key = states, behind
        row = self._row_of.get(key)
        if row is None:
            row = self._row_of[key] = len(self._rows)
            self._rows.append({})
            self._row_states.append(key)
            self._accepts.append(_ACCEPT in self._reached(states, behind, _END))
        return row

    def _matches(self, name: str) -> bool:
        row, rows = 0, self._rows
        for character in name:
            following = rows[row].get(character)
            if following is None:
                if len(rows) > MAX_TABLE:
                    states = self._row_states[row]
                    self._clear()
                    rows, row = self._rows, self._row(*states)
                following = rows[row][character] = self._step(row, character)
            row = following
        return self._accepts[row]

    def _step(self, row: int, character: str) -> int:
        states, behind = self._row_states[row]
        bit = _BIT.get(character, _END)
        after = frozenset(
            way
            for state in self._reached(states, behind, bit)
            if self._states[state].chars & bit
            for way in self._states[state].ways
        )
        return self._row(after, _AFTER_WORD if bit & WORD else _AFTER_OTHER)

    def _reached(self, states: frozenset[int], behind: int, ahead: int) -> set[int]:
        """The states that need a character to go on, and the accepting one, between two characters."""
        todo, seen = list(states), set(states)
        while todo:
            state = self._states[todo.pop()]
            if not state.chars and (not state.assertion or _holds(state.assertion, behind, ahead)):
                new = [way for way in state.ways if way not in seen]
                seen.update(new)
                todo += new
        self._steps += len(seen)
        if self._steps > MAX_STEPS:
            raise InvalidRegularExpression("The regular expression takes too long to match.")
        return seen

    # The states

    def _add(self, *ways: int, chars: int = 0, assertion: str = "") -> int:
        if len(self._states) >= MAX_STATES:
            raise InvalidRegularExpression("The regular expression is too large.")
        self._states.append(_State(chars, assertion, ways))
        return len(self._states) - 1

    def _build(self, node: Node, after: int) -> int:
        """The state to be in before a node, so as to be in `after` after it."""
        match node:
            case Chars(mask):
                # A class that no topic name can fulfil is a state without a way on.
                return self._add(after, chars=mask) if mask else self._add()
            case Assertion(kind):
                return self._add(after, assertion=kind)
            case Alternation(ways):
                return self._add(*(self._build(way, after) for way in ways))
            case Repetition():
                return self._build_repetition(node, after)
            case list():
                for part in reversed(node):
                    after = self._build(part, after)
        return after

    def _build_repetition(self, node: Repetition, after: int) -> int:
        if node.most is None:
            loop = self._add()
            again = self._build(node.node, loop)
            self._states[loop] = _State(0, "", (again, after))
            first = loop
        else:
            first = after
            for _ in range(node.most - node.least):
                first = self._add(self._build(node.node, first), after)
        for _ in range(node.least):
            first = self._build(node.node, first)
        return first


def _holds(assertion: str, behind: int, ahead: int) -> bool:
    if assertion == "start":
        return behind == _START
    if assertion == "end":
        return ahead == _END
    is_boundary = (behind == _AFTER_WORD) != bool(ahead & WORD)
    return is_boundary == (assertion == "boundary")


@lru_cache(maxsize=256)
def compiled(text: str) -> Pattern:
    """The pattern of an expression; raises InvalidRegularExpression when it is none."""
    return Pattern(text)
