"""RE2's syntax, as far as it can matter for topic names.

https://github.com/google/re2/wiki/Syntax says what there is. What RE2 refuses is refused: backreferences,
lookaround, atomic groups, possessive and doubled repetitions.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, hexdigits, punctuation, whitespace
from typing import Final

from ottla.protocol.errors import InvalidRegularExpression

ALPHABET: Final = ascii_letters + digits + "._-"
MAX_LENGTH: Final = 1_000  # of an expression
MAX_DEPTH: Final = 100  # of groups in groups
MAX_REPEAT: Final = 1_000  # RE2's own limit

_EVERYTHING: Final = (1 << len(ALPHABET)) - 1


def mask_of(characters: str) -> int:
    """The set of these characters, as far as topic names can have them."""
    return sum(1 << ALPHABET.index(each) for each in set(characters) if each in ALPHABET)


WORD: Final = mask_of(ascii_letters + digits + "_")

_PERL: Final = {"d": mask_of(digits), "s": 0, "w": WORD}
_POSIX: Final = {
    "alnum": mask_of(ascii_letters + digits),
    "alpha": mask_of(ascii_letters),
    "ascii": _EVERYTHING,
    "blank": 0,
    "cntrl": 0,
    "digit": mask_of(digits),
    "graph": _EVERYTHING,
    "lower": mask_of(ascii_lowercase),
    "print": _EVERYTHING,
    "punct": mask_of(punctuation),
    "space": mask_of(whitespace),
    "upper": mask_of(ascii_uppercase),
    "word": WORD,
    "xdigit": mask_of(hexdigits),
}
_CATEGORIES: Final = frozenset(
    major + minor
    for major, minors in {
        "C": "cfos",
        "L": "lmotu",
        "M": "cen",
        "N": "dlo",
        "P": "cdefios",
        "S": "ckmo",
        "Z": "lps",
    }.items()
    for minor in ("", *minors)
)
_SCRIPTS: Final = {"Any": _EVERYTHING, "Latin": mask_of(ascii_letters), "Common": mask_of(digits + "._-")}
_CONTROL: Final = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_ASSERTIONS: Final = {"A": "start", "z": "end", "b": "boundary", "B": "no boundary"}


@dataclass(frozen=True, slots=True)
class Chars:
    mask: int


@dataclass(frozen=True, slots=True)
class Assertion:
    kind: str  # start, end, boundary, no boundary


@dataclass(frozen=True, slots=True)
class Alternation:
    ways: list[Node]


@dataclass(frozen=True, slots=True)
class Repetition:
    node: Node
    least: int
    most: int | None  # None without end


Node = Chars | Assertion | Alternation | Repetition | list["Node"]  # a list is one after the other


def parse(text: str) -> Node:
    """Raises InvalidRegularExpression, with Kafka's message."""
    if len(text) > MAX_LENGTH:
        raise InvalidRegularExpression(
            f"SubscribedTopicRegex is longer than the {MAX_LENGTH} characters that are allowed."
        )
    parser = _Parser(text)
    node = parser.alternation()
    if parser.at < len(text):
        raise parser.wrong("unexpected )")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.ignores_case = False
        self.names: set[str] = set()

    def wrong(self, why: str) -> InvalidRegularExpression:
        return InvalidRegularExpression(
            f"SubscribedTopicRegex `{self.text}` is not a valid regular expression: {why}."
        )

    def take(self, prefix: str) -> bool:
        if self.text.startswith(prefix, self.at):
            self.at += len(prefix)
            return True
        return False

    def next(self, what: str) -> str:
        if self.at >= len(self.text):
            raise self.wrong(f"missing {what}")
        self.at += 1
        return self.text[self.at - 1]

    def until(self, end: str, what: str) -> str:
        stop = self.text.find(end, self.at)
        if stop < 0:
            raise self.wrong(f"missing {what}")
        found, self.at = self.text[self.at : stop], stop + len(end)
        return found

    # Structure

    def alternation(self) -> Node:
        ways = [self.sequence()]
        while self.take("|"):
            ways.append(self.sequence())
        return ways[0] if len(ways) == 1 else Alternation(ways)

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.take("\\Q"):
                end = self.text.find("\\E", self.at)
                stop = len(self.text) if end < 0 else end
                quoted = [self.literal(each) for each in self.text[self.at : stop]]
                self.at = min(stop + 2, len(self.text))
                if quoted:
                    parts += [*quoted[:-1], self.repeated(quoted[-1])]
                continue
            atom = self.atom()
            if atom is not None:
                parts.append(self.repeated(atom))
            elif self.at < len(self.text) and self.text[self.at] in "*+?":
                raise self.wrong(f"missing argument to repetition operator: `{self.text[self.at]}`")
        return parts

    def repeated(self, node: Node) -> Node:
        bounds = self.bounds()
        if bounds is None:
            return node
        self.take("?")  # lazy or not is the same when the whole name has to match
        if self.bounds() is not None:
            raise self.wrong("invalid nested repetition operator")
        return Repetition(node, *bounds)

    def bounds(self) -> tuple[int, int | None] | None:
        for operator, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(operator):
                return bounds
        if not self.text.startswith("{", self.at):
            return None
        stop = self.text.find("}", self.at)
        least, comma, most = self.text[self.at + 1 : max(stop, 0)].partition(",")
        if stop < 0 or not _is_number(least) or not (most == "" or _is_number(most)):
            return None  # then it is a brace
        self.at = stop + 1
        low = int(least)
        high = low if not comma else int(most) if most else None
        if max(low, high or 0) > MAX_REPEAT or (high is not None and high < low):
            raise self.wrong("invalid repeat count")
        return low, high

    # Atoms

    def atom(self) -> Node | None:
        """None for flags, which stand for nothing by themselves."""
        character = self.next("expression")
        match character:
            case "(":
                return self.group()
            case "[":
                return Chars(self.character_class())
            case ".":
                return Chars(_EVERYTHING)
            case "^":
                return Assertion("start")
            case "$":
                return Assertion("end")
            case "*" | "+" | "?":
                raise self.wrong(f"missing argument to repetition operator: `{character}`")
            case "\\":
                if self.at < len(self.text) and self.text[self.at] in _ASSERTIONS:
                    return Assertion(_ASSERTIONS[self.next("escape")])
                return Chars(self.folded(self.escape()))
        return self.literal(character)

    def literal(self, character: str) -> Chars:
        return Chars(self.folded(mask_of(character)))

    def folded(self, mask: int) -> int:
        if not self.ignores_case:
            return mask
        characters = [each for index, each in enumerate(ALPHABET) if mask >> index & 1]
        return mask | mask_of("".join(each.swapcase() for each in characters))

    def group(self) -> Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.wrong("expression nests too deeply")
        ignored_case = self.ignores_case
        if self.take("?P<") or self.take("?<"):
            name = self.until(">", "closing >")
            if not name or any(each not in ascii_letters + digits + "_" for each in name):
                raise self.wrong("invalid named capture")
            if name in self.names:
                raise self.wrong("duplicate capture group name")
            self.names.add(name)
        elif self.take("?") and not self.flags():
            self.depth -= 1
            return None  # the flags hold until the group around them ends
        node = self.alternation()
        if not self.take(")"):
            raise self.wrong("missing closing )")
        self.ignores_case = ignored_case
        self.depth -= 1
        return node

    def flags(self) -> bool:
        """Read the flags of a group; whether there is more to it."""
        value, is_empty = True, True
        while True:
            flag = self.next("closing )")
            if flag == "-" and value:
                value, is_empty = False, True
            elif flag in "imsU":
                is_empty = False
                if flag == "i":
                    self.ignores_case = value
            elif flag in ":)" and not (is_empty and (not value or flag == ")")):
                return flag == ":"
            else:
                raise self.wrong("invalid or unsupported Perl syntax")

    def escape(self) -> int:
        """The set of characters that an escape stands for."""
        character = self.next("character after \\")
        if character.lower() in _PERL:
            mask = _PERL[character.lower()]
            return mask if character.islower() else _EVERYTHING ^ mask
        if character in "pP":
            mask = self.unicode_class()
            return mask if character == "p" else _EVERYTHING ^ mask
        if character == "C":
            return _EVERYTHING
        return mask_of(self.escaped(character))

    def escaped(self, character: str) -> str:
        """The one character that an escape stands for."""
        if character in _CONTROL:
            return _CONTROL[character]
        if character == "x":
            number = self.until("}", "closing }") if self.take("{") else self.next("hex") + self.next("hex")
            if not number or len(number) > 6 or any(each not in hexdigits for each in number):
                raise self.wrong("invalid escape sequence")
            if int(number, 16) > 0x10FFFF:
                raise self.wrong("invalid escape sequence")
            return chr(int(number, 16))
        if character in "01234567":
            # One digit that is not zero would refer back to a group.
            number = character
            while len(number) < 3 and self.at < len(self.text) and self.text[self.at] in "01234567":
                number += self.next("octal")
            if character != "0" and len(number) == 1:
                raise self.wrong("invalid escape sequence")
            return chr(int(number, 8))
        if character.isascii() and character.isalnum():
            raise self.wrong("invalid escape sequence")
        return character

    def unicode_class(self) -> int:
        name = self.until("}", "closing }") if self.take("{") else self.next("character class")
        negated = name.startswith("^")
        name = name.removeprefix("^")
        if name in _CATEGORIES:
            mask = mask_of("".join(each for each in ALPHABET if unicodedata.category(each).startswith(name)))
        elif name in _SCRIPTS:
            mask = _SCRIPTS[name]
        elif name.isascii() and name.replace("_", "").isalpha() and name[:1].isupper() and len(name) > 2:
            mask = 0  # some other script, which topic names cannot be written in
        else:
            raise self.wrong("invalid character class range")
        return _EVERYTHING ^ mask if negated else mask

    def character_class(self) -> int:
        negated = self.take("^")
        mask = 0
        is_first = True
        while is_first or not self.take("]"):
            is_first = False
            if self.take("[:"):
                name = self.until(":]", "closing ]")
                known = _POSIX.get(name.removeprefix("^"))
                if known is None:
                    raise self.wrong("invalid character class range")
                mask |= _EVERYTHING ^ known if name.startswith("^") else known
                continue
            low = self.class_character()
            if isinstance(low, int):
                mask |= low
                continue
            high = low
            if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
                self.at += 1
                end = self.class_character()
                if isinstance(end, int) or end < low:
                    raise self.wrong("invalid character class range")
                high = end
            mask |= mask_of("".join(each for each in ALPHABET if low <= each <= high))
        mask = self.folded(mask)
        return _EVERYTHING ^ mask if negated else mask

    def class_character(self) -> str | int:
        """A character, or the set that an escape stands for."""
        character = self.next("closing ]")
        if character != "\\":
            return character
        following = self.text[self.at : self.at + 1]
        if following.lower() in _PERL or following in ("p", "P"):
            return self.escape()
        return self.escaped(self.next("character after \\"))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9
