"""How a pattern becomes steps, which `patterns` follows. Patterns are read as Java reads them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

# Bounds of patterns: of what is made of one, and of what it takes to make it.
MAX_STEPS = 2000
MAX_TEXT = 10_000
MAX_GROUPS = 40
MAX_IN_CLASS = 200

Test = Callable[[str], bool]
# A step takes a character, asks for a position, goes on at one or two other steps, or is the end.
Step = tuple[str, Test | str | None, int, int]
# A part of a pattern: given what follows it, it adds its steps and says where they begin.
Part = Callable[[int], int]

LINE_ENDS = "\n\r\u0085\u2028\u2029"
_CLASSES: dict[str, Test] = {
    "d": lambda c: "0" <= c <= "9",
    "w": lambda c: c.isascii() and (c.isalnum() or c == "_"),
    "s": lambda c: c in " \t\n\x0b\f\r",
}
_CHARACTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


class Undecided(Exception):
    """The pattern is not one that is understood here."""


class Parser:
    """Builds the steps from the end, so that what follows a part is known when the part is built. A part that
    is repeated is built as often as it is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0
        self.repetitions = 0
        self.steps: list[Step] = [("end", None, -1, -1)]

    def parse(self) -> int:
        if len(self.text) > MAX_TEXT:
            raise Undecided
        part = self._alternatives()
        if self.at < len(self.text):
            raise Undecided
        return part(0)

    def _step(self, what: str, detail: Test | str | None, first: int, second: int = -1) -> int:
        if len(self.steps) >= MAX_STEPS:
            raise Undecided
        self.steps.append((what, detail, first, second))
        return len(self.steps) - 1

    def _count(self) -> None:
        # What is repeated may be nothing, which makes no steps however often.
        self.repetitions += 1
        if self.repetitions > MAX_STEPS:
            raise Undecided

    def _alternatives(self) -> Part:
        branches = [self._sequence()]
        while self._accept("|"):
            branches.append(self._sequence())

        def build(following: int) -> int:
            begin = branches[-1](following)
            for branch in reversed(branches[:-1]):
                begin = self._step("go", None, branch(following), begin)
            return begin

        return build

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if len(parts) >= MAX_STEPS:
                raise Undecided
            parts.append(self._repeated(self._one()))

        def build(following: int) -> int:
            for part in reversed(parts):
                following = part(following)
            return following

        return build

    def _repeated(self, part: Part) -> Part:
        low, high = self._bounds()
        if (low, high) == (1, 1):
            return part
        if self._accept("+"):
            raise Undecided
        self._accept("?")  # Whether few or many are tried first does not change whether there is a match.
        if self.at < len(self.text) and self.text[self.at] in "*+?{":
            raise Undecided

        def build(following: int) -> int:
            if high is None:
                loop = self._step("go", None, following)
                self.steps[loop] = ("go", None, part(loop), following)
                begin = loop
            else:
                begin = following
                for _ in range(high - low):
                    self._count()
                    begin = self._step("go", None, part(begin), following)
            for _ in range(low):
                self._count()
                begin = part(begin)
            return begin

        return build

    def _bounds(self) -> tuple[int, int | None]:
        if self._accept("*"):
            return 0, None
        if self._accept("+"):
            return 1, None
        if self._accept("?"):
            return 0, 1
        if not self._accept("{"):
            return 1, 1
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at : max(end, self.at)].partition(",")
        if not _is_count(low) or (high and not _is_count(high)):
            raise Undecided
        self.at = end + 1
        bounds = int(low), int(high) if high else (None if comma else int(low))
        if bounds[1] is not None and bounds[1] < bounds[0]:
            raise Undecided
        return bounds

    def _one(self) -> Part:
        character = self._next()
        if character == "(":
            return self._group()
        if character in "^$":
            return lambda following: self._step("at", character, following)
        if character == "\\" and self.at < len(self.text) and self.text[self.at] in "bBAzZ":
            name = {"A": "^", "Z": "$"}.get(escape := self._next(), escape)
            return lambda following: self._step("at", name, following)
        if character in "*+?{":
            raise Undecided
        test: Test
        if character == ".":
            test = _in_line
        elif character == "[":
            test = self._class()
        elif character == "\\":
            test = self._escape()
        else:
            test = character.__eq__
        return lambda following: self._step("take", test, following)

    def _group(self) -> Part:
        self.groups += 1
        if self.groups > MAX_GROUPS:
            raise Undecided
        if self._accept("?"):
            if self._accept("<") and self.text[self.at : self.at + 1].isalpha():
                self.at = self.text.find(">", self.at) + 1 or len(self.text)
            elif self.text[self.at - 1] == "<" or not self._accept(":"):
                raise Undecided
        part = self._alternatives()
        if not self._accept(")"):
            raise Undecided
        return part

    def _escape(self) -> Test:
        character = self._next()
        if character.lower() in _CLASSES:
            inside = _CLASSES[character.lower()]
            return inside if character.islower() else lambda c: not inside(c)
        if character in "pP":
            return self._category(wanted=character == "p")
        literal = self._literal(character)
        return literal.__eq__

    def _literal(self, character: str) -> str:
        """The character that an escape stands for."""
        if character in "xu":
            length = 2 if character == "x" else 4
            digits = self.text[self.at : self.at + length]
            if len(digits) < length or any(c not in "0123456789abcdefABCDEF" for c in digits):
                raise Undecided
            self.at += length
            return chr(int(digits, 16))
        if character in _CHARACTERS:
            return _CHARACTERS[character]
        if character.isascii() and character.isalnum():
            raise Undecided
        return character

    def _category(self, *, wanted: bool) -> Test:
        """A general category of Unicode, as in \\p{Lu} or \\pL."""
        if self._accept("{"):
            end = self.text.find("}", self.at)
            name = self.text[self.at : max(end, self.at)].removeprefix("Is")
            self.at = end + 1
        else:
            name = self._next()
        if not 1 <= len(name) <= 2 or name[0] not in "LMNPSZC":
            raise Undecided
        return lambda c: unicodedata.category(c).startswith(name) == wanted

    def _class(self) -> Test:
        negated = self._accept("^")
        tests: list[Test] = []
        first = True
        while first or not self._accept("]"):
            first = False
            character = self._next()
            if character == "[" or (character == "&" and self.text[self.at : self.at + 1] == "&"):
                raise Undecided  # Classes inside of classes, and intersections of them.
            if character == "\\":
                escape = self._next()
                if escape.lower() in _CLASSES or escape in "pP":
                    self.at -= 1
                    tests.append(self._escape())
                    continue
                character = self._literal(escape)
            tests.append(self._range(character))
            if len(tests) > MAX_IN_CLASS:
                raise Undecided
        return lambda c: any(test(c) for test in tests) != negated

    def _range(self, low: str) -> Test:
        following = self.text[self.at : self.at + 2]
        if len(following) < 2 or following[0] != "-" or following[1] in "][":
            return low.__eq__
        self.at += 1
        high = self._next()
        if high == "\\":
            high = self._literal(self._next())
        if high < low:
            raise Undecided
        return lambda c: low <= c <= high

    def _next(self) -> str:
        if self.at >= len(self.text):
            raise Undecided
        self.at += 1
        return self.text[self.at - 1]

    def _accept(self, character: str) -> bool:
        if self.text.startswith(character, self.at):
            self.at += 1
            return True
        return False


def _is_count(digits: str) -> bool:
    return digits.isdecimal() and digits.isascii() and len(digits) <= 4


def _in_line(character: str) -> bool:
    return character not in LINE_ENDS
